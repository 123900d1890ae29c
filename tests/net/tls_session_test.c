/* TLS between buffers, without sockets: every way bytes can be cut, bounds of what is sealed ahead,
 * and which names of a client's certificate reach a request (D12). */
#include "net/tls_sans.h"
#include "net/tls_session.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define FOLDER_BYTES 64
#define DAY_S 86400

struct identity {
    EVP_PKEY *key;
    X509 *cert;
};

struct world {
    char folder[FOLDER_BYTES];
    struct identity ca, server, client;
    struct loop *loop;
    struct tls *tls;
};

/* ---- certificates ---- */

static struct identity sign(const char *name, const struct identity *issuer, GENERAL_NAMES *sans)
{
    struct identity made = {EVP_EC_gen("P-256"), X509_new()};
    X509_NAME *subject = X509_get_subject_name(made.cert);

    X509_set_version(made.cert, X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(made.cert), issuer ? 2 : 1);
    X509_gmtime_adj(X509_getm_notBefore(made.cert), -DAY_S);
    X509_gmtime_adj(X509_getm_notAfter(made.cert), DAY_S);
    X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, (const unsigned char *)name, -1, -1, 0);
    X509_set_issuer_name(made.cert, issuer ? X509_get_subject_name(issuer->cert) : subject);
    X509_set_pubkey(made.cert, made.key);
    if (!issuer) {
        BASIC_CONSTRAINTS constraints = {.ca = 1};

        X509_add1_ext_i2d(made.cert, NID_basic_constraints, &constraints, 1, 0);
    }
    if (sans)
        assert_int_equal(X509_add1_ext_i2d(made.cert, NID_subject_alt_name, sans, 0, 0), 1);
    assert_true(X509_sign(made.cert, issuer ? issuer->key : made.key, EVP_sha256()) > 0);
    return made;
}

static void add_name(GENERAL_NAMES *names, int kind, const char *text, size_t len)
{
    GENERAL_NAME *name = GENERAL_NAME_new();
    ASN1_IA5STRING *value = ASN1_IA5STRING_new();

    ASN1_STRING_set(value, text, (int)len);
    GENERAL_NAME_set0_value(name, kind, value);
    sk_GENERAL_NAME_push(names, name);
}

static void identity_free(struct identity *identity)
{
    EVP_PKEY_free(identity->key);
    X509_free(identity->cert);
}

static void path_in(const struct world *world, const char *name, char path[FOLDER_BYTES + 16])
{
    snprintf(path, FOLDER_BYTES + 16, "%s/%s", world->folder, name);
}

static void write_files(const struct world *world)
{
    char path[FOLDER_BYTES + 16];
    FILE *file;

    path_in(world, "ca.pem", path);
    assert_non_null(file = fopen(path, "w"));
    PEM_write_X509(file, world->ca.cert);
    fclose(file);
    path_in(world, "server.pem", path);
    assert_non_null(file = fopen(path, "w"));
    PEM_write_X509(file, world->server.cert);
    PEM_write_PrivateKey(file, world->server.key, NULL, NULL, 0, NULL, NULL);
    fclose(file);
}

static int setup(void **state)
{
    static struct world world;
    char server[FOLDER_BYTES + 16], ca[FOLDER_BYTES + 16];
    struct err err = {0};

    world = (struct world){.folder = "/tmp/perdura-tls-XXXXXX"};
    assert_non_null(mkdtemp(world.folder));
    world.ca = sign("ca", NULL, NULL);
    world.server = sign("server", &world.ca, NULL);
    write_files(&world);
    path_in(&world, "server.pem", server);
    path_in(&world, "ca.pem", ca);
    assert_non_null(world.loop = loop_new(&err));
    world.tls = tls_open(world.loop,
                         &(struct tls_config){.cert = str_of(server), .key = str_of(server),
                                              .client_ca = str_of(ca)}, NULL, &err);
    if (!world.tls)
        print_error("%s\n", err.text);
    assert_non_null(world.tls);
    *state = &world;
    return 0;
}

static int teardown(void **state)
{
    struct world *world = *state;
    char path[FOLDER_BYTES + 16];

    tls_free(world->tls);
    loop_free(world->loop);
    identity_free(&world->ca);
    identity_free(&world->server);
    path_in(world, "ca.pem", path);
    unlink(path);
    path_in(world, "server.pem", path);
    unlink(path);
    rmdir(world->folder);
    return 0;
}

/* ---- both ends of a connection ---- */

struct pair {
    struct evbuffer *in, *out; /* the server's socket */
    struct tls_session *session;
    SSL_CTX *ctx;
    SSL *client;
    BIO *to_client, *to_server; /* owned by client */
};

