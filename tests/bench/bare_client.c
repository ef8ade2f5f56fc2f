/* bare_client.c: the smallest client of the protocol with the worker's libraries, for comparing its
 * memory with the worker's.
 *
 * usage: bare_client HOST-ADDRESS PORT KEY CERT AUTHORITY
 *
 * Nothing of this tree is linked into it: libevent, OpenSSL and msgpack-c make the connection and
 * HELLO; libyaml and jansson are only loaded, as the worker loads them. It prints "connected" when
 * something was answered, and stays until standard input ends.
 *
 * Exit status: 0 it was connected until then, 1 it was not. */
#include <event2/bufferevent.h>
#include <event2/bufferevent_ssl.h>
#include <event2/event.h>
#include <msgpack.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include <arpa/inet.h>
#include <jansson.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <yaml.h>

struct client {
    struct event_base *base;
    bool answered;
    bool ended;
};

static void pack_str(msgpack_packer *pk, const char *text)
{
    msgpack_pack_str(pk, strlen(text));
    msgpack_pack_str_body(pk, text, strlen(text));
}

/* HELLO with what it must have: a map of integer keys behind the length and the number 1. */
static void say_hello(struct bufferevent *bev)
{
    msgpack_sbuffer body;
    msgpack_packer pk;
    uint8_t head[5] = {0, 0, 0, 0, 1};

    msgpack_sbuffer_init(&body);
    msgpack_packer_init(&pk, &body, msgpack_sbuffer_write);
    msgpack_pack_map(&pk, 6);
    msgpack_pack_int(&pk, 1);
    msgpack_pack_int(&pk, 1);
    msgpack_pack_int(&pk, 2);
    msgpack_pack_int(&pk, 1);
    msgpack_pack_int(&pk, 3);
    msgpack_pack_array(&pk, 0);
    msgpack_pack_int(&pk, 4);
    pack_str(&pk, "makespan-worker");
    msgpack_pack_int(&pk, 5);
    pack_str(&pk, "0");
    msgpack_pack_int(&pk, 6);
    msgpack_pack_int64(&pk, 0);
    head[2] = (uint8_t)((body.size + 1) >> 8);
    head[3] = (uint8_t)(body.size + 1);
    bufferevent_write(bev, head, sizeof head);
    bufferevent_write(bev, body.data, body.size);
    msgpack_sbuffer_destroy(&body);
}

static void on_read(struct bufferevent *bev, void *arg)
{
    struct client *c = arg;
    char bytes[512];

    while (bufferevent_read(bev, bytes, sizeof bytes) > 0)
        ;
    if (!c->answered) {
        c->answered = true;
        puts("connected");
        fflush(stdout);
    }
}

static void on_event(struct bufferevent *bev, short what, void *arg)
{
    struct client *c = arg;

    if (what & BEV_EVENT_CONNECTED) {
        say_hello(bev);
        return;
    }
    c->ended = true;
    event_base_loopbreak(c->base);
}

static void on_input(evutil_socket_t fd, short what, void *arg)
{
    char bytes[64];

    (void)what;
    if (read((int)fd, bytes, sizeof bytes) <= 0)
        event_base_loopbreak(arg);
}

static SSL_CTX *context(char **file)
{
    static const unsigned char alpn[] = "\x0amakespan/1";
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());

    if (ctx == NULL || SSL_CTX_set_min_proto_version(ctx, TLS1_3_VERSION) != 1 ||
        SSL_CTX_use_PrivateKey_file(ctx, file[0], SSL_FILETYPE_PEM) != 1 ||
        SSL_CTX_use_certificate_file(ctx, file[1], SSL_FILETYPE_PEM) != 1 ||
        SSL_CTX_load_verify_locations(ctx, file[2], NULL) != 1 ||
        SSL_CTX_set_alpn_protos(ctx, alpn, sizeof alpn - 1) != 0) {
        ERR_print_errors_fp(stderr);
        exit(1);
    }
    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS);
    return ctx;
}

int main(int argc, char **argv)
{
    struct client c = {.base = event_base_new()};
    struct sockaddr_in to = {.sin_family = AF_INET};
    struct bufferevent *bev;
    struct event *input;
    SSL_CTX *ctx;

    if (argc != 6 || c.base == NULL || inet_pton(AF_INET, argv[1], &to.sin_addr) != 1) {
        fputs("usage: bare_client ADDRESS PORT KEY CERT AUTHORITY\n", stderr);
        return 1;
    }
    fprintf(stderr, "bare_client: libyaml %s, jansson %s\n", yaml_get_version_string(), jansson_version_str());
    to.sin_port = htons((uint16_t)strtoul(argv[2], NULL, 10));
    ctx = context(argv + 3);
    bev = bufferevent_openssl_socket_new(c.base, -1, SSL_new(ctx), BUFFEREVENT_SSL_CONNECTING, BEV_OPT_CLOSE_ON_FREE);
    input = event_new(c.base, STDIN_FILENO, EV_READ | EV_PERSIST, on_input, c.base);
    if (bev == NULL || input == NULL)
        return 1;
    bufferevent_setcb(bev, on_read, NULL, on_event, &c);
    bufferevent_enable(bev, EV_READ | EV_WRITE);
    if (bufferevent_socket_connect(bev, (struct sockaddr *)&to, sizeof to) != 0 || event_add(input, NULL) != 0)
        return 1;
    event_base_dispatch(c.base);
    event_free(input);
    bufferevent_free(bev);
    SSL_CTX_free(ctx);
    event_base_free(c.base);
    return c.answered && !c.ended ? 0 : 1;
}
