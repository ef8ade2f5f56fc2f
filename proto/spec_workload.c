/* spec_workload.c: `workloads`, `workload`, `system`: sources, commands, timeouts. */
#include "proto/spec_int.h"

#include "common/err.h"
#include "common/str.h"
#include "common/yaml.h"

#include <stdio.h>
#include <string.h>

/* What a git path is: a URL, ssh's HOST:PATH, or a path. */
static bool is_remote(const char *path)
{
    if (strstr(path, "://") != NULL) {
        return true;
    }
    const char *colon = strchr(path, ':');
    const char *slash = strchr(path, '/');
    return colon != NULL && (slash == NULL || colon < slash);
}

static const char *read_path(struct spec_ctx *ctx, const struct yaml_node *node, const char *what)
{
    const char *path = spec_read_clean(ctx, node, what, SPEC_MAX_PATH);
    if (path == NULL) {
        return NULL;
    }
    const char *why = NULL;
    if (path[0] == '-') {
        why = "a path does not begin with -";
    } else if (path[0] == '~') {
        why = "~ is not understood; write the folder out";
    } else if (strstr(path, "::") != NULL && strstr(path, "://") == NULL) {
        why = "git's remote helpers (NAME::...) are not used";
    }
    if (why != NULL) {
        spec_mistake(ctx, spec_pos_of(node), ERR_INVAL, "%s: `%s`: %s", what,
                     spec_show(ctx->spec, path), why);
        return NULL;
    }
    return path;
}

static void read_git(struct spec_ctx *ctx, const struct yaml_node *map, struct spec_source *out,
                     struct spec_rev_text *own)
{
    const struct yaml_node *rev = yaml_get(map, "rev");
    const struct yaml_node *dirty = yaml_get(map, "dirty");
    out->local = out->path[0] != '/' && !is_remote(out->path);
    if (rev == NULL || !spec_read_rev(ctx, rev, "source.rev", false, own)) {
        *own = (struct spec_rev_text){.text = "HEAD", .to = {.a = "HEAD"}};
    }
    out->rev = own->text;
    if (dirty == NULL || !spec_read_bool(ctx, dirty, "source.dirty", &out->dirty) || !out->dirty) {
        return;
    }
    if (!out->local) {
        spec_mistake(ctx, spec_pos_of(dirty), ERR_INVAL,
                     "source.dirty: only a work tree where this command runs has uncommitted "
                     "changes: `git: .` or a relative path");
    }
    if (rev != NULL) {
        spec_mistake(ctx, spec_pos_of(dirty), ERR_INVAL,
                     "source.dirty: the work tree cannot also be at a `rev`");
    }
}

static void read_source(struct spec_ctx *ctx, const struct yaml_node *node, struct spec_source *out,
                        struct spec_rev_text *own)
{
    static const char *const keys[] = {"git", "dir", "archive", "host_dir", "rev", "dirty"};
    const struct yaml_node *found = NULL;
    out->pos = spec_pos_of(node);
    if (!spec_read_map(ctx, node, "source", keys, ARRAY_LEN(keys))) {
        return;
    }
    for (int kind = SPEC_SOURCE_GIT; kind <= SPEC_SOURCE_HOST_DIR; kind++) {
        const struct yaml_node *value = yaml_get(node, keys[kind]);
        if (value == NULL) {
            continue;
        }
        if (found != NULL) {
            spec_mistake(ctx, spec_pos_of(value), ERR_INVAL,
                         "source: only one of git, dir, archive, host_dir");
            return;
        }
        found = value;
        out->kind = (enum spec_source_kind)kind;
    }
    if (found == NULL) {
        spec_mistake(ctx, spec_pos_of(node), ERR_INVAL,
                     "source: one of git, dir, archive, host_dir is needed");
        return;
    }
    out->path = read_path(ctx, found, keys[out->kind]);
    if (out->path == NULL) {
        out->path = ".";
        return;
    }
    if (out->kind == SPEC_SOURCE_GIT) {
        read_git(ctx, node, out, own);
        return;
    }
    static const char *const git_only[] = {"rev", "dirty"};
    for (size_t i = 0; i < ARRAY_LEN(git_only); i++) {
        const struct yaml_node *value = yaml_get(node, git_only[i]);
        if (value != NULL) {
            spec_mistake(ctx, spec_pos_of(value), ERR_INVAL, "source.%s: only a git source has it",
                         git_only[i]);
        }
    }
    out->local = out->kind != SPEC_SOURCE_HOST_DIR;
    if (!out->local && out->path[0] != '/') {
        spec_mistake(ctx, spec_pos_of(found), ERR_INVAL, "host_dir: must be an absolute path");
    }
}

