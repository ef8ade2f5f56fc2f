/* meter.c: samples during a run, in memory that is there before it begins. */
#include "worker/run/meter.h"

#include "common/attr.h"
#include "common/clock.h"
#include "common/mem.h"
#include "common/vocab.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define COST_SHARE 2000 /* a sample may take at most 1/2000 of the interval */
#define COST_TRIES 3

/* The number of instruments: their numbers are 1 to this. */
enum {
    METER_INSTRUMENTS = 0
#define INSTRUMENT(name, number, word, unit, counter) +1
#include "common/vocab.def"
#undef INSTRUMENT
};

/* A row without its empty places: an instrument's value stands at its number less one. */
struct row {
    int64_t at_ns;
    uint32_t present;
    size_t before; /* points of all earlier rows */
    int64_t value[METER_INSTRUMENTS];
};

struct meter {
    struct row row[METER_ROWS];
    size_t count;
    struct probe_row first; /* what counters count from */
    int64_t start_ns;
    int64_t interval_ns;
    int64_t due_ns;
    int64_t gap_ns;
    bool running;
    meter_extra_f *extra;
    void *arg;
};

struct meter *meter_new(void)
{
    static_assert(METER_ROWS * METER_INSTRUMENTS <= METER_POINTS_MAX,
                  "all points of all rows go into one message");
    return mem_xzalloc(sizeof(struct meter));
}

void meter_free(struct meter **meter)
{
    free(*meter);
    *meter = NULL;
}

static void take(struct meter *m, struct probe_row *row)
{
    probe_take(row);
    if (m->extra != NULL)
        m->extra(row, m->arg);
}

void meter_start(struct meter *meter, int64_t interval_ns, meter_extra_f *extra, void *arg)
{
    int64_t before, now, cost = 0;

    /* Every page of it is touched now, none in the timed window. */
    memset(meter, 0, sizeof(*meter));
    meter->extra = extra;
    meter->arg = arg;
    meter->interval_ns = interval_ns > 0 ? interval_ns : METER_INTERVAL_NS;
    /* The cheapest of a few: one that was interrupted tells of the interruption. */
    for (int i = 0; i < COST_TRIES; i++) {
        before = clock_mono_ns();
        take(meter, &meter->first);
        now = clock_mono_ns();
        if (i == 0 || now - before < cost)
            cost = now - before;
    }
    if (interval_ns <= 0 && cost * COST_SHARE > meter->interval_ns)
        meter->interval_ns = cost * COST_SHARE;
    meter_zero(meter, now);
    meter->running = true;
}

void meter_zero(struct meter *meter, int64_t start_ns)
{
    meter->start_ns = start_ns;
    meter->due_ns = start_ns + meter->interval_ns;
}

static size_t points_of(const struct row *row)
{
    size_t n = 0;

    for (int i = 1; i <= METER_INSTRUMENTS; i++)
        n += row->present >> i & 1;
    return n;
}

static size_t end_of(const struct row *row)
{
    return row->before + points_of(row);
}

static void thin_out(struct meter *m)
{
    size_t kept = 0;

    for (size_t i = 1; i < m->count; i += 2) /* the latest stays */
        m->row[kept++] = m->row[i];
    m->count = kept;
    for (size_t i = 0; i < kept; i++)
        m->row[i].before = i > 0 ? end_of(&m->row[i - 1]) : 0;
    m->interval_ns *= 2;
}

int64_t meter_tick(struct meter *meter)
{
    int64_t now = clock_mono_ns();
    struct probe_row seen;
    struct row *row;

    if (!meter->running)
        return meter->interval_ns;
    if (now < meter->due_ns)
        return meter->due_ns - now;
    if (now - meter->due_ns > meter->gap_ns)
        meter->gap_ns = now - meter->due_ns;
    if (meter->count == METER_ROWS)
        thin_out(meter);
    take(meter, &seen);
    row = &meter->row[meter->count++];
    row->at_ns = seen.at_ns - meter->start_ns;
    row->present = seen.present;
    row->before = meter->count > 1 ? end_of(row - 1) : 0;
    for (int i = 1; i <= METER_INSTRUMENTS; i++) {
        row->value[i - 1] = seen.value[i];
        if (!vocab_instrument_counts(i) || !probe_has(&seen, (enum instrument)i))
            continue;
        if (probe_has(&meter->first, (enum instrument)i))
            row->value[i - 1] -= meter->first.value[i];
        else
            row->present &= ~(UINT32_C(1) << i); /* nothing to count from */
    }
    meter->due_ns += meter->interval_ns;
    if (meter->due_ns <= now) /* late: no row is made up for */
        meter->due_ns = now + meter->interval_ns;
    return meter->due_ns - now;
}

void meter_stop(struct meter *meter)
{
    int64_t late = clock_mono_ns() - meter->due_ns;

    if (meter->running && late > meter->gap_ns)
        meter->gap_ns = late;
    meter->running = false;
}

int64_t meter_longest_gap(const struct meter *meter)
{
    return meter->gap_ns;
}

size_t meter_count(const struct meter *meter)
{
    return meter->count > 0 ? end_of(&meter->row[meter->count - 1]) : 0;
}

/* The row that has the point: the first one that ends behind it. */
static const struct row *row_of(const struct meter *meter, size_t index)
{
    size_t low = 0, high = meter->count;

    assert(index < meter_count(meter));
    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (end_of(&meter->row[middle]) <= index)
            low = middle + 1;
        else
            high = middle;
    }
    return &meter->row[low];
}

void meter_get(const struct meter *meter, size_t index, struct meter_point *out)
{
    const struct row *row = row_of(meter, index);
    size_t left = index - row->before;

    for (int k = 1; k <= METER_INSTRUMENTS; k++) {
        if ((row->present >> k & 1) == 0 || left-- > 0)
            continue;
        out->at_ns = row->at_ns;
        out->what = (enum instrument)k;
        out->value = row->value[k - 1];
        return;
    }
    assert(false && "a row has fewer points than it says");
}