static void pair_open(struct pair *pair, struct world *world, const struct identity *client)
{
    *pair = (struct pair){.in = evbuffer_new(), .out = evbuffer_new()};
    pair->session = tls_session_new(world->tls, pair->in, pair->out);
    assert_non_null(pair->session);
    pair->ctx = SSL_CTX_new(TLS_client_method());
    if (client) {
        SSL_CTX_use_certificate(pair->ctx, client->cert);
        SSL_CTX_use_PrivateKey(pair->ctx, client->key);
    }
    pair->client = SSL_new(pair->ctx);
    pair->to_client = BIO_new(BIO_s_mem());
    pair->to_server = BIO_new(BIO_s_mem());
    BIO_set_mem_eof_return(pair->to_client, -1);
    SSL_set_bio(pair->client, pair->to_client, pair->to_server);
    SSL_set_connect_state(pair->client);
}

static void pair_close(struct pair *pair)
{
    tls_session_free(pair->session);
    SSL_free(pair->client);
    SSL_CTX_free(pair->ctx);
    evbuffer_free(pair->in);
    evbuffer_free(pair->out);
}

/* Carries what both have written, to the server in pieces of so many bytes. */
static enum tls_result carry(struct pair *pair, size_t piece)
{
    enum tls_result result = TLS_GOES_ON;
    char bytes[4096];
    int len;

    while ((len = BIO_read(pair->to_server, bytes,
                           piece < sizeof bytes ? (int)piece : (int)sizeof bytes)) > 0) {
        evbuffer_add(pair->in, bytes, (size_t)len);
        result = tls_session_open(pair->session, 65536);
        if (result == TLS_FAILED)
            break;
    }
    while ((len = evbuffer_remove(pair->out, bytes, sizeof bytes)) > 0)
        BIO_write(pair->to_client, bytes, len);
    return result;
}

static enum tls_result shake_hands(struct pair *pair, size_t piece)
{
    enum tls_result result = TLS_GOES_ON;

    for (int i = 0; i < 5 && result == TLS_GOES_ON; i++) {
        SSL_do_handshake(pair->client);
        result = carry(pair, piece);
    }
    return result;
}

/* ---- what is promised ---- */

static void names_of_the_clients_certificate_are_known_and_dubious_ones_left_out(void **state)
{
    static const char *const kept[] = {"URI:spiffe://example.org/worker/7", "DNS:worker-7"};
    struct world *world = *state;
    GENERAL_NAMES *names = sk_GENERAL_NAME_new_null();
    char long_name[2000];
    struct identity client;
    struct pair pair;
    const struct str *sans;
    uint32_t count;

    memset(long_name, 'a', sizeof long_name);
    add_name(names, GEN_URI, kept[0] + 4, strlen(kept[0]) - 4);
    add_name(names, GEN_DNS, "good.example\0.evil.example", 26);
    add_name(names, GEN_DNS, "two\nlines", 9);
    add_name(names, GEN_DNS, "a b", 3);
    add_name(names, GEN_DNS, "", 0);
    add_name(names, GEN_EMAIL, "ada@example.org", 15);
    add_name(names, GEN_DNS, long_name, sizeof long_name);
    add_name(names, GEN_DNS, "worker-7", 8);
    client = sign("client", &world->ca, names);
    pair_open(&pair, world, &client);
    assert_null(tls_session_sans(pair.session, &count));
    assert_int_equal(count, 0);
    assert_int_equal(shake_hands(&pair, 4096), TLS_GOES_ON);
    sans = tls_session_sans(pair.session, &count);
    assert_int_equal(count, 2);
    for (uint32_t i = 0; i < count; i++)
        assert_true(str_is(sans[i], kept[i]));
    pair_close(&pair);
    identity_free(&client);
    GENERAL_NAMES_free(names);
}

static void only_so_many_names_are_looked_at(void **state)
{
    struct world *world = *state;
    GENERAL_NAMES *names = sk_GENERAL_NAME_new_null();
    struct identity client;
    struct pair pair;
    uint32_t count;

    for (int i = 0; i < 100; i++)
        add_name(names, GEN_DNS, "worker", 6);
    client = sign("client", &world->ca, names);
    pair_open(&pair, world, &client);
    shake_hands(&pair, 4096);
    tls_session_sans(pair.session, &count);
    assert_int_equal(count, TLS_SANS_MAX);
    pair_close(&pair);
    identity_free(&client);
    GENERAL_NAMES_free(names);
}

