/* submit.c: the ladder of a request: read the file, look up revisions, choose hosts, multiply out,
 * write. Owns the requests that are not answered. The first three rungs collect every mistake; then
 * they are told at once. */
#include "coordinator/plan/submit.h"

#include "common/buf.h"
#include "common/clock.h"
#include "common/diag.h"
#include "common/err.h"
#include "common/json.h"
#include "common/mem.h"
#include "common/num.h"
#include "common/str.h"
#include "coordinator/plan/revisions.h"
#include "coordinator/plan/sheet.h"
#include "coordinator/plan/sweep.h"
#include "coordinator/store/store.h"
#include "coordinator/store/sweeps.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MISTAKES_MAX = 200, EXIT_OK = 0, EXIT_INFRA = 3, EXIT_USAGE = 64 };

enum request_step { STEP_NEW, STEP_LOOKING_UP, STEP_DONE };

struct plan_request_state {
    struct plan_request_state *next;
    uint64_t ticket;
    enum request_step step;
    enum plan_action action;
    bool yes, json;
    char *file, *text, *key, *who, *host, *sets_json;
    size_t size;
    struct spec_set *sets;
    size_t set_count;
    struct plan_revision *revisions;
    size_t revision_count;
    plan_answer_f *f;
    void *arg;
    struct spec *spec;
    struct diag *diag;
    struct revisions *lookups;
    bool in_turn; /* rows of this turn stand behind the answer */
    int code, exit;
    struct buf body, talk;
    int64_t sweep;
};

static const struct {
    const char *word;
    enum plan_action action;
} actions[] = {{"check", PLAN_CHECK}, {"plan", PLAN_PLAN}, {"run", PLAN_RUN}};

int plan_action_of(const char *word, enum plan_action *out)
{
    for (size_t i = 0; i < ARRAY_LEN(actions); i++) {
        if (strcmp(word, actions[i].word) == 0) {
            *out = actions[i].action;
            return 0;
        }
    }
    return -ERR_INVAL;
}

/* --- coming and going --- */

static char *copy(const char *s)
{
    return s != NULL ? mem_xstrdup(s) : NULL;
}

static void copy_sets(struct plan_request_state *r, const struct plan_request *from)
{
    struct buf text = BUF_INIT;
    json_t *object = json_object();
    r->set_count = from->set_count;
    r->sets = mem_xarray(from->set_count + 1, sizeof(*r->sets));
    for (size_t i = 0; i < from->set_count; i++) {
        r->sets[i].name = mem_xstrdup(from->sets[i].name);
        r->sets[i].value = mem_xstrdup(from->sets[i].value);
        json_t *value = json_string(from->sets[i].value);
        json_set(object, from->sets[i].name, value != NULL ? value : json_null());
    }
    int rc = json_print(object, 0, &text);
    json_decref(object);
    r->sets_json = mem_xstrdup(rc == 0 ? buf_str(&text) : "{}");
    buf_fini(&text);
}

static void copy_revisions(struct plan_request_state *r, const struct plan_request *from)
{
    r->revision_count = from->revision_count;
    r->revisions = mem_xarray(from->revision_count + 1, sizeof(*r->revisions));
    for (size_t i = 0; i < from->revision_count; i++) {
        struct plan_revision *to = &r->revisions[i];
        *to = from->revisions[i];
        to->expr = mem_xstrdup(to->expr != NULL ? to->expr : "");
        to->commit = mem_xstrdup(to->commit);
        to->tree = mem_xstrdup(to->tree);
        to->subject = mem_xstrdup(to->subject);
    }
}

uint64_t plan_submit(struct plan *plan, struct plan_now now, const struct plan_request *request,
                     plan_answer_f *f, void *arg)
{
    (void)now;
    struct plan_request_state *r = mem_xzalloc(sizeof(*r));
    r->ticket = ++plan->last_ticket;
    r->action = request->action;
    r->yes = request->yes;
    r->json = request->json;
    r->file = mem_xstrdup(request->file);
    r->size = request->size;
    r->text = mem_xzalloc(request->size + 1);
    if (request->size > 0) {
        memcpy(r->text, request->text, request->size);
    }
    r->key = copy(request->key);
    r->who = copy(request->who);
    r->host = copy(request->host);
    copy_sets(r, request);
    copy_revisions(r, request);
    r->f = f;
    r->arg = arg;
    r->diag = diag_new(MISTAKES_MAX);
    struct plan_request_state **p = &plan->requests;
    while (*p != NULL) {
        p = &(*p)->next;
    }
    *p = r;
    return r->ticket;
}

