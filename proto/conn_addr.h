/* conn_addr.h: addresses "HOST:PORT", "[ADDR]:PORT" and ":PORT" as text and as sockaddr, for
 * conn*.c and for checks of what a user wrote. */
#ifndef MAKESPAN_PROTO_CONN_ADDR_H
#define MAKESPAN_PROTO_CONN_ADDR_H

#include "common/attr.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

struct diag;

enum { CONN_ADDR_TEXT = 80, CONN_HOST_MAX = 256 };

struct conn_addr {
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } u;
    socklen_t size;
};

/* Splits the text. An empty host is taken when `passive` (to listen on all addresses); port 0 too.
 * An IPv6 address must stand in brackets. -ERR_INVAL with text. */
int conn_addr_split(const char *text, bool passive, char host[CONN_HOST_MAX], uint16_t *port,
                    struct diag *diag) MUST_CHECK;
/* Whether host is a numeric address; then *out is set. Never blocks. */
bool conn_addr_numeric(const char *host, uint16_t port, struct conn_addr *out);
/* Up to max addresses of a host; an empty host gives the addresses that stand for all. For a name
 * it asks the system and MAY BLOCK for seconds. Their number, or -ERR_NOTFOUND with text. */
int conn_addr_resolve(const char *host, uint16_t port, struct conn_addr *out, size_t max,
                      struct diag *diag) MUST_CHECK;
/* "127.0.0.1:7443", "[::1]:7443". Returns dst. */
const char *conn_addr_text(const struct conn_addr *addr, char dst[CONN_ADDR_TEXT]);
uint16_t conn_addr_port(const struct conn_addr *addr);
void conn_addr_set_port(struct conn_addr *addr, uint16_t port);

#endif
