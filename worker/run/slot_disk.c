/* slot_disk.c: a full disk: what the worker itself could not write is waited for, visibly, and tried
 * again when there is room, which it makes itself where earlier builds took it. A build that fills its own tree is not this file's matter: its failure
 * is its result. */
#include "common/clock.h"
#include "common/err.h"
#include "common/fileio.h"
#include "common/log.h"
#include "common/loop.h"
#include "common/num.h"
#include "common/str.h"
#include "worker/run/slot_int.h"
#include "worker/run/tree.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define LOOK (2 * CLOCK_SEC)
/* So much more than there was at the last try has to be free before the next. */
#define RISE (64 * 1024)
/* Room may also come otherwise: files, quotas, the size of the file system. */
#define TRY_ANYWAY (10 * CLOCK_MIN)
#define TELL CLOCK_MIN
/* As long as the coordinator waits for a host: what is too large for the disk comes to an end. */
#define PATIENCE CLOCK_DAY
#define FULL_BYTES (1024 * 1024)

static uint64_t free_bytes(const char *dir)
{
    uint64_t n = 0;

    return file_disk_free(dir, &n) == 0 ? n : 0;
}

void slot_disk_text(const char *dir, char *dst, size_t room)
{
    char size[32];
    uint64_t n = 0;

    if (file_disk_free(dir, &n) != 0)
        (void)snprintf(dst, room, "the disk of %.150s is full", dir);
    else
        (void)snprintf(dst, room, "the disk of %.150s is full (%s free)", dir,
                       num_size_text(size, sizeof size, n));
}

bool slot_disk_is_full(const char *dir)
{
    uint64_t n = 0;

    return file_disk_free(dir, &n) == 0 && n < FULL_BYTES;
}

static void tell(struct slot *slot, const char *text)
{
    slot->disk.told_ns = clock_mono_ns();
    slot->ops.state(slot->at.a->run, slot->at.a->attempt, slot->phase, text, slot->arg);
}

/* "waits for room, for 5 min: the disk of /srv/w/work is full (4.0 KiB free)" */
static void tell_wait(struct slot *slot)
{
    char text[257], disk[220], span[32];
    int64_t age = clock_mono_ns() - slot->disk.since_ns;

    slot_disk_text(slot->disk.dir, disk, sizeof disk);
    (void)snprintf(text, sizeof text, "waits for room, for %s: %s",
                   num_duration_text(span, sizeof span, age / CLOCK_SEC * CLOCK_SEC), disk);
    tell(slot, text);
}

static void try_now(struct slot *slot, uint64_t n)
{
    void (*again)(struct slot *) = slot->disk.again;

    slot->disk.tried_ns = clock_mono_ns();
    if (n > slot->disk.had)
        slot->disk.had = n;
    tell(slot, NULL);
    slot_arm(slot);
    again(slot);
}

/* What is thrown away so that this run can go on: never what it is being prepared in. */
static bool give_room(struct slot *slot)
{
    struct trees *trees = slot->conf.trees;
    enum trees_room what = slot->phase == PHASE_FETCH   ? TREES_ROOM_STANDING
                           : slot->phase == PHASE_SETUP ? TREES_ROOM_HOME
                                                        : TREES_ROOM_WAITING;

    if (!file_same_disk(slot->disk.dir, trees_work(trees)) || !trees_give_room(trees, what))
        return false;
    log_warn("what builds left in %s is thrown away, as far as that is needed", trees_work(trees));
    return true;
}

static void look(struct slot *slot)
{
    struct slot_disk *disk = &slot->disk;
    int64_t now = clock_mono_ns();
    uint64_t n = free_bytes(disk->dir);
    char text[220];

    if (now - disk->since_ns >= PATIENCE) {
        slot_disk_text(disk->dir, text, sizeof text);
        slot_fail(slot, OUTCOME_INTERRUPTED, "%s, and there was no room within a day", text);
        return;
    }
    /* What is being removed would go on while the run is timed: it is waited for. */
    if (!trees_tidying(slot->conf.trees)) {
        if ((n > disk->had && n - disk->had >= RISE) || now - disk->tried_ns >= TRY_ANYWAY) {
            try_now(slot, n);
            return;
        }
        (void)give_room(slot);
    }
    if (now - disk->told_ns >= TELL)
        tell_wait(slot);
    slot->retry = look;
    loop_timer_set(slot->again, LOOK);
}

void slot_wait_disk(struct slot *slot, const char *dir, const char *why,
                    void (*again)(struct slot *slot))
{
    struct slot_disk *disk = &slot->disk;
    int64_t now = clock_mono_ns();
    uint64_t n = free_bytes(dir);
    char text[220];

    if (disk->since_ns == 0) {
        slot_disk_text(dir, text, sizeof text);
        log_error("run %" PRIu64 " waits for room: %s: %s", slot->at.a->run, text, why);
        disk->since_ns = now;
        disk->had = 0;
    }
    disk->tried_ns = now;
    if (n > disk->had)
        disk->had = n;
    disk->dir = dir;
    disk->again = again;
    loop_timer_clear(slot->deadline);
    tell_wait(slot);
    slot->retry = look;
    loop_timer_set(slot->again, LOOK);
}

void slot_disk_has_room(struct slot *slot)
{
    if (slot->disk.since_ns == 0)
        return;
    log_info("run %" PRIu64 " goes on: there is room in %s again", slot->at.a->run, slot->disk.dir);
    memset(&slot->disk, 0, sizeof slot->disk);
}
