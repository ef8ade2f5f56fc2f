/* news_test.c: events are told after their commit, to whom they concern, and never when they
 * were taken back. */
#include "coordinator/news/news.h"

#include "common/err.h"
#include "common/str.h"
#include "coordinator/store/events.h"
#include "coordinator/store/store.h"
#include "tests/unit/coordinator/store/store_help.h"

#include <criterion/criterion.h>

#include <string.h>

struct ear {
    struct news *news;
    struct news_sub *sub;
    char heard[SAY_ROOM];
    struct news_sub **end; /* a subscription that is ended when something is heard */
    struct ear *start;     /* one that is begun then */
};

static void hear(const struct model_event *event, void *arg)
{
    struct ear *ear = arg;
    say(ear->heard, "%s:%s ", event->text, event->who != NULL ? event->who : "-");
    if (ear->end != NULL) {
        news_unsubscribe(ear->end);
    }
    if (ear->start != NULL && ear->start->sub == NULL) {
        ear->start->sub = news_subscribe(ear->news, 0, hear, ear->start);
    }
}

static void add(struct news *news, int64_t sweep, const char *text)
{
    cr_assert_eq(news_add(news, EVENT_OPERATOR, sweep, 0, 0, NULL, "%s", text), 0);
}

static void turn(struct box *box, struct news *news)
{
    box_commit(box);
    news_committed(news);
}

Test(news, are_told_after_the_commit)
{
    struct box box;
    struct news *news = NULL;
    struct ear all = {0};
    struct ear one = {0};
    box_open(&box);
    cr_assert_eq(news_new(box.store, &news), 0);
    add(news, 1, "before");
    turn(&box, news);
    all.sub = news_subscribe(news, 0, hear, &all);
    one.sub = news_subscribe(news, 2, hear, &one);
    cr_expect_eq(news_add(news, EVENT_RUN_STATE, 1, 0, 0, "alice", "%s %d", "first", 1), 0);
    add(news, 2, "second");
    add(news, 0, "third");
    cr_expect_str_eq(all.heard, "", "nothing before the commit");
    turn(&box, news);
    cr_expect_str_eq(all.heard, "first 1:alice second:- third:- ");
    cr_expect_str_eq(one.heard, "second:- ");
    turn(&box, news);
    cr_expect_str_eq(one.heard, "second:- ", "nothing is told twice");
    news_unsubscribe(&all.sub);
    cr_expect_null(all.sub);
    add(news, 2, "fourth");
    turn(&box, news);
    cr_expect_str_eq(all.heard, "first 1:alice second:- third:- ");
    cr_expect_str_eq(one.heard, "second:- fourth:- ");
    news_unsubscribe(&one.sub);
    news_free(&news);
    box_close(&box);
}

Test(news, of_this_turn_reach_who_subscribes_in_it)
{
    struct box box;
    struct news *news = NULL;
    struct ear ear = {0};
    box_open(&box);
    cr_assert_eq(news_new(box.store, &news), 0);
    add(news, 0, "accepted");
    ear.sub = news_subscribe(news, 0, hear, &ear);
    turn(&box, news);
    cr_expect_str_eq(ear.heard, "accepted:- ");
    news_unsubscribe(&ear.sub);
    news_free(&news);
    box_close(&box);
}

Test(news, that_were_rolled_back_are_never_told)
{
    struct box box;
    struct news *news = NULL;
    struct ear ear = {0};
    box_open(&box);
    cr_assert_eq(news_new(box.store, &news), 0);
    ear.sub = news_subscribe(news, 0, hear, &ear);
    add(news, 0, "lost");
    store_rollback(box.store);
    news_rolled_back(news);
    add(news, 0, "kept");
    turn(&box, news);
    cr_expect_str_eq(ear.heard, "kept:- ");
    /* Part of a turn: one request is reverted, the other stays. */
    add(news, 0, "one");
    int sp = store_savepoint(box.store);
    add(news, 0, "two");
    store_revert(box.store, sp);
    add(news, 0, "three");
    turn(&box, news);
    cr_expect_str_eq(ear.heard, "kept:- one:- three:- ");
    news_unsubscribe(&ear.sub);
    news_free(&news);
    box_close(&box);
}

Test(news, begin_after_what_is_there)
{
    struct box box;
    struct news *news = NULL;
    struct ear ear = {0};
    box_open(&box);
    cr_assert_eq(news_new(box.store, &news), 0);
    add(news, 0, "old");
    turn(&box, news);
    news_free(&news);
    box_reopen(&box);
    cr_assert_eq(news_new(box.store, &news), 0);
    ear.sub = news_subscribe(news, 0, hear, &ear);
    add(news, 0, "new");
    turn(&box, news);
    cr_expect_str_eq(ear.heard, "new:- ");
    news_unsubscribe(&ear.sub);
    news_free(&news);
    box_close(&box);
}

Test(news, subscriptions_may_change_while_they_are_told)
{
    struct box box;
    struct news *news = NULL;
    struct ear a = {0};
    struct ear b = {0};
    struct ear c = {0};
    box_open(&box);
    cr_assert_eq(news_new(box.store, &news), 0);
    a.sub = news_subscribe(news, 0, hear, &a);
    b.sub = news_subscribe(news, 0, hear, &b);
    a.end = &a.sub; /* ends itself */
    b.news = news;
    b.start = &c;
    add(news, 0, "x");
    add(news, 0, "y");
    turn(&box, news);
    cr_expect_str_eq(a.heard, "x:- ");
    cr_expect_str_eq(b.heard, "x:- y:- ");
    cr_expect_str_eq(c.heard, "y:- ", "from the next event on");
    news_unsubscribe(&b.sub);
    news_unsubscribe(&c.sub);
    news_unsubscribe(&a.sub);
    news_free(&news);
    box_close(&box);
}

static int last_text(const struct model_event *event, void *arg)
{
    size_t n = strlen(event->text);
    *(size_t *)arg = n;
    cr_expect(str_is_utf8(event->text, n));
    return 0;
}

Test(news, cut_a_long_text_between_characters)
{
    struct box box;
    struct news *news = NULL;
    size_t n = 0;
    char text[6001];
    box_open(&box);
    cr_assert_eq(news_new(box.store, &news), 0);
    for (size_t shift = 0; shift < 3; shift++) {
        memset(text, 'x', shift);
        for (size_t i = shift; i + 3 < sizeof(text); i += 3) {
            memcpy(text + i, "\xe2\x82\xac", 3);
            text[i + 3] = '\0';
        }
        add(news, 0, text);
        cr_expect_eq(store_events_each(box.store, (int64_t)shift, 0, 0, last_text, &n), 0);
        cr_expect(n > 4090 && n <= 4096, "%zu bytes", n);
    }
    news_free(&news);
    box_close(&box);
}

Test(news, say_when_they_cannot_be_written)
{
    struct box box;
    struct news *news = NULL;
    struct store *other = NULL;
    box_open(&box);
    cr_assert_eq(news_new(box.store, &news), 0);
    cr_assert_eq(store_open(box.path, NULL, 0, &other, box.diag), 0);
    cr_assert_eq(store_meta_set(other, "a", "b"), 0);
    cr_expect_eq(news_add(news, EVENT_STORE, 0, 0, 0, NULL, "x"), -ERR_BUSY);
    store_close(&other);
    news_free(&news);
    box_close(&box);
}