static void read_commands(struct spec_ctx *ctx, const struct yaml_node *node,
                          struct spec_workload *w)
{
    struct {
        const char *key;
        const char **to;
    } const commands[] = {{"setup", &w->setup},
                          {"reset", &w->reset},
                          {"run", &w->run},
                          {"check", &w->check},
                          {"fingerprint", &w->fingerprint}};
    for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
        const struct yaml_node *value = yaml_get(node, commands[i].key);
        if (value != NULL) {
            *commands[i].to = spec_read_command(ctx, value, commands[i].key);
        }
    }
    const struct yaml_node *run = yaml_get(node, "run");
    if (run == NULL) {
        spec_mistake(ctx, w->pos, ERR_NOTFOUND, "the workload has no `run`");
    } else {
        w->run_pos = spec_pos_of(run);
    }
}

static void read_workload(struct spec_ctx *ctx, const struct yaml_node *node, bool single,
                          struct spec_workload *w)
{
    static const char *const keys[] = {"name", "source", "setup",       "reset",
                                       "run",  "check",  "fingerprint", "timeout"};
    struct spec_settings settings;
    spec_settings_defaults(&settings);
    w->pos = spec_pos_of(node);
    w->timeout = settings.timeout;
    w->source = (struct spec_source){.kind = SPEC_SOURCE_NONE, .path = ""};
    w->name = single ? ctx->spec->name : NULL;
    if (!spec_read_map(ctx, node, single ? "workload" : "workloads", keys, ARRAY_LEN(keys))) {
        return;
    }
    const struct yaml_node *name = yaml_get(node, "name");
    const struct yaml_node *source = yaml_get(node, "source");
    const struct yaml_node *timeout = yaml_get(node, "timeout");
    if (name != NULL) {
        w->name = spec_read_name(ctx, name, "name");
    } else if (!single) {
        spec_mistake(ctx, w->pos, ERR_NOTFOUND, "the workload has no `name`");
    }
    if (source != NULL) {
        read_source(ctx, source, &w->source, &ctx->spec->own_revs[w->index]);
    }
    read_commands(ctx, node, w);
    if (timeout != NULL) {
        struct spec_layer *layer = spec_alloc(ctx->spec, 1, sizeof(*layer));
        if (layer != NULL) {
            spec_read_timeout(ctx, timeout, layer);
            spec_layer_apply(layer, &settings);
            w->timeout = settings.timeout;
        }
    }
}

static void check_names(struct spec_ctx *ctx)
{
    const struct spec *spec = ctx->spec;
    for (size_t i = 1; i < spec->workload_count; i++) {
        for (size_t k = 0; k < i; k++) {
            const struct spec_workload *w = &spec->workloads[i];
            if (w->name != NULL && str_eq(w->name, spec->workloads[k].name)) {
                spec_mistake(ctx, w->pos, ERR_EXISTS,
                             "the workload `%s` was given before, in line %u", w->name,
                             spec->workloads[k].pos.line);
                break;
            }
        }
    }
}

