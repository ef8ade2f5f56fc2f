/* spec_settings.c: what may stand at the top of the file and in `per`: their limits and defaults,
 * and how layers lie on each other. */
#include "proto/spec_int.h"

#include "common/clock.h"
#include "common/err.h"
#include "common/num.h"
#include "common/str.h"
#include "common/yaml.h"

#include <string.h>

#define PPM INT64_C(1000000)

typedef void setting_f(struct spec_ctx *ctx, const struct yaml_node *node,
                       struct spec_layer *layer);

static const struct jobs_item default_jobs = {.kind = JOBS_ITEM_NONE};
static const uint32_t default_looks[] = {5, 8, 12, 18, 27};

void spec_settings_defaults(struct spec_settings *out)
{
    *out = (struct spec_settings){
        .jobs = &default_jobs,
        .job_count = 1,
        .tolerance_ppm = 20000,
        .error_pass_ppm = 50000,
        .error_blame_ppm = 50000,
        .repeat = {.warmup = 1,
                   .until = SPEC_UNTIL_VERDICT,
                   .looks = default_looks,
                   .look_count = ARRAY_LEN(default_looks)},
        .quiet = {.foreign_ppm = 20000,
                  .for_ns = 10 * CLOCK_SEC,
                  .within_ns = 10 * CLOCK_MIN,
                  .otherwise = SPEC_ELSE_MARK},
        .retry = {.invalid = 3, .interrupted = 3, .failed = 0},
        .priority = SPEC_PRIORITY_NORMAL,
        .machine = {.calibrate = true},
        .timeout = {.setup_ns = CLOCK_HOUR,
                    .reset_ns = 10 * CLOCK_MIN,
                    .run_ns = 2 * CLOCK_HOUR,
                    .check_ns = 10 * CLOCK_MIN},
    };
}

