/* spec_notyet.c: what the language knows, the reader checks and the records hold, but nobody
 * carries out yet.
 *
 * Each row refuses a setting that differs from its default. A feature that is there is a row less;
 * nothing else changes. */
#include "proto/spec_int.h"

#include "common/err.h"

/* What is done where the file does not say `until`, as long as verdicts do not steer the number of
 * runs. */
#define RUNS_WITHOUT_UNTIL 3

static const struct {
    enum spec_key key;
    const char *what;
} rows[] = {
    {SPEC_KEY_UNTIL, "repeat.until other than a number of runs"},
    {SPEC_KEY_FOREIGN, "quiet other than {foreign: 2%, for: 10s, within: 10m, else: mark}"},
    {SPEC_KEY_FOR, "quiet other than {foreign: 2%, for: 10s, within: 10m, else: mark}"},
    {SPEC_KEY_WITHIN, "quiet other than {foreign: 2%, for: 10s, within: 10m, else: mark}"},
    {SPEC_KEY_ELSE, "quiet other than {foreign: 2%, for: 10s, within: 10m, else: mark}"},
    {SPEC_KEY_CACHES, "caches other than keep"},
    {SPEC_KEY_REBOOT, "reboot other than never"},
    {SPEC_KEY_OBSERVE, "observe other than normal"},
    {SPEC_KEY_AHEAD, "ahead other than 0"},
    {SPEC_KEY_CPUS, "machine.cpus other than all"},
    {SPEC_KEY_NICE, "machine.nice other than 0"},
    {SPEC_KEY_GOVERNOR, "machine.governor other than keep"},
    {SPEC_KEY_CALIBRATE, "machine.calibrate other than true"},
};

/* Whether any field of the key differs. */
static bool differs(enum spec_key key, const struct spec_settings *a, const struct spec_settings *b)
{
    bool other = false;
#define SPEC_FIELD(name, field) other = other || (key == SPEC_KEY_##name && a->field != b->field);
#include "proto/spec_keys.def"
#undef SPEC_FIELD
    return other;
}

static void refuse(struct spec_ctx *ctx, struct spec_pos pos, const char *what)
{
    spec_mistake(ctx, pos, ERR_NOTYET, "%s: not yet supported", what);
}

void spec_notyet_layer(struct spec_ctx *ctx, const struct spec_layer *layer)
{
    struct spec_settings plain;
    spec_settings_defaults(&plain);
    /* a number of runs is what is supported; the language's own default, written out, is not */
    plain.repeat.until = SPEC_UNTIL_RUNS;
    plain.repeat.runs = layer->values.repeat.runs;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if ((layer->written & (UINT64_C(1) << rows[i].key)) != 0 &&
            differs(rows[i].key, &layer->values, &plain)) {
            refuse(ctx, layer->pos[rows[i].key], rows[i].what);
        }
    }
}

void spec_notyet_storage(struct spec_ctx *ctx, struct spec_pos pos)
{
    refuse(ctx, pos, "storage");
}

void spec_notyet_system(struct spec_ctx *ctx, struct spec_pos pos)
{
    refuse(ctx, pos, "system");
}

void spec_notyet_until(struct spec_settings *out)
{
    out->repeat.until = SPEC_UNTIL_RUNS;
    out->repeat.runs = RUNS_WITHOUT_UNTIL;
}
