/* Addresses as people write them, as sockaddr, and back. */
#include "common/diag.h"
#include "common/err.h"
#include "proto/conn_addr.h"

#include <criterion/criterion.h>
#include <string.h>

Test(conn_addr, split)
{
    static const struct {
        const char *text;
        bool passive;
        int result;
        const char *host;
        uint16_t port;
    } cases[] = {
        {"box:7443", false, 0, "box", 7443},
        {"box.example.org:1", false, 0, "box.example.org", 1},
        {"127.0.0.1:65535", false, 0, "127.0.0.1", 65535},
        {"[::1]:7443", false, 0, "::1", 7443},
        {"[fe80::1%eth0]:7443", false, 0, "fe80::1%eth0", 7443},
        {":7443", true, 0, "", 7443},
        {":0", true, 0, "", 0},
        {"127.0.0.1:0", true, 0, "127.0.0.1", 0},
        {":7443", false, -ERR_INVAL, NULL, 0},
        {"box:0", false, -ERR_INVAL, NULL, 0},
        {"box", false, -ERR_INVAL, NULL, 0},
        {"box:", true, -ERR_INVAL, NULL, 0},
        {"box:+1", true, -ERR_INVAL, NULL, 0},
        {"box:7443 ", true, -ERR_INVAL, NULL, 0},
        {" box:7443", true, -ERR_INVAL, NULL, 0},
        {"box:65536", true, -ERR_INVAL, NULL, 0},
        {"box:99999999999999999999", true, -ERR_INVAL, NULL, 0},
        {"::1:7443", true, -ERR_INVAL, NULL, 0},
        {"[::1:7443", true, -ERR_INVAL, NULL, 0},
        {"[]:7443", true, -ERR_INVAL, NULL, 0},
        {"https://box:7443", true, -ERR_INVAL, NULL, 0},
        {"b\xc3\xb6x:7443", true, -ERR_INVAL, NULL, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char host[CONN_HOST_MAX];
        uint16_t port;
        struct diag *diag = diag_new(1);
        cr_expect_eq(conn_addr_split(cases[i].text, cases[i].passive, host, &port, diag),
                     cases[i].result, "%s", cases[i].text);
        if (cases[i].result == 0) {
            cr_expect_str_eq(host, cases[i].host);
            cr_expect_eq(port, cases[i].port);
        } else {
            cr_expect(strstr(diag_first(diag), "is not an address: HOST:PORT") != NULL);
        }
        diag_free(&diag);
    }
    char longest[400], host[CONN_HOST_MAX];
    uint16_t port;
    memset(longest, 'x', sizeof(longest));
    memcpy(longest + 255, ":1", 3);
    cr_expect_eq(conn_addr_split(longest, false, host, &port, NULL), 0);
    memset(longest, 'x', 257);
    memcpy(longest + 256, ":1", 3);
    cr_expect_eq(conn_addr_split(longest, false, host, &port, NULL), -ERR_INVAL);
}

Test(conn_addr, numeric_and_text)
{
    static const struct {
        const char *host;
        uint16_t port;
        const char *text;
    } cases[] = {{"127.0.0.1", 7443, "127.0.0.1:7443"},
                 {"::1", 1, "[::1]:1"},
                 {"2001:DB8:0:0:0:0:0:7", 65535, "[2001:db8::7]:65535"},
                 {"localhost", 1, NULL},
                 {"127.1", 1, NULL},
                 {"", 1, NULL}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct conn_addr addr;
        char text[CONN_ADDR_TEXT];
        cr_expect_eq(conn_addr_numeric(cases[i].host, cases[i].port, &addr), cases[i].text != NULL,
                     "%s", cases[i].host);
        if (cases[i].text != NULL) {
            cr_expect_str_eq(conn_addr_text(&addr, text), cases[i].text);
            cr_expect_eq(conn_addr_port(&addr), cases[i].port);
        }
    }
}

Test(conn_addr, resolve)
{
    struct conn_addr addrs[4];
    char text[CONN_ADDR_TEXT];
    cr_assert_eq(conn_addr_resolve("", 7443, addrs, 4, NULL), 2);
    cr_expect_str_eq(conn_addr_text(&addrs[0], text), "0.0.0.0:7443");
    cr_expect_str_eq(conn_addr_text(&addrs[1], text), "[::]:7443");
    cr_expect_eq(conn_addr_resolve("", 7443, addrs, 1, NULL), 1);
    cr_assert_eq(conn_addr_resolve("::1", 7443, addrs, 4, NULL), 1);
    cr_expect_str_eq(conn_addr_text(&addrs[0], text), "[::1]:7443");
    int n = conn_addr_resolve("localhost", 7443, addrs, 4, NULL);
    cr_assert(n > 0 || n == -ERR_NOTFOUND); /* a system may be without /etc/hosts */
    for (int i = 0; i < n; i++) {
        cr_expect_eq(conn_addr_port(&addrs[i]), 7443);
    }
}