static void free_request(struct plan *plan, struct plan_request_state *r)
{
    for (size_t i = 0; i < r->set_count; i++) {
        free((char *)(uintptr_t)r->sets[i].name);
        free((char *)(uintptr_t)r->sets[i].value);
    }
    for (size_t i = 0; i < r->revision_count; i++) {
        free((char *)(uintptr_t)r->revisions[i].expr);
        free((char *)(uintptr_t)r->revisions[i].commit);
        free((char *)(uintptr_t)r->revisions[i].tree);
        free((char *)(uintptr_t)r->revisions[i].subject);
    }
    free(r->sets);
    free(r->revisions);
    free(r->file);
    free(r->text);
    free(r->key);
    free(r->who);
    free(r->host);
    free(r->sets_json);
    revisions_free(plan, &r->lookups);
    spec_free(&r->spec);
    diag_free(&r->diag);
    buf_fini(&r->body);
    buf_fini(&r->talk);
    free(r);
}

static void unlink_request(struct plan *plan, struct plan_request_state *r)
{
    for (struct plan_request_state **p = &plan->requests; *p != NULL; p = &(*p)->next) {
        if (*p == r) {
            *p = r->next;
            return;
        }
    }
}

void plan_submit_cancel(struct plan *plan, uint64_t ticket)
{
    for (struct plan_request_state *r = plan->requests; r != NULL; r = r->next) {
        if (r->ticket == ticket) {
            unlink_request(plan, r);
            free_request(plan, r);
            return;
        }
    }
}

/* --- answers --- */

/* Mistakes of the file are 64; when only the infrastructure failed, 3. */
static void answer(struct plan_request_state *r, int code)
{
    r->step = STEP_DONE;
    r->code = code;
    r->exit = EXIT_OK;
    if (code < 0) {
        size_t infra = r->lookups != NULL ? revisions_infra(r->lookups) : 0;
        bool store = code == -ERR_FULL || code == -ERR_IO || code == -ERR_CORRUPT ||
                     code == -ERR_NOMEM || code == -ERR_CLOSED;
        r->exit = store || (infra > 0 && diag_errors(r->diag) <= infra) ? EXIT_INFRA : EXIT_USAGE;
        buf_reset(&r->body);
    }
    struct buf talk = BUF_INIT;
    struct buf *first = code < 0 ? &r->talk : &talk; /* a refusal comes last */
    struct buf *second = code < 0 ? &talk : &r->talk;
    diag_print(r->diag, &talk);
    if (second->len > 0) {
        buf_add(first, second->data, second->len);
    }
    buf_fini(second);
    r->talk = *first;
}

static void deliver(struct plan *plan, struct plan_request_state *r)
{
    struct plan_answer a = {.code = r->code,
                            .exit = r->exit,
                            .body = buf_str(&r->body),
                            .talk = buf_str(&r->talk),
                            .sweep = r->sweep};
    unlink_request(plan, r);
    r->f(r->arg, &a);
    free_request(plan, r);
}

static struct plan_request_state *first_done(struct plan *plan)
{
    struct plan_request_state *r = plan->requests;
    while (r != NULL && r->step != STEP_DONE) {
        r = r->next;
    }
    return r;
}

void plan_requests_answer(struct plan *plan, int code)
{
    struct plan_request_state *r;
    while ((r = first_done(plan)) != NULL) {
        if (r->in_turn && code < 0) {
            r->sweep = 0;
            buf_reset(&r->talk);
            diag_clear(r->diag);
            diag_error(r->diag, code, "the sweep could not be stored: %s", err_text(code));
            answer(r, code);
        }
        deliver(plan, r);
    }
}

void plan_requests_free(struct plan *plan)
{
    while (plan->requests != NULL) {
        struct plan_request_state *r = plan->requests;
        diag_clear(r->diag);
        buf_reset(&r->talk);
        diag_error(r->diag, ERR_CLOSED, "the coordinator is going down");
        answer(r, -ERR_CLOSED);
        deliver(plan, r);
    }
}

/* --- the rungs --- */

/* The same key and the same file were submitted before. 1: answered. */
static int look_for_key(struct plan *plan, struct plan_request_state *r)
{
    struct model_sweep sweep;
    const char *text;
    if (r->key == NULL || r->action != PLAN_RUN) {
        return 0;
    }
    int rc = store_sweep_by_key(plan->store, r->key, plan_scratch(plan), &sweep);
    if (rc == -ERR_NOTFOUND) {
        return 0;
    }
    if (rc == 0) {
        rc = store_sweep_text(plan->store, sweep.id, plan_scratch(plan), &text);
    }
    if (rc < 0) {
        return plan_fail(plan, rc);
    }
    if (strlen(text) != r->size || memcmp(text, r->text, r->size) != 0 ||
        !str_eq(sweep.sets, r->sets_json)) {
        diag_error(r->diag, ERR_CONFLICT,
                   "the key `%s` belongs to %s/%" PRId64
                   ", which was made from another file or other settings",
                   r->key, sweep.name, sweep.number);
        answer(r, -ERR_CONFLICT);
        return 1;
    }
    r->sweep = sweep.id;
    if (r->json) {
        buf_printf(&r->body,
                   "{\"schema\": 1, \"sweep\": \"%s/%" PRId64 "\", \"id\": %" PRId64 "}\n",
                   sweep.name, sweep.number, sweep.id);
    } else {
        buf_printf(&r->body, "%s/%" PRId64 "\n", sweep.name, sweep.number);
    }
    buf_printf(&r->talk, "%s/%" PRId64 ": was submitted before with this key\n", sweep.name,
               sweep.number);
    answer(r, 0);
    return 1;
}

