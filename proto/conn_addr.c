/* conn_addr.c: addresses as text and as sockaddr. The one place that looks names up. */
#include "proto/conn_addr.h"

#include "common/diag.h"
#include "common/err.h"
#include "common/num.h"
#include "common/str.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>

static int malformed(const char *text, struct diag *diag)
{
    return diag_error(
        diag, ERR_INVAL,
        "\"%s\" is not an address: HOST:PORT, or [ADDRESS]:PORT for IPv6, with a port of 1 "
        "to 65535",
        text);
}

int conn_addr_split(const char *text, bool passive, char host[CONN_HOST_MAX], uint16_t *port,
                    struct diag *diag)
{
    const char *colon = strrchr(text, ':');
    if (colon == NULL) {
        return malformed(text, diag);
    }
    const char *begin = text;
    size_t n = (size_t)(colon - text);
    if (text[0] == '[') {
        if (n < 3 || text[n - 1] != ']') {
            return malformed(text, diag);
        }
        begin = text + 1;
        n -= 2;
    } else if (memchr(text, ':', n) != NULL) {
        return malformed(text, diag);
    }
    uint64_t number;
    if (n >= CONN_HOST_MAX || (n == 0 && !passive) || num_parse_u64(colon + 1, &number) < 0 ||
        number > 65535 || (number == 0 && !passive)) {
        return malformed(text, diag);
    }
    for (size_t i = 0; i < n; i++) {
        if (begin[i] <= ' ' || begin[i] > '~' || strchr("[]/", begin[i]) != NULL) {
            return malformed(text, diag);
        }
    }
    memcpy(host, begin, n);
    host[n] = '\0';
    *port = (uint16_t)number;
    return 0;
}

bool conn_addr_numeric(const char *host, uint16_t port, struct conn_addr *out)
{
    memset(out, 0, sizeof(*out));
    if (inet_pton(AF_INET, host, &out->u.v4.sin_addr) == 1) {
        out->u.v4.sin_family = AF_INET;
        out->size = sizeof(out->u.v4);
    } else if (inet_pton(AF_INET6, host, &out->u.v6.sin6_addr) == 1) {
        out->u.v6.sin6_family = AF_INET6;
        out->size = sizeof(out->u.v6);
    } else {
        return false;
    }
    conn_addr_set_port(out, port);
    return true;
}

static int all_addresses(uint16_t port, struct conn_addr *out, size_t max)
{
    memset(out, 0, max * sizeof(*out));
    out[0].u.v4.sin_family = AF_INET;
    out[0].u.v4.sin_addr.s_addr = htonl(INADDR_ANY);
    out[0].size = sizeof(out[0].u.v4);
    conn_addr_set_port(&out[0], port);
    if (max < 2) {
        return 1;
    }
    out[1].u.v6.sin6_family = AF_INET6;
    out[1].u.v6.sin6_addr = in6addr_any;
    out[1].size = sizeof(out[1].u.v6);
    conn_addr_set_port(&out[1], port);
    return 2;
}

int conn_addr_resolve(const char *host, uint16_t port, struct conn_addr *out, size_t max,
                      struct diag *diag)
{
    if (host[0] == '\0') {
        return all_addresses(port, out, max);
    }
    if (conn_addr_numeric(host, port, &out[0])) {
        return 1;
    }
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *list = NULL;
    int rc = getaddrinfo(host, NULL, &hints, &list);
    if (rc != 0) {
        return diag_error(diag, ERR_NOTFOUND, "the name %s cannot be looked up: %s", host,
                          gai_strerror(rc));
    }
    size_t n = 0;
    for (const struct addrinfo *ai = list; ai != NULL && n < max; ai = ai->ai_next) {
        if ((ai->ai_family == AF_INET || ai->ai_family == AF_INET6) &&
            ai->ai_addrlen <= sizeof(out[n].u)) {
            memset(&out[n], 0, sizeof(out[n]));
            memcpy(&out[n].u, ai->ai_addr, ai->ai_addrlen);
            out[n].size = ai->ai_addrlen;
            conn_addr_set_port(&out[n], port);
            n++;
        }
    }
    freeaddrinfo(list);
    return n > 0 ? (int)n : diag_error(diag, ERR_NOTFOUND, "the name %s has no address", host);
}

const char *conn_addr_text(const struct conn_addr *addr, char dst[CONN_ADDR_TEXT])
{
    char ip[INET6_ADDRSTRLEN] = "?";
    bool v6 = addr->u.any.sa_family == AF_INET6;
    const void *bytes =
        v6 ? (const void *)&addr->u.v6.sin6_addr : (const void *)&addr->u.v4.sin_addr;
    if (inet_ntop(addr->u.any.sa_family, bytes, ip, sizeof(ip)) == NULL) {
        str_copy(ip, sizeof(ip), "?");
    }
    snprintf(dst, CONN_ADDR_TEXT, v6 ? "[%s]:%u" : "%s:%u", ip, (unsigned)conn_addr_port(addr));
    return dst;
}

uint16_t conn_addr_port(const struct conn_addr *addr)
{
    return ntohs(addr->u.any.sa_family == AF_INET6 ? addr->u.v6.sin6_port : addr->u.v4.sin_port);
}

void conn_addr_set_port(struct conn_addr *addr, uint16_t port)
{
    if (addr->u.any.sa_family == AF_INET6) {
        addr->u.v6.sin6_port = htons(port);
    } else {
        addr->u.v4.sin_port = htons(port);
    }
}
