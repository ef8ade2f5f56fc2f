/* house.h: a whole coordinator with its database, authority and listener in a folder of its own,
 * and guests: workers and operators over TLS on loopback, all in one loop. For the tests of
 * coordinator/net, coord.c and ctl/. */
#ifndef MAKESPAN_TESTS_UNIT_WHOLE_HOUSE_H
#define MAKESPAN_TESTS_UNIT_WHOLE_HOUSE_H

#include "common/buf.h"
#include "common/clock.h"
#include "common/diag.h"
#include "common/loop.h"
#include "coordinator/conf.h"
#include "proto/conn.h"
#include "proto/msg.h"

#include <criterion/criterion.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct coord;
struct pki_cert;
struct pki_key;
struct store;
struct tls;

enum { HOUSE_GUESTS = 8, GUEST_MESSAGES = 4096 };

/* Who a guest is. */
struct ident {
    enum role role;
    char name[65];
    struct pki_key *key;
    struct pki_cert *cert;
    struct pki_cert *authority;
};

struct house;

/* One connection and all that came over it. */
struct guest {
    struct house *house;
    const struct ident *who; /* NULL: it joins */
    struct tls *tls;
    struct conn *conn; /* NULL before and after */
    bool opened, closed;
    enum close_reason reason;
    bool by_peer;
    char text[1200];
    struct msg *got[GUEST_MESSAGES];
    size_t count;
    uint32_t calls;
    bool plays; /* makes each assignment the moment that it comes, in 1 s */
};

struct house {
    struct loop *loop;
    struct coord_conf conf; /* may be changed before house_start() */
    struct coord *coord;    /* NULL while stopped */
    struct diag *diag;
    char dir[200];
    char operator_dir[256]; /* the identity of the admin `boss`: a home for coordinator/ctl */
    char address[64];
    struct guest guests[HOUSE_GUESTS];
    size_t guest_count;
};

/* A new fleet `lab`; nothing runs yet. */
void house_init(struct house *house);
void house_start(struct house *house);
void house_stop(struct house *house); /* guests stay as they are */
void house_fini(struct house *house); /* guests too */

/* The database of the running coordinator. */
struct store *house_store(struct house *house);
/* Nothing can be written to the database any more, or can again. */
void house_fill_disk(bool full);

/* Gives an identity as joining with a token does; freed by ident_free(). */
void house_admit(struct house *house, enum role role, const char *name, struct ident *out);
/* The same for a host with classes. */
void house_admit_host(struct house *house, const char *name, const char *class, struct ident *out);
void ident_free(struct ident *ident);
/* A token's text for others to join with. name NULL: any. */
void house_token(struct house *house, enum role role, const char *name, char text[96]);
/* One that ended an hour ago. */
void house_old_token(struct house *house, enum role role, char text[96]);

/* Dials; `who` NULL: not used. */
struct guest *house_guest(struct house *house, const struct ident *who);
/* Dials, says HELLO and waits for WELCOME; asserts that it comes. */
struct guest *house_welcome(struct house *house, const struct ident *who);
/* Lets go of the connection without GOODBYE's answer, and of what came. */
void guest_leave(struct guest *guest);

int guest_send(struct guest *guest, const struct msg *msg);
/* HELLO as its role says it; a worker says that it has room for `room` assignments. */
void guest_hello(struct guest *guest, uint32_t room);
/* The same with what it holds. */
void guest_hello_with(struct guest *guest, uint32_t room, const struct rec_held *held, size_t n);
/* The n-th message of that type, or NULL. */
const struct msg *guest_got(const struct guest *guest, enum msg_type type, size_t n);
size_t guest_count(const struct guest *guest, enum msg_type type);
/* Forgets what came. */
void guest_forget(struct guest *guest);

/* An operator's request and its whole answer. */
struct answer {
    uint32_t exit, code;
    size_t pieces;
    struct buf body;
    struct buf talk;
};
/* The guest's next call number. */
uint32_t guest_call(struct guest *guest);
/* Sends the request, whose call number must be `call`, and waits for the last piece. */
void guest_ask(struct guest *guest, uint32_t call, const struct msg *request, struct answer *out);
/* What has come of that answer by now; true when the last piece has. */
bool guest_answered(const struct guest *guest, uint32_t call, struct answer *out);
void answer_free(struct answer *answer);
/* SWEEP_PUT of a text. */
void guest_put(struct guest *guest, const char *action, const char *text, struct answer *out);
void guest_report(struct guest *guest, const char *sweep, const char *format, struct answer *out);

/* What a worker sends of an attempt. */
void guest_taken(struct guest *guest, const struct msg_assign *assign);
/* The record of that number: 0 is RESULT, with that time of the run; 1 is END. */
void guest_result(struct guest *guest, const struct msg_assign *assign, int64_t real_ns);
void guest_end(struct guest *guest, const struct msg_assign *assign);
void guest_ready(struct guest *guest, uint32_t room);
/* Waits for the n-th assignment, makes it in n + 1 s, and has room again. */
void guest_make(struct guest *guest, size_t n);
/* Whether the whole of it is acknowledged. */
bool guest_has_acked(const struct guest *guest, const struct msg_assign *assign);
/* Whether the status of a sweep contains a text; forgets what came before. */
bool guest_sees(struct guest *guest, const char *sweep, const char *part);
/* An event in the present turn. */
void house_news(struct house *house, int64_t sweep, const char *text);

/* Turns the loop until the condition holds; asserts that it does within 30 s. */
void house_turn(struct house *house, int64_t deadline, const char *condition);
#define HOUSE_WAIT(house, condition)                                                               \
    do {                                                                                           \
        int64_t house_until = clock_mono_ns() + 30 * CLOCK_SEC;                                    \
        while (!(condition)) {                                                                     \
            house_turn((house), house_until, #condition);                                          \
        }                                                                                          \
    } while (0)
/* Some turns in which nothing is waited for: what would come comes in them. */
void house_idle(struct house *house);

#define EXPECT_HAS(text, part)                                                                     \
    cr_expect(strstr((text), (part)) != NULL, "\"%s\" is not in: %s", (part), (text))

#endif
