/* Which certificate new connections get. A timer looks at the files' stamps; changed ones are read
 * once they have rested for a tick, because a certificate and its key are seldom replaced in one
 * step. SSL_CTX counts its references: connections made with the one before keep it alive. */
#include "net/tls.h"

#include "base/clock.h"
#include "base/file_stamp.h"

#include <openssl/ssl.h>
#include <stdlib.h>
#include <string.h>

#define LOOK_US CLOCK_SECOND_US
#define EXPIRY_US (INT64_C(86400) * CLOCK_SECOND_US) /* how often a coming end is said again */
#define FAILURES_US (10 * CLOCK_SECOND_US)           /* between two lines about handshakes */
#define FILES 3

struct stamp {
    struct file_stamp files[FILES];
};

struct tls {
    const struct log *log;
    struct loop_timer *timer;
    struct tls_config config;
    char *paths[FILES]; /* NULL = no such file is wanted */
    SSL_CTX *ctx;
    BIO_METHOD *bio;
    struct tls_facts facts;
    struct stamp tried; /* of what was read last, good or bad */
    struct stamp seen;  /* of the last look */
    int64_t expiry_us;  /* when a coming end was said last */
    int64_t failures;   /* handshakes, since the last line */
    int64_t failures_us;
};

static void take_stamp(const struct tls *tls, struct stamp *stamp)
{
    for (int i = 0; i < FILES; i++)
        file_stamp_take(&stamp->files[i], tls->paths[i]);
}

static bool is_same(const struct stamp *a, const struct stamp *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

static void warn_of_expiry(struct tls *tls)
{
    int64_t left_s = tls->facts.until_s - clock_wall_us() / CLOCK_SECOND_US;

    tls->expiry_us = clock_boot_us();
    if (tls->facts.from_s > clock_wall_us() / CLOCK_SECOND_US)
        LOG(tls->log, LOG_WARN, "tls.not_yet_valid", KS("file", tls->config.cert),
            KC("hint", "clients refuse the certificate until its first day has come"));
    if (left_s <= 0)
        LOG(tls->log, LOG_WARN, "tls.expired", KS("file", tls->config.cert),
            KC("hint", "clients refuse an expired certificate; replace it"));
    else if (left_s < TLS_EXPIRES_SOON_S)
        LOG(tls->log, LOG_WARN, "tls.expires_soon", KS("file", tls->config.cert),
            KI("days", left_s / 86400));
}

static int load(struct tls *tls, struct err *err)
{
    struct tls_facts facts;
    SSL_CTX *ctx;

    take_stamp(tls, &tls->tried);
    tls->seen = tls->tried;
    ctx = tls_context_new(&tls->config, &facts, err);
    if (!ctx)
        return -(int)err->code;
    SSL_CTX_free(tls->ctx);
    tls->ctx = ctx;
    tls->facts = facts;
    warn_of_expiry(tls);
    return 0;
}

void tls_reload(struct tls *tls)
{
    struct err err = {0};

    if (load(tls, &err) < 0)
        LOG(tls->log, LOG_ERROR, "tls.refused", KC("reason", err.text),
            KC("hint", "the certificate before it stays in force"));
    else
        LOG(tls->log, LOG_INFO, "tls.reloaded", KS("file", tls->config.cert),
            KI("days", (tls->facts.until_s - clock_wall_us() / CLOCK_SECOND_US) / 86400),
            KI("client_cas", tls->facts.ca_count));
}

static void on_look(void *ctx)
{
    struct tls *tls = ctx;
    struct stamp now;

    take_stamp(tls, &now);
    if (!is_same(&now, &tls->seen))
        tls->seen = now; /* a program may still be writing */
    else if (!is_same(&now, &tls->tried))
        tls_reload(tls);
    if (clock_boot_us() - tls->expiry_us > EXPIRY_US)
        warn_of_expiry(tls);
    loop_timer_set(tls->timer, LOOK_US);
}

static bool copy_path(struct tls *tls, int at, struct str path)
{
    if (str_empty(path))
        return true;
    tls->paths[at] = strndup(path.data, path.len);
    return tls->paths[at] != NULL;
}

static struct str kept(const struct tls *tls, int at)
{
    return tls->paths[at] ? str_of(tls->paths[at]) : STR_NONE;
}

struct tls *tls_open(struct loop *loop, const struct tls_config *config, const struct log *log,
                     struct err *err)
{
    struct tls *tls = calloc(1, sizeof *tls);

    if (tls) {
        tls->timer = loop_timer_new(loop, on_look, tls);
        tls->bio = tls_session_bio();
    }
    if (!tls || !tls->timer || !tls->bio || !copy_path(tls, 0, config->cert) ||
        !copy_path(tls, 1, config->key) || !copy_path(tls, 2, config->client_ca)) {
        tls_free(tls);
        err_set(err, ERR_MEMORY, "no memory for TLS");
        return NULL;
    }
    tls->log = log;
    tls->config = (struct tls_config){
        .cert = kept(tls, 0), .key = kept(tls, 1), .client_ca = kept(tls, 2),
        .min_version = str_is(config->min_version, "1.3") ? STR("1.3") : STR("1.2")};
    if (load(tls, err) < 0) {
        tls_free(tls);
        return NULL;
    }
    loop_timer_set(tls->timer, LOOK_US);
    return tls;
}

void tls_free(struct tls *tls)
{
    if (!tls)
        return;
    loop_timer_free(tls->timer);
    SSL_CTX_free(tls->ctx);
    BIO_meth_free(tls->bio);
    for (int i = 0; i < FILES; i++)
        free(tls->paths[i]);
    free(tls);
}

void tls_count_failure(struct tls *tls, const char *reason)
{
    int64_t now_us = clock_boot_us();

    tls->failures++;
    if (tls->failures_us && now_us - tls->failures_us < FAILURES_US)
        return;
    LOG(tls->log, LOG_WARN, "tls.handshakes_failed", KI("count", tls->failures),
        KC("last_reason", reason));
    tls->failures = 0;
    tls->failures_us = now_us;
}

SSL_CTX *tls_context(const struct tls *tls)
{
    return tls->ctx;
}

const BIO_METHOD *tls_bio(const struct tls *tls)
{
    return tls->bio;
}