void spec_read_workloads(struct spec_ctx *ctx, const struct yaml_node *many,
                         const struct yaml_node *single)
{
    struct spec *spec = ctx->spec;
    const struct yaml_node *const *items = &single;
    size_t n = 1;
    if (many != NULL && single != NULL) {
        spec_mistake(ctx, spec_pos_of(single), ERR_INVAL,
                     "either `workloads` or `workload`, not both");
        return;
    }
    if (many == NULL && single == NULL) {
        spec_mistake(ctx, (struct spec_pos){1, 1}, ERR_NOTFOUND, "`workloads` is missing");
        return;
    }
    if (many != NULL) {
        const struct yaml_node *one;
        if (many->kind == YAML_SCALAR) {
            spec_mistake(ctx, spec_pos_of(many), ERR_INVAL, "workloads: must be a list of maps");
            return;
        }
        items = spec_read_list(ctx, many, "workloads", SPEC_MAX_WORKLOADS, &one, &n);
        if (items == NULL) {
            return;
        }
    }
    spec->workloads = spec_alloc(spec, n, sizeof(*spec->workloads));
    spec->own_revs = spec_alloc(spec, n, sizeof(*spec->own_revs));
    if (spec->full) {
        return;
    }
    spec->workload_count = n;
    for (size_t i = 0; i < n; i++) {
        spec->workloads[i].index = (uint32_t)i;
        read_workload(ctx, items[i], single != NULL, &spec->workloads[i]);
    }
    check_names(ctx);
}

/* Whether the text uses $NAME or ${NAME...}. */
static bool uses_variable(const char *text, const char *name)
{
    size_t n = strlen(name);
    for (const char *p = strchr(text, '$'); p != NULL; p = strchr(p + 1, '$')) {
        const char *word = p[1] == '{' ? p + 2 : p + 1;
        if (strncmp(word, name, n) != 0) {
            continue;
        }
        char next = word[n];
        bool longer = (next >= 'a' && next <= 'z') || (next >= 'A' && next <= 'Z') ||
                      (next >= '0' && next <= '9') || next == '_';
        if (!longer) {
            return true;
        }
    }
    return false;
}

static bool has_several_points(const struct spec_settings *s)
{
    return s->job_count > 1 || (s->job_count == 1 && s->jobs[0].kind == JOBS_ITEM_RANGE &&
                                s->jobs[0].first < s->jobs[0].last);
}

void spec_warn_jobs(struct spec_ctx *ctx)
{
    const struct spec *spec = ctx->spec;
    bool several = has_several_points(&spec->top.values);
    for (size_t i = 0; i < spec->override_count; i++) {
        several = several || has_several_points(&spec->override_layers[i].values);
    }
    for (size_t i = 0; i < spec->workload_count && several; i++) {
        const struct spec_workload *w = &spec->workloads[i];
        if (w->run != NULL && !uses_variable(w->run, "JOBS") && !uses_variable(w->run, "JFLAG")) {
            spec_warning(ctx, w->run_pos,
                         "run: neither $JOBS nor $JFLAG occurs in it, though `jobs` asks for more "
                         "than one job count");
        }
    }
}

void spec_read_system(struct spec_ctx *ctx, const struct yaml_node *node)
{
    static const char *const keys[] = {"install", "boot", "expect", "build", "build_on"};
    struct spec_system *system = &ctx->spec->system;
    system->given = true;
    system->pos = spec_pos_of(node);
    if (!spec_read_map(ctx, node, "system", keys, ARRAY_LEN(keys))) {
        return;
    }
    struct {
        const char *key;
        const char **to;
    } const commands[] = {
        {"install", &system->install}, {"boot", &system->boot}, {"build", &system->build}};
    for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
        const struct yaml_node *value = yaml_get(node, commands[i].key);
        if (value != NULL) {
            *commands[i].to = spec_read_command(ctx, value, commands[i].key);
        }
    }
    const struct yaml_node *expect = yaml_get(node, "expect");
    const struct yaml_node *build_on = yaml_get(node, "build_on");
    if (expect != NULL) {
        system->expect = spec_read_clean(ctx, expect, "expect", SPEC_TEXT_MAX);
    }
    if (build_on != NULL) {
        system->build_on = spec_read_name(ctx, build_on, "build_on");
    }
    if (yaml_get(node, "boot") == NULL || expect == NULL) {
        spec_mistake(ctx, system->pos, ERR_NOTFOUND, "system: `boot` and `expect` are needed");
    }
    if (build_on != NULL && yaml_get(node, "build") == NULL) {
        spec_mistake(ctx, spec_pos_of(build_on), ERR_INVAL, "build_on: there is no `build`");
    }
    spec_notyet_system(ctx, system->pos);
}