void spec_layer_apply(const struct spec_layer *layer, struct spec_settings *out)
{
#define SPEC_FIELD(key, field)                                                                     \
    if ((layer->written & (UINT64_C(1) << SPEC_KEY_##key)) != 0) {                                 \
        out->field = layer->values.field;                                                          \
    }
#include "proto/spec_keys.def"
#undef SPEC_FIELD
}

static void wrote(struct spec_layer *layer, enum spec_key key, const struct yaml_node *node)
{
    layer->written |= UINT64_C(1) << key;
    layer->pos[key] = spec_pos_of(node);
}

static void read_jobs(struct spec_ctx *ctx, const struct yaml_node *node, struct spec_layer *layer)
{
    const struct yaml_node *one;
    size_t n = 0;
    const struct yaml_node *const *items =
        spec_read_list(ctx, node, "jobs", SPEC_MAX_JOBS, &one, &n);
    struct jobs_item *jobs = items != NULL ? spec_alloc(ctx->spec, n, sizeof(*jobs)) : NULL;
    if (jobs == NULL) {
        return;
    }
    bool fine = true;
    for (size_t i = 0; i < n; i++) {
        const char *why = "";
        const char *text = spec_read_text(ctx, items[i], "jobs");
        int rc = text != NULL ? jobs_parse(text, &jobs[i], &why) : -ERR_INVAL;
        if (text != NULL && rc < 0) {
            spec_mistake(ctx, spec_pos_of(items[i]), rc, "jobs: `%s`: %s",
                         spec_show(ctx->spec, text), why);
        }
        fine = fine && rc == 0;
    }
    if (fine) {
        layer->values.jobs = jobs;
        layer->values.job_count = n;
        wrote(layer, SPEC_KEY_JOBS, node);
    }
}

static void read_tolerance(struct spec_ctx *ctx, const struct yaml_node *node,
                           struct spec_layer *layer)
{
    if (spec_read_percent(ctx, node, "tolerance", PPM / 1000, PPM, &layer->values.tolerance_ppm)) {
        wrote(layer, SPEC_KEY_TOLERANCE, node);
    }
}

static void read_error_rate(struct spec_ctx *ctx, const struct yaml_node *node, const char *what,
                            enum spec_key key, struct spec_layer *layer, int64_t *out)
{
    if (node != NULL && spec_read_percent(ctx, node, what, PPM / 1000, PPM / 2, out)) {
        wrote(layer, key, node);
    }
}

static void read_error(struct spec_ctx *ctx, const struct yaml_node *node, struct spec_layer *layer)
{
    static const char *const keys[] = {"pass", "blame"};
    if (node->kind == YAML_SCALAR) {
        read_error_rate(ctx, node, "error", SPEC_KEY_ERROR_PASS, layer,
                        &layer->values.error_pass_ppm);
        if ((layer->written & (UINT64_C(1) << SPEC_KEY_ERROR_PASS)) != 0) {
            layer->values.error_blame_ppm = layer->values.error_pass_ppm;
            wrote(layer, SPEC_KEY_ERROR_BLAME, node);
        }
        return;
    }
    if (spec_read_map(ctx, node, "error", keys, ARRAY_LEN(keys))) {
        read_error_rate(ctx, yaml_get(node, "pass"), "error.pass", SPEC_KEY_ERROR_PASS, layer,
                        &layer->values.error_pass_ppm);
        read_error_rate(ctx, yaml_get(node, "blame"), "error.blame", SPEC_KEY_ERROR_BLAME, layer,
                        &layer->values.error_blame_ppm);
    }
}

static void read_until(struct spec_ctx *ctx, const struct yaml_node *node, struct spec_layer *layer)
{
    static const char *const words[] = {"verdict", "gate", "precision"};
    const char *text = spec_read_text(ctx, node, "repeat.until");
    if (text == NULL) {
        return;
    }
    struct spec_repeat *repeat = &layer->values.repeat;
    for (int i = 0; i < (int)ARRAY_LEN(words); i++) {
        if (str_eq(text, words[i])) {
            repeat->until = (enum spec_until)i;
            repeat->runs = 0;
            wrote(layer, SPEC_KEY_UNTIL, node);
            return;
        }
    }
    uint64_t runs = 0;
    int rc = num_parse_u64(text, &runs);
    if (rc == -ERR_INVAL) {
        spec_mistake(ctx, spec_pos_of(node), ERR_INVAL,
                     "repeat.until: `%s` is not verdict, gate, precision or a number of runs",
                     spec_show(ctx->spec, text));
    } else if (rc < 0 || runs < 1 || runs > SPEC_MAX_RUNS) {
        spec_mistake(ctx, spec_pos_of(node), ERR_RANGE,
                     "repeat.until: the number of runs must be from 1 to %d", SPEC_MAX_RUNS);
    } else {
        repeat->until = SPEC_UNTIL_RUNS;
        repeat->runs = (uint32_t)runs;
        wrote(layer, SPEC_KEY_UNTIL, node);
    }
}

static void read_looks(struct spec_ctx *ctx, const struct yaml_node *node, struct spec_layer *layer)
{
    const struct yaml_node *one;
    size_t n = 0;
    const struct yaml_node *const *items =
        spec_read_list(ctx, node, "repeat.looks", SPEC_MAX_LOOKS, &one, &n);
    uint32_t *looks = items != NULL ? spec_alloc(ctx->spec, n, sizeof(*looks)) : NULL;
    if (looks == NULL) {
        return;
    }
    for (size_t i = 0; i < n; i++) {
        if (!spec_read_u32(ctx, items[i], "repeat.looks", 2, SPEC_MAX_RUNS, &looks[i])) {
            return;
        }
        if (i > 0 && looks[i] <= looks[i - 1]) {
            spec_mistake(ctx, spec_pos_of(items[i]), ERR_INVAL,
                         "repeat.looks: %u does not rise above %u", looks[i], looks[i - 1]);
            return;
        }
    }
    layer->values.repeat.looks = looks;
    layer->values.repeat.look_count = n;
    wrote(layer, SPEC_KEY_LOOKS, node);
}

static void read_repeat(struct spec_ctx *ctx, const struct yaml_node *node,
                        struct spec_layer *layer)
{
    static const char *const keys[] = {"warmup", "until", "policy", "looks", "budget"};
    struct spec_repeat *repeat = &layer->values.repeat;
    if (!spec_read_map(ctx, node, "repeat", keys, ARRAY_LEN(keys))) {
        return;
    }
    const struct yaml_node *warmup = yaml_get(node, "warmup");
    const struct yaml_node *until = yaml_get(node, "until");
    const struct yaml_node *policy = yaml_get(node, "policy");
    const struct yaml_node *looks = yaml_get(node, "looks");
    const struct yaml_node *budget = yaml_get(node, "budget");
    if (warmup != NULL && spec_read_u32(ctx, warmup, "repeat.warmup", 0, 100, &repeat->warmup)) {
        wrote(layer, SPEC_KEY_WARMUP, warmup);
    }
    if (until != NULL) {
        read_until(ctx, until, layer);
    }
    if (policy != NULL) {
        repeat->policy = spec_read_name(ctx, policy, "repeat.policy");
        if (repeat->policy != NULL) {
            wrote(layer, SPEC_KEY_POLICY, policy);
        }
    }
    if (looks != NULL) {
        read_looks(ctx, looks, layer);
    }
    if (budget != NULL && spec_read_duration(ctx, budget, "repeat.budget", CLOCK_MIN,
                                             365 * CLOCK_DAY, &repeat->budget_ns)) {
        wrote(layer, SPEC_KEY_BUDGET, budget);
    }
}

static void read_order(struct spec_ctx *ctx, const struct yaml_node *node, struct spec_layer *layer)
{
    static const char *const keys[] = {"by", "seed"};
    static const char *const words[] = {"interleave", "shuffle"};
    const struct yaml_node *by = node;
    const struct yaml_node *seed = NULL;
    if (node->kind != YAML_SCALAR) {
        if (!spec_read_map(ctx, node, "order", keys, ARRAY_LEN(keys))) {
            return;
        }
        by = yaml_get(node, "by");
        seed = yaml_get(node, "seed");
    }
    int order = 0;
    if (by != NULL && spec_read_word(ctx, by, "order", words, ARRAY_LEN(words), &order)) {
        layer->values.order = (enum spec_order)order;
        wrote(layer, SPEC_KEY_ORDER, by);
    }
    const char *text = seed != NULL ? spec_read_text(ctx, seed, "order.seed") : NULL;
    if (text == NULL) {
        return;
    }
    if (num_parse_u64(text, &layer->values.seed) < 0) {
        spec_mistake(ctx, spec_pos_of(seed), ERR_INVAL,
                     "order.seed: must be a whole number below 2^64");
        return;
    }
    layer->values.seed_given = true;
    wrote(layer, SPEC_KEY_SEED, seed);
}

static void read_quiet(struct spec_ctx *ctx, const struct yaml_node *node, struct spec_layer *layer)
{
    static const char *const keys[] = {"foreign", "for", "within", "else"};
    static const char *const words[] = {"mark", "skip", "fail"};
    struct spec_quiet *quiet = &layer->values.quiet;
    if (!spec_read_map(ctx, node, "quiet", keys, ARRAY_LEN(keys))) {
        return;
    }
    const struct yaml_node *foreign = yaml_get(node, "foreign");
    const struct yaml_node *for_node = yaml_get(node, "for");
    const struct yaml_node *within = yaml_get(node, "within");
    const struct yaml_node *otherwise = yaml_get(node, "else");
    int word = 0;
    if (foreign != NULL &&
        spec_read_percent(ctx, foreign, "quiet.foreign", 0, PPM, &quiet->foreign_ppm)) {
        wrote(layer, SPEC_KEY_FOREIGN, foreign);
    }
    if (for_node != NULL &&
        spec_read_duration(ctx, for_node, "quiet.for", 0, CLOCK_DAY, &quiet->for_ns)) {
        wrote(layer, SPEC_KEY_FOR, for_node);
    }
    if (within != NULL &&
        spec_read_duration(ctx, within, "quiet.within", 0, CLOCK_DAY, &quiet->within_ns)) {
        wrote(layer, SPEC_KEY_WITHIN, within);
    }
    if (otherwise != NULL &&
        spec_read_word(ctx, otherwise, "quiet.else", words, ARRAY_LEN(words), &word)) {
        quiet->otherwise = (enum spec_else)word;
        wrote(layer, SPEC_KEY_ELSE, otherwise);
    }
}

static void read_retry(struct spec_ctx *ctx, const struct yaml_node *node, struct spec_layer *layer)
{
    static const char *const keys[] = {"invalid", "interrupted", "failed"};
    static const char *const whats[] = {"retry.invalid", "retry.interrupted", "retry.failed"};
    uint32_t *const to[] = {&layer->values.retry.invalid, &layer->values.retry.interrupted,
                            &layer->values.retry.failed};
    if (!spec_read_map(ctx, node, "retry", keys, ARRAY_LEN(keys))) {
        return;
    }
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        const struct yaml_node *value = yaml_get(node, keys[i]);
        if (value != NULL && spec_read_u32(ctx, value, whats[i], 0, 100, to[i])) {
            wrote(layer, (enum spec_key)(SPEC_KEY_INVALID + i), value);
        }
    }
}

static void read_caches(struct spec_ctx *ctx, const struct yaml_node *node,
                        struct spec_layer *layer)
{
    static const char *const words[] = {"keep", "drop"};
    int word = 0;
    if (spec_read_word(ctx, node, "caches", words, ARRAY_LEN(words), &word)) {
        layer->values.caches = (enum spec_caches)word;
        wrote(layer, SPEC_KEY_CACHES, node);
    }
}

static void read_reboot(struct spec_ctx *ctx, const struct yaml_node *node,
                        struct spec_layer *layer)
{
    static const char *const words[] = {"never", "variant", "run"};
    int word = 0;
    if (spec_read_word(ctx, node, "reboot", words, ARRAY_LEN(words), &word)) {
        layer->values.reboot = (enum spec_reboot)word;
        wrote(layer, SPEC_KEY_REBOOT, node);
    }
}

static void read_memory(struct spec_ctx *ctx, const struct yaml_node *node,
                        struct spec_layer *layer)
{
    static const char *const keys[] = {"per_job"};
    if (!spec_read_map(ctx, node, "memory", keys, ARRAY_LEN(keys))) {
        return;
    }
    const struct yaml_node *per_job = yaml_get(node, "per_job");
    if (per_job != NULL &&
        spec_read_size(ctx, per_job, "memory.per_job", &layer->values.memory_per_job)) {
        wrote(layer, SPEC_KEY_PER_JOB, per_job);
    }
}

static void read_priority(struct spec_ctx *ctx, const struct yaml_node *node,
                          struct spec_layer *layer)
{
    static const char *const words[] = {"gate", "normal", "idle"};
    int word = 0;
    if (spec_read_word(ctx, node, "priority", words, ARRAY_LEN(words), &word)) {
        layer->values.priority = (enum spec_priority)word;
        wrote(layer, SPEC_KEY_PRIORITY, node);
    }
}

static void read_observe(struct spec_ctx *ctx, const struct yaml_node *node,
                         struct spec_layer *layer)
{
    static const char *const words[] = {"normal", "silent"};
    int word = 0;
    if (spec_read_word(ctx, node, "observe", words, ARRAY_LEN(words), &word)) {
        layer->values.observe = (enum spec_observe)word;
        wrote(layer, SPEC_KEY_OBSERVE, node);
    }
}

static void read_ahead(struct spec_ctx *ctx, const struct yaml_node *node, struct spec_layer *layer)
{
    if (spec_read_duration(ctx, node, "ahead", 0, 30 * CLOCK_DAY, &layer->values.ahead_ns)) {
        wrote(layer, SPEC_KEY_AHEAD, node);
    }
}

/* "0-3,8": numbers and rising ranges of processors. */
static bool is_cpu_list(const char *text)
{
    const char *p = text;
    for (;;) {
        uint64_t ends[2] = {0, 0};
        size_t n = strspn(p, "0123456789");
        bool fine = num_parse_digits(p, n, &ends[0]) == 0;
        ends[1] = ends[0];
        p += n;
        if (fine && *p == '-') {
            n = strspn(p + 1, "0123456789");
            fine = num_parse_digits(p + 1, n, &ends[1]) == 0;
            p += n + 1;
        }
        if (!fine || ends[0] > ends[1] || ends[1] >= JOBS_LIMIT) {
            return false;
        }
        if (*p != ',') {
            return *p == '\0';
        }
        p++;
    }
}

static void read_cpus(struct spec_ctx *ctx, const struct yaml_node *node, struct spec_layer *layer)
{
    const char *text = spec_read_clean(ctx, node, "machine.cpus", SPEC_TEXT_MAX);
    if (text == NULL) {
        return;
    }
    bool all = str_eq(text, "all");
    if (!all && !is_cpu_list(text)) {
        spec_mistake(ctx, spec_pos_of(node), ERR_INVAL,
                     "machine.cpus: `%s` is not `all` or a list as 0-3,8",
                     spec_show(ctx->spec, text));
        return;
    }
    layer->values.machine.cpus = all ? NULL : text;
    wrote(layer, SPEC_KEY_CPUS, node);
}

static void read_nice(struct spec_ctx *ctx, const struct yaml_node *node, struct spec_layer *layer)
{
    int64_t nice = 0;
    const char *text = spec_read_text(ctx, node, "machine.nice");
    if (text == NULL) {
        return;
    }
    if (num_parse_i64(text, &nice) < 0 || nice < -20 || nice > 19) {
        spec_mistake(ctx, spec_pos_of(node), ERR_RANGE,
                     "machine.nice: must be a whole number from -20 to 19");
        return;
    }
    layer->values.machine.nice = (int32_t)nice;
    wrote(layer, SPEC_KEY_NICE, node);
}

static void read_machine(struct spec_ctx *ctx, const struct yaml_node *node,
                         struct spec_layer *layer)
{
    static const char *const keys[] = {"cpus", "nice", "governor", "calibrate"};
    if (!spec_read_map(ctx, node, "machine", keys, ARRAY_LEN(keys))) {
        return;
    }
    const struct yaml_node *cpus = yaml_get(node, "cpus");
    const struct yaml_node *nice = yaml_get(node, "nice");
    const struct yaml_node *governor = yaml_get(node, "governor");
    const struct yaml_node *calibrate = yaml_get(node, "calibrate");
    if (cpus != NULL) {
        read_cpus(ctx, cpus, layer);
    }
    if (nice != NULL) {
        read_nice(ctx, nice, layer);
    }
    const char *name = governor != NULL ? spec_read_name(ctx, governor, "machine.governor") : NULL;
    if (name != NULL) {
        layer->values.machine.governor = str_eq(name, "keep") ? NULL : name;
        wrote(layer, SPEC_KEY_GOVERNOR, governor);
    }
    if (calibrate != NULL &&
        spec_read_bool(ctx, calibrate, "machine.calibrate", &layer->values.machine.calibrate)) {
        wrote(layer, SPEC_KEY_CALIBRATE, calibrate);
    }
}

void spec_read_timeout(struct spec_ctx *ctx, const struct yaml_node *node, struct spec_layer *layer)
{
    static const char *const keys[] = {"setup", "reset", "run", "check"};
    static const char *const whats[] = {"timeout.setup", "timeout.reset", "timeout.run",
                                        "timeout.check"};
    struct spec_timeouts *t = &layer->values.timeout;
    int64_t *const to[] = {&t->setup_ns, &t->reset_ns, &t->run_ns, &t->check_ns};
    if (!spec_read_map(ctx, node, "timeout", keys, ARRAY_LEN(keys))) {
        return;
    }
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        const struct yaml_node *value = yaml_get(node, keys[i]);
        if (value != NULL &&
            spec_read_duration(ctx, value, whats[i], CLOCK_MS, 30 * CLOCK_DAY, to[i])) {
            wrote(layer, (enum spec_key)(SPEC_KEY_SETUP + i), value);
        }
    }
}

/* `timeout` comes last: it is a setting in `per` only, since at the top each workload has its own.
 */
static const struct {
    const char *word;
    setting_f *read;
} settings[] = {
    {"jobs", read_jobs},     {"tolerance", read_tolerance}, {"error", read_error},
    {"repeat", read_repeat}, {"order", read_order},         {"quiet", read_quiet},
    {"retry", read_retry},   {"caches", read_caches},       {"reboot", read_reboot},
    {"memory", read_memory}, {"priority", read_priority},   {"observe", read_observe},
    {"ahead", read_ahead},   {"machine", read_machine},     {"timeout", spec_read_timeout},
};

const char *spec_setting_word(size_t index)
{
    return index < ARRAY_LEN(settings) ? settings[index].word : NULL;
}

void spec_read_setting(struct spec_ctx *ctx, const char *key, const struct yaml_node *value,
                       struct spec_layer *layer)
{
    for (size_t i = 0; i < ARRAY_LEN(settings); i++) {
        if (str_eq(settings[i].word, key)) {
            settings[i].read(ctx, value, layer);
            return;
        }
    }
}
