/* vocab.h: enums and words of common/vocab.def: roles, outcomes, phases, endings, marks, ways of taking CPU time. */
#ifndef MAKESPAN_COMMON_VOCAB_H
#define MAKESPAN_COMMON_VOCAB_H

#include <stdbool.h>

enum role {
#define ROLE(name, number, word) ROLE_##name = (number),
#include "common/vocab.def"
#undef ROLE
};
enum outcome {
#define OUTCOME(name, number, word) OUTCOME_##name = (number),
#include "common/vocab.def"
#undef OUTCOME
};
enum phase {
#define PHASE(name, number, word) PHASE_##name = (number),
#include "common/vocab.def"
#undef PHASE
};
enum ending {
#define ENDING(name, number, word) ENDING_##name = (number),
#include "common/vocab.def"
#undef ENDING
};
enum mark {
#define MARK(name, number, word, invalid, sentence) MARK_##name = (number),
#include "common/vocab.def"
#undef MARK
};
enum cpu_way {
#define CPU_WAY(name, number, word) CPU_WAY_##name = (number),
#include "common/vocab.def"
#undef CPU_WAY
};
enum instrument {
#define INSTRUMENT(name, number, word, unit, counter) INSTRUMENT_##name = (number),
#include "common/vocab.def"
#undef INSTRUMENT
};

/* The word of a number, or NULL when it is none of the table's. */
const char *vocab_role(int role);
const char *vocab_outcome(int outcome);
const char *vocab_phase(int phase);
const char *vocab_ending(int ending);
const char *vocab_mark(int mark);
const char *vocab_mark_sentence(int mark);
const char *vocab_cpu_way(int way);
const char *vocab_instrument(int instrument);
const char *vocab_instrument_unit(int instrument);
/* Whether its readings count from the run's start; else each is a state. */
bool vocab_instrument_counts(int instrument);
/* Whether a mark makes an attempt invalid when the sweep says nothing. */
bool vocab_mark_invalid(int mark);
/* The number of a role, or 0. */
int vocab_role_of(const char *word);

#endif
