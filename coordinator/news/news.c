/* news.c: writes events, and tells subscribers of those that were committed. Owns the
 * subscriptions; the rows are the store's. What is told is read back from the table, so that
 * nothing is told which is not there. */
#include "coordinator/news/news.h"

#include "common/clock.h"
#include "common/err.h"
#include "common/log.h"
#include "common/mem.h"
#include "coordinator/store/events.h"
#include "coordinator/store/store.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#define NEWS_MAGIC 0x6e657773U
#define TEXT_MAX 4096

struct news_sub {
    struct news *news;
    struct news_sub *next;
    int64_t sweep;
    int64_t after; /* events up to this one are not for it */
    news_f *f;     /* NULL: ended, to be freed when nobody is being told */
    void *arg;
};

struct news {
    unsigned magic;
    struct store *store;
    struct news_sub *subs; /* the newest first */
    int64_t told;          /* events up to this one were told */
    bool pending;          /* events were written in this turn */
    bool telling;
};

int news_new(struct store *store, struct news **out)
{
    int64_t last = 0;
    *out = NULL;
    int rc = store_event_last(store, &last);
    if (rc < 0) {
        return rc;
    }
    struct news *news = mem_xzalloc(sizeof(*news));
    news->magic = NEWS_MAGIC;
    news->store = store;
    news->told = last;
    *out = news;
    return 0;
}

void news_free(struct news **news)
{
    if (*news == NULL) {
        return;
    }
    assert((*news)->magic == NEWS_MAGIC && (*news)->subs == NULL && !(*news)->telling);
    (*news)->magic = 0;
    free(*news);
    *news = NULL;
}

int news_vadd(struct news *news, enum event_kind kind, int64_t sweep, int64_t host, int64_t run,
              const char *who, const char *fmt, va_list ap)
{
    char text[TEXT_MAX + 1];
    int64_t id = 0;
    assert(news->magic == NEWS_MAGIC && !news->telling);
    int n = vsnprintf(text, sizeof(text), fmt, ap);
    if (n < 0) {
        return -ERR_SYS;
    }
    if ((size_t)n >= sizeof(text)) {
        /* No half character at the end. */
        size_t end = sizeof(text) - 1;
        while (end > 0 && ((unsigned char)text[end - 1] & 0xc0) == 0x80) {
            end--;
        }
        text[end > 0 && (unsigned char)text[end - 1] >= 0xc0 ? end - 1 : sizeof(text) - 1] = '\0';
    }
    struct model_event event = {.wall_ns = clock_wall_ns(),
                                .kind = kind,
                                .sweep = sweep,
                                .host = host,
                                .run = run,
                                .who = who,
                                .text = text};
    int rc = store_event_append(news->store, &event, &id);
    if (rc == 0) {
        news->pending = true;
    }
    return rc;
}

int news_add(struct news *news, enum event_kind kind, int64_t sweep, int64_t host, int64_t run,
             const char *who, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int rc = news_vadd(news, kind, sweep, host, run, who, fmt, ap);
    va_end(ap);
    return rc;
}

struct news_sub *news_subscribe(struct news *news, int64_t sweep, news_f *f, void *arg)
{
    struct news_sub *sub = mem_xzalloc(sizeof(*sub));
    sub->news = news;
    sub->sweep = sweep;
    sub->after = news->told;
    sub->f = f;
    sub->arg = arg;
    sub->next = news->subs;
    news->subs = sub;
    return sub;
}

/* Frees the subscriptions that have ended. */
static void sweep_up(struct news *news)
{
    struct news_sub **at = &news->subs;
    while (*at != NULL) {
        struct news_sub *sub = *at;
        if (sub->f == NULL) {
            *at = sub->next;
            free(sub);
        } else {
            at = &sub->next;
        }
    }
}

void news_unsubscribe(struct news_sub **sub)
{
    if (*sub == NULL) {
        return;
    }
    struct news *news = (*sub)->news;
    (*sub)->f = NULL;
    *sub = NULL;
    if (!news->telling) {
        sweep_up(news);
    }
}

static int tell(const struct model_event *event, void *arg)
{
    struct news *news = arg;
    news->told = event->id;
    for (struct news_sub *sub = news->subs; sub != NULL; sub = sub->next) {
        if (sub->f != NULL && event->id > sub->after &&
            (sub->sweep == 0 || sub->sweep == event->sweep)) {
            sub->f(event, sub->arg);
        }
    }
    return 0;
}

void news_committed(struct news *news)
{
    assert(news->magic == NEWS_MAGIC && !news->telling);
    if (!news->pending) {
        return;
    }
    news->pending = false;
    news->telling = true;
    int rc = store_events_each(news->store, news->told, 0, 0, tell, news);
    news->telling = false;
    sweep_up(news);
    if (rc < 0) {
        /* They stand in the table, and are told with the next. */
        log_warn("events could not be read: %s", store_error(news->store));
        news->pending = true;
    }
}

void news_rolled_back(struct news *news)
{
    news->pending = false;
}