static void a_client_without_a_certificate_gets_an_alert(void **state)
{
    struct pair pair;
    uint32_t count;
    char byte;

    pair_open(&pair, *state, NULL);
    assert_int_equal(shake_hands(&pair, 4096), TLS_FAILED);
    tls_session_sans(pair.session, &count);
    assert_int_equal(count, 0);
    assert_true(SSL_read(pair.client, &byte, 1) <= 0);
    assert_int_equal(ERR_GET_REASON(ERR_peek_last_error()), SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED);
    assert_int_equal(tls_session_open(pair.session, 65536), TLS_FAILED);
    assert_false(tls_session_seal(pair.session, 65536));
    pair_close(&pair);
}

static void bytes_may_come_one_by_one_and_the_end_is_seen(void **state)
{
    struct world *world = *state;
    struct identity client = sign("client", &world->ca, NULL);
    struct evbuffer *input;
    struct pair pair;
    char text[16] = "";

    pair_open(&pair, world, &client);
    assert_int_equal(shake_hands(&pair, 1), TLS_GOES_ON);
    assert_int_equal(SSL_write(pair.client, "hello", 5), 5);
    assert_int_equal(carry(&pair, 1), TLS_GOES_ON);
    input = tls_session_input(pair.session);
    assert_int_equal(evbuffer_remove(input, text, sizeof text), 5);
    assert_string_equal(text, "hello");
    SSL_shutdown(pair.client);
    assert_int_equal(carry(&pair, 1), TLS_ENDED);
    evbuffer_add(tls_session_output(pair.session), "bye", 3); /* it may still be answered */
    assert_true(tls_session_seal(pair.session, 65536));
    tls_session_end(pair.session);
    carry(&pair, 1);
    assert_int_equal(SSL_read(pair.client, text, sizeof text), 3);
    assert_int_equal(SSL_read(pair.client, text, sizeof text), 0);
    assert_int_equal(SSL_get_shutdown(pair.client) & SSL_RECEIVED_SHUTDOWN, SSL_RECEIVED_SHUTDOWN);
    pair_close(&pair);
    identity_free(&client);
}

static void no_more_is_opened_or_sealed_ahead_than_asked_for(void **state)
{
    enum { TOTAL = 1000000 };
    struct world *world = *state;
    struct identity client = sign("client", &world->ca, NULL);
    char *large = calloc(1, TOTAL);
    struct evbuffer *output;
    struct pair pair;
    size_t seen = 0;
    int got;

    pair_open(&pair, world, &client);
    output = tls_session_output(pair.session);
    evbuffer_add(output, large, TOTAL); /* waits for the end of the handshake */
    assert_true(tls_session_seal(pair.session, 100000));
    assert_int_equal(evbuffer_get_length(pair.out), 0);
    shake_hands(&pair, 4096);
    while (evbuffer_get_length(output)) {
        assert_true(tls_session_seal(pair.session, 100000));
        assert_in_range(evbuffer_get_length(pair.out), 1, 100000 + 17000);
        carry(&pair, 4096);
        while ((got = SSL_read(pair.client, large, TOTAL)) > 0)
            seen += (size_t)got;
    }
    assert_int_equal(seen, TOTAL);
    assert_int_equal(SSL_write(pair.client, large, TOTAL), TOTAL);
    while ((got = BIO_read(pair.to_server, large, TOTAL)) > 0)
        evbuffer_add(pair.in, large, (size_t)got);
    assert_int_equal(tls_session_open(pair.session, 50000), TLS_GOES_ON);
    assert_in_range(evbuffer_get_length(tls_session_input(pair.session)), 50000, 50000 + 16384);
    pair_close(&pair);
    identity_free(&client);
    free(large);
}

static void a_plain_request_is_told_from_tls(void **state)
{
    struct pair pair;

    pair_open(&pair, *state, NULL);
    assert_int_equal(tls_session_open(pair.session, 100), TLS_GOES_ON); /* nothing there yet */
    evbuffer_add(pair.in, "GET", 3);
    assert_int_equal(tls_session_open(pair.session, 100), TLS_CLEAR);
    assert_int_equal(evbuffer_get_length(pair.in), 3);
    pair_close(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_of_the_clients_certificate_are_known_and_dubious_ones_left_out),
        cmocka_unit_test(only_so_many_names_are_looked_at),
        cmocka_unit_test(a_client_without_a_certificate_gets_an_alert),
        cmocka_unit_test(bytes_may_come_one_by_one_and_the_end_is_seen),
        cmocka_unit_test(no_more_is_opened_or_sealed_ahead_than_asked_for),
        cmocka_unit_test(a_plain_request_is_told_from_tls),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
