/* model.c: words and legal steps of the coordinator's states. Owns nothing. */
#include "coordinator/model.h"

#define WORD_CASE(number, word)                                                                    \
    case number:                                                                                   \
        return word;

const char *model_run_word(int state)
{
    switch (state) {
#define RUN_STATE(name, number, word, is_end, sentence) WORD_CASE(number, word)
#include "coordinator/model.def"
#undef RUN_STATE
    default:
        return NULL;
    }
}

const char *model_sweep_word(int state)
{
    switch (state) {
#define SWEEP_STATE(name, number, word, is_end) WORD_CASE(number, word)
#include "coordinator/model.def"
#undef SWEEP_STATE
    default:
        return NULL;
    }
}

const char *model_host_word(int state)
{
    switch (state) {
#define HOST_STATE(name, number, word) WORD_CASE(number, word)
#include "coordinator/model.def"
#undef HOST_STATE
    default:
        return NULL;
    }
}

const char *model_cell_word(int state)
{
    switch (state) {
#define CELL_STATE(name, number, word) WORD_CASE(number, word)
#include "coordinator/model.def"
#undef CELL_STATE
    default:
        return NULL;
    }
}

const char *model_event_word(int kind)
{
    switch (kind) {
#define EVENT_KIND(name, number, word) WORD_CASE(number, word)
#include "coordinator/model.def"
#undef EVENT_KIND
    default:
        return NULL;
    }
}

bool model_run_is_end(int state)
{
    switch (state) {
#define RUN_STATE(name, number, word, is_end, sentence)                                            \
    case number:                                                                                   \
        return (is_end) != 0;
#include "coordinator/model.def"
#undef RUN_STATE
    default:
        return false;
    }
}

bool model_run_step_ok(int from, int to)
{
#define RUN_STEP(f, t)                                                                             \
    if (from == RUN_##f && to == RUN_##t)                                                          \
        return true;
#include "coordinator/model.def"
#undef RUN_STEP
    return false;
}

bool model_sweep_is_end(int state)
{
    switch (state) {
#define SWEEP_STATE(name, number, word, is_end)                                                    \
    case number:                                                                                   \
        return (is_end) != 0;
#include "coordinator/model.def"
#undef SWEEP_STATE
    default:
        return false;
    }
}

const struct model_host *model_find_host(const struct model_sweep_data *data, int64_t id)
{
    for (size_t i = 0; i < data->host_count; i++) {
        if (data->hosts[i].id == id) {
            return &data->hosts[i];
        }
    }
    return NULL;
}
