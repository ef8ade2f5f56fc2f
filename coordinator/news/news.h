/* news.h: the one event table, and who is told of its rows: watch, the web process, hooks.
 *
 * An event becomes a row in the turn in which it happens; subscribers hear of it after the
 * turn's commit, never of one that was rolled back or reverted. */
#ifndef MAKESPAN_COORDINATOR_NEWS_NEWS_H
#define MAKESPAN_COORDINATOR_NEWS_NEWS_H

#include "common/attr.h"
#include "coordinator/model.h"

#include <stdarg.h>
#include <stdint.h>

struct news;
struct news_sub;
struct store;

/* The store is borrowed for the life of the object. 0, or negative when the event table cannot
 * be read. */
int news_new(struct store *store, struct news **out) MUST_CHECK;
/* Every subscription must have ended. NULL inside is fine. */
void news_free(struct news **news);

/* Writes an event with the present time. sweep, host, run: 0 for none. who: operator or host,
 * NULL for none. The text is cut at 4096 bytes. 0, or a negative code of the store. */
int news_add(struct news *news, enum event_kind kind, int64_t sweep, int64_t host, int64_t run,
             const char *who, const char *fmt, ...) PRINTF_LIKE(7, 8) MUST_CHECK;
int news_vadd(struct news *news, enum event_kind kind, int64_t sweep, int64_t host, int64_t run,
              const char *who, const char *fmt, va_list ap) PRINTF_LIKE(7, 0) MUST_CHECK;

/* Called for each event after its commit, in the order of ids; the event is borrowed for the
 * call. It may subscribe and end any subscription, its own too; it must not write to the store. */
typedef void news_f(const struct model_event *event, void *arg);
/* Events of a sweep (0: all) that are committed from now on; those of this turn included. */
struct news_sub *news_subscribe(struct news *news, int64_t sweep, news_f *f, void *arg) MUST_CHECK;
void news_unsubscribe(struct news_sub **sub); /* NULL inside is fine */

/* To be called after each store_commit() that succeeded: tells the subscribers. Cheap when there
 * is nothing. */
void news_committed(struct news *news);
/* To be called after store_rollback() or a store_commit() that failed. */
void news_rolled_back(struct news *news);

#endif