static void begin(struct plan *plan, struct plan_request_state *r)
{
    int rc = look_for_key(plan, r);
    if (rc != 0) {
        return;
    }
    rc = spec_parse(r->file, r->text, r->size, r->sets, r->set_count, &r->spec, r->diag);
    if (rc < 0) {
        answer(r, rc);
        return;
    }
    if (r->host == NULL && spec_require_hosts(r->spec, r->diag) < 0) {
        /* It is in diag, and is told with the mistakes of the sources. */
    }
    struct revisions_given given = {r->revisions, r->revision_count, r->action != PLAN_CHECK};
    r->step = STEP_LOOKING_UP;
    revisions_begin(plan, r->spec, &given, r->diag, &r->lookups);
}

static bool too_long(struct plan_request_state *r, const struct sheet *sheet)
{
    char span[32];
    int64_t longest = sheet_longest(sheet);
    if (r->yes || longest <= CLOCK_DAY) {
        return false;
    }
    num_duration_text(span, sizeof(span), longest / CLOCK_MIN * CLOCK_MIN);
    diag_error(r->diag, ERR_LIMIT, "this is %s of work on one host: --yes says that it is meant",
               span);
    return true;
}

static int accept(struct plan *plan, struct plan_now now, struct plan_request_state *r,
                  struct sheet *sheet)
{
    struct sheet_origin origin = {r->file, r->text, r->sets_json, r->key, r->who};
    const char *ref = "";
    int mark = store_savepoint(plan->store);
    if (mark < 0) {
        return plan_fail(plan, mark);
    }
    int rc = sheet_accept(plan, now, sheet, &origin, &r->sweep, &ref);
    if (rc < 0) {
        store_revert(plan->store, mark);
        return plan_fail(plan, rc);
    }
    rc = store_release(plan->store, mark);
    if (rc < 0) {
        return plan_fail(plan, rc);
    }
    r->in_turn = true;
    if (r->json) {
        return sheet_print_json(sheet, ref, r->sweep, &r->body);
    }
    buf_printf(&r->body, "%s\n", ref);
    return 0;
}

/* Everything is looked up: the sheet, and what the action makes of it. */
static int finish(struct plan *plan, struct plan_now now, struct plan_request_state *r,
                  struct sheet *sheet)
{
    int rc = sheet_select(plan, sheet, r->diag);
    if (rc < 0 || diag_errors(r->diag) > 0) {
        return rc < 0 ? rc : -ERR_INVAL;
    }
    rc = spec_resolve(r->spec, r->diag);
    if (rc == 0) {
        rc = sheet_expand(sheet, r->diag);
    }
    if (rc < 0 || (r->action == PLAN_CHECK && !r->json)) {
        return rc;
    }
    rc = sheet_estimate(plan, sheet);
    if (rc < 0) {
        return rc;
    }
    if (r->action != PLAN_RUN) {
        if (r->json) {
            return sheet_print_json(sheet, NULL, 0, &r->body);
        }
        sheet_print(sheet, &r->body);
        return 0;
    }
    sheet_print(sheet, &r->talk);
    return too_long(r, sheet) ? -ERR_LIMIT : accept(plan, now, r, sheet);
}

static void go_on(struct plan *plan, struct plan_now now, struct plan_request_state *r)
{
    /* Another with this key may have been accepted while the revisions were looked up. */
    if (look_for_key(plan, r) != 0) {
        return;
    }
    struct sheet sheet = {.arena = mem_arena_new(0), .spec = r->spec, .host = r->host};
    int rc = revisions_set(r->lookups, r->spec, r->diag);
    if (rc < 0 && rc != -ERR_INVAL) {
        answer(r, rc);
    } else {
        answer(r, finish(plan, now, r, &sheet));
    }
    mem_arena_free(&sheet.arena);
}

void plan_requests_turn(struct plan *plan, struct plan_now now)
{
    for (struct plan_request_state *r = plan->requests; r != NULL && plan->failed == 0;
         r = r->next) {
        if (r->step == STEP_NEW) {
            begin(plan, r);
        }
        if (r->step == STEP_LOOKING_UP && revisions_pending(r->lookups) == 0 && plan->failed == 0) {
            go_on(plan, now, r);
        }
        if (plan->failed != 0) { /* the rollback says so to whoever asked */
            r->step = STEP_DONE;
            r->in_turn = true;
        }
    }
}

void plan_resolved(struct plan *plan, struct plan_now now, uint64_t ticket, int code,
                   const struct spec_rev *revs, size_t n, const char *text)
{
    (void)now;
    for (struct plan_request_state *r = plan->requests; r != NULL; r = r->next) {
        if (r->lookups != NULL &&
            revisions_answer(r->lookups, ticket, code, revs, n, text, r->spec, r->diag)) {
            return;
        }
    }
}
