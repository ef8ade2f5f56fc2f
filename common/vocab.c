/* vocab.c: words of the small vocabularies. Owns nothing. */
#include "common/vocab.h"

#include <stddef.h>
#include <string.h>

const char *vocab_role(int role)
{
    switch (role) {
#define ROLE(name, number, word)                                                                   \
    case number:                                                                                   \
        return word;
#include "common/vocab.def"
#undef ROLE
    default:
        return NULL;
    }
}

const char *vocab_outcome(int outcome)
{
    switch (outcome) {
#define OUTCOME(name, number, word)                                                                \
    case number:                                                                                   \
        return word;
#include "common/vocab.def"
#undef OUTCOME
    default:
        return NULL;
    }
}

const char *vocab_phase(int phase)
{
    switch (phase) {
#define PHASE(name, number, word)                                                                  \
    case number:                                                                                   \
        return word;
#include "common/vocab.def"
#undef PHASE
    default:
        return NULL;
    }
}

const char *vocab_ending(int ending)
{
    switch (ending) {
#define ENDING(name, number, word)                                                                 \
    case number:                                                                                   \
        return word;
#include "common/vocab.def"
#undef ENDING
    default:
        return NULL;
    }
}

const char *vocab_mark(int mark)
{
    switch (mark) {
#define MARK(name, number, word, invalid, sentence)                                                \
    case number:                                                                                   \
        return word;
#include "common/vocab.def"
#undef MARK
    default:
        return NULL;
    }
}

const char *vocab_mark_sentence(int mark)
{
    switch (mark) {
#define MARK(name, number, word, invalid, sentence)                                                \
    case number:                                                                                   \
        return sentence;
#include "common/vocab.def"
#undef MARK
    default:
        return NULL;
    }
}

const char *vocab_cpu_way(int way)
{
    switch (way) {
#define CPU_WAY(name, number, word)                                                                \
    case number:                                                                                   \
        return word;
#include "common/vocab.def"
#undef CPU_WAY
    default:
        return NULL;
    }
}

bool vocab_mark_invalid(int mark)
{
    switch (mark) {
#define MARK(name, number, word, invalid, sentence)                                                \
    case number:                                                                                   \
        return (invalid) != 0;
#include "common/vocab.def"
#undef MARK
    default:
        return false;
    }
}

const char *vocab_instrument(int instrument)
{
    switch (instrument) {
#define INSTRUMENT(name, number, word, unit, counter)                                              \
    case number:                                                                                   \
        return word;
#include "common/vocab.def"
#undef INSTRUMENT
    default:
        return NULL;
    }
}

const char *vocab_instrument_unit(int instrument)
{
    switch (instrument) {
#define INSTRUMENT(name, number, word, unit, counter)                                              \
    case number:                                                                                   \
        return unit;
#include "common/vocab.def"
#undef INSTRUMENT
    default:
        return NULL;
    }
}

bool vocab_instrument_counts(int instrument)
{
    switch (instrument) {
#define INSTRUMENT(name, number, word, unit, counter)                                              \
    case number:                                                                                   \
        return (counter) != 0;
#include "common/vocab.def"
#undef INSTRUMENT
    default:
        return false;
    }
}

int vocab_role_of(const char *word)
{
#define ROLE(name, number, w)                                                                      \
    if (strcmp(word, w) == 0)                                                                      \
        return number;
#include "common/vocab.def"
#undef ROLE
    return 0;
}
