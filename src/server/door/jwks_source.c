/* One fetch at a time. The thread owns struct fetch between the loop's order and its answer, which
 * comes back by loop_post; only `client` and `stop` are shared, below the mutex. An answer to
 * settings that are no longer in force is dropped. */
#include "server/door/jwks_source.h"

#include "base/clock.h"
#include "base/file_stamp.h"
#include "base/hash.h"
#include "base/thread.h"
#include "core/access/jwks_url.h"
#include "net/http_client.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#define LOOK_US CLOCK_SECOND_US

/* Keys as they were read or fetched. */
struct key_set {
    struct jwks *keys; /* NULL = failed */
    uint8_t hash[HASH_BYTES];
};

struct fetch {
    struct str url, ca; /* of settings, which live on */
    uint64_t generation;
    struct key_set got;
    struct err err;
};

struct jwks_source {
    struct loop *loop;
    const struct log *log;
    void (*told)(void *ctx, bool keys_changed);
    void *ctx;
    struct loop_timer *timer;
    struct jwt_settings settings;
    uint64_t generation; /* of the settings */
    struct key_set now;
    struct jwks_counts counts;
    int64_t tried_us;    /* when the last fetch began; 0 = never */
    int64_t asked_us;    /* the same of those that a JWT asked for */
    bool fetching, failing;
    struct file_stamp read_stamp, seen_stamp;
    struct fetch fetch;
    struct loop_item item;
    pthread_t thread;
    bool has_thread;
    pthread_mutex_t mutex; /* below it the rest */
    pthread_cond_t ordered;
    bool order, stop;
    struct http_client *client; /* of the fetch under way */
};

static int parse(struct str text, struct key_set *set, struct err *err)
{
    TRY_MEMORY(hash_sha256(text, set->hash) == 0);
    return jwks_parse(text, &set->keys, err);
}

/* ---- a file ---- */

static int read_all(int fd, const char *path, struct buf *text, struct err *err)
{
    ssize_t got = 1;

    while (got > 0) {
        if (!buf_reserve(text, 16384))
            return err_set(err, ERR_INVALID, "the JWKS file %s has more than %d bytes", path,
                           JWKS_BYTES_MAX);
        do
            got = read(fd, text->data + text->len, 16384);
        while (got < 0 && errno == EINTR);
        if (got < 0)
            return err_set(err, ERR_INVALID, "cannot read the JWKS file %s: %s", path,
                           strerror(errno));
        text->len += (size_t)got;
    }
    return 0;
}

static int read_keys(struct str path, struct key_set *set, struct err *err)
{
    BUF_AUTO struct buf text = BUF_INIT(JWKS_BYTES_MAX + 16384);
    char name[CLOCK_TEXT_BYTES + 4096];
    struct err why;
    int fd, rc;

    *set = (struct key_set){.keys = NULL};
    snprintf(name, sizeof name, STR_FMT, STR_ARG(path));
    fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return err_set(err, ERR_INVALID, "cannot open the JWKS file %s: %s", name,
                       strerror(errno));
    rc = read_all(fd, name, &text, err);
    close(fd);
    TRY(rc);
    if (parse(buf_view(&text), set, &why) < 0)
        return err_set(err, ERR_INVALID, "%s: %s", name, why.text);
    return 0;
}

/* ---- the thread ---- */

static bool begin_client(struct jwks_source *source, struct http_client *client)
{
    LOCKED(&source->mutex);

    if (!source->stop)
        source->client = client;
    return !source->stop;
}

static void end_client(struct jwks_source *source, struct http_client *client)
{
    pthread_mutex_lock(&source->mutex);
    source->client = NULL;
    pthread_mutex_unlock(&source->mutex);
    http_client_free(client);
}

static int call(struct http_client *client, const struct fetch *fetch, const char *path,
                struct buf *text, struct err *err)
{
    struct http_client_tls tls = {.ca = fetch->ca};
    int status;

    if (fetch->ca.data)
        TRY(http_client_set_tls(client, &tls, err));
    TRY(http_client_call(client, "GET", path, STR_NONE, JWKS_FETCH_MS, text, &status, err));
    if (status != 200)
        return err_set(err, ERR_UNAVAILABLE, "the issuer answered with status %d in place of its "
                       "keys", status);
    return 0;
}

static int fetch_keys(struct jwks_source *source, struct fetch *fetch)
{
    BUF_AUTO struct buf text = BUF_INIT(JWKS_BYTES_MAX);
    ARENA_AUTO struct arena arena = ARENA_INIT(0);
    struct http_client *client;
    struct str origin, path;
    char *path_text;
    int rc;

    jwks_url_split(fetch->url, &origin, &path);
    path_text = arena_cstr(&arena, path);
    client = path_text ? http_client_new(origin, STR_NONE, &fetch->err) : NULL;
    if (!client)
        return path_text ? -(int)fetch->err.code : err_no_memory(&fetch->err);
    rc = begin_client(source, client)
             ? call(client, fetch, path_text, &text, &fetch->err)
             : err_set(&fetch->err, ERR_UNAVAILABLE, "the server is stopping");
    end_client(source, client);
    TRY(rc);
    return parse(buf_view(&text), &fetch->got, &fetch->err);
}

/* False: the source is going away. */
static bool wait_for_order(struct jwks_source *source)
{
    LOCKED(&source->mutex);

    while (!source->order && !source->stop)
        pthread_cond_wait(&source->ordered, &source->mutex);
    source->order = false;
    return !source->stop;
}

static void *fetch_thread(void *ctx)
{
    struct jwks_source *source = ctx;

    while (wait_for_order(source)) {
        source->fetch.got = (struct key_set){.keys = NULL};
        fetch_keys(source, &source->fetch);
        loop_post(source->loop, &source->item);
    }
    return NULL;
}

/* ---- one fetch ---- */

static bool start_thread(struct jwks_source *source)
{
    if (!source->has_thread)
        source->has_thread = thread_start(&source->thread, 0, fetch_thread, source) == 0;
    return source->has_thread;
}

static bool start_fetch(struct jwks_source *source)
{
    if (source->fetching || !source->settings.jwks_url.data || !start_thread(source))
        return source->fetching;
    source->tried_us = clock_boot_us();
    source->fetching = true;
    source->counts.fetches++;
    source->fetch = (struct fetch){.url = source->settings.jwks_url, .ca = source->settings.ca,
                                   .generation = source->generation};
    LOCKED(&source->mutex);
    source->order = true;
    pthread_cond_signal(&source->ordered);
    return true;
}

bool jwks_source_ask(struct jwks_source *source)
{
    int64_t now_us = clock_boot_us();

    if (source->fetching)
        return true;
    if (source->asked_us && now_us - source->asked_us < JWKS_AGAIN_US)
        return false;
    if (start_fetch(source))
        source->asked_us = now_us;
    return source->fetching;
}

/* ---- what came of it ---- */

static void take(struct jwks_source *source, struct key_set *got)
{
    bool changed = !source->now.keys || memcmp(source->now.hash, got->hash, HASH_BYTES) != 0;

    jwks_free(source->now.keys);
    source->now = *got;
    *got = (struct key_set){.keys = NULL};
    source->counts.keys = jwks_count(source->now.keys);
    source->counts.loaded_us = clock_boot_us();
    if (changed || source->failing)
        LOG(source->log, LOG_INFO, "jwks.loaded", KI("keys", source->counts.keys));
    source->failing = false;
    source->told(source->ctx, changed);
}

static void failed(struct jwks_source *source, const struct err *why)
{
    source->counts.failures++;
    source->failing = true;
    LOG(source->log, LOG_WARN, "jwks.not_loaded", KC("reason", why->text),
        KC("hint", source->now.keys ? "the keys before it stay in force"
                                    : "there are no keys yet, so that no JWT is accepted"));
    source->told(source->ctx, false);
}

static void fetch_over(struct loop_item *item)
{
    struct jwks_source *source =
        (struct jwks_source *)(void *)((char *)item - offsetof(struct jwks_source, item));
    struct fetch *fetch = &source->fetch;

    source->fetching = false;
    if (fetch->generation != source->generation) {
        jwks_free(fetch->got.keys);
        fetch->got.keys = NULL;
        if (!start_fetch(source)) /* with the settings that are in force now */
            source->told(source->ctx, false);
        return;
    }
    if (fetch->got.keys)
        take(source, &fetch->got);
    else
        failed(source, &fetch->err);
}

/* ---- when ---- */

static void read_again(struct jwks_source *source)
{
    struct key_set got;
    struct err err;

    source->read_stamp = source->seen_stamp;
    source->counts.fetches++;
    if (read_keys(source->settings.jwks_file, &got, &err) == 0)
        take(source, &got);
    else
        failed(source, &err);
}

static void look_at_file(struct jwks_source *source)
{
    struct file_stamp now;

    file_stamp_take(&now, source->settings.jwks_file.data);
    if (!file_stamp_same(&now, &source->seen_stamp))
        source->seen_stamp = now; /* a program may still be writing */
    else if (!file_stamp_same(&now, &source->read_stamp))
        read_again(source);
}

static void on_look(void *ctx)
{
    struct jwks_source *source = ctx;
    int64_t every_us = source->failing ? JWKS_AGAIN_US : JWKS_EVERY_US;

    if (source->settings.jwks_file.data)
        look_at_file(source);
    else if (!source->tried_us || clock_boot_us() - source->tried_us >= every_us)
        start_fetch(source);
    loop_timer_set(source->timer, LOOK_US);
}

/* ---- its life ---- */

struct jwks_source *jwks_source_open(struct loop *loop, const struct log *log,
                                     void (*told)(void *ctx, bool keys_changed), void *ctx,
                                     struct err *err)
{
    struct jwks_source *source = err_calloc(sizeof *source, err);

    if (!source)
        return NULL;
    source->loop = loop;
    source->log = log;
    source->told = told;
    source->ctx = ctx;
    source->item.run = fetch_over;
    pthread_mutex_init(&source->mutex, NULL);
    pthread_cond_init(&source->ordered, NULL);
    source->timer = loop_timer_new(loop, on_look, source);
    if (source->timer)
        return source;
    jwks_source_free(source);
    err_no_memory(err);
    return NULL;
}

int jwks_source_check(const struct jwt_settings *settings, struct err *err)
{
    struct key_set got;

    if (!settings->jwks_file.data)
        return 0;
    TRY(read_keys(settings->jwks_file, &got, err));
    jwks_free(got.keys);
    return 0;
}

static void forget_keys(struct jwks_source *source)
{
    jwks_free(source->now.keys);
    source->now = (struct key_set){.keys = NULL};
    source->counts.keys = 0;
    source->counts.loaded_us = 0;
    source->failing = false;
    source->tried_us = source->asked_us = 0;
}

int jwks_source_configure(struct jwks_source *source, const struct jwt_settings *settings,
                          struct err *err)
{
    struct key_set got = {.keys = NULL};
    bool same = str_eq(source->settings.jwks_url, settings->jwks_url) &&
                str_eq(source->settings.jwks_file, settings->jwks_file) &&
                str_eq(source->settings.ca, settings->ca);

    if (!same && settings->jwks_file.data) {
        file_stamp_take(&source->seen_stamp, settings->jwks_file.data);
        source->read_stamp = source->seen_stamp;
        TRY(read_keys(settings->jwks_file, &got, err));
    }
    source->settings = *settings;
    if (same)
        return 0;
    source->generation++;
    forget_keys(source);
    if (got.keys) {
        source->counts.fetches++;
        take(source, &got);
    }
    if (settings->issuer.data)
        loop_timer_set(source->timer, 0);
    else
        loop_timer_stop(source->timer);
    return 0;
}

void jwks_source_free(struct jwks_source *source)
{
    if (!source)
        return;
    pthread_mutex_lock(&source->mutex);
    source->stop = true;
    if (source->client)
        http_client_interrupt(source->client);
    pthread_cond_signal(&source->ordered);
    pthread_mutex_unlock(&source->mutex);
    if (source->has_thread)
        pthread_join(source->thread, NULL);
    jwks_free(source->fetch.got.keys);
    jwks_free(source->now.keys);
    loop_timer_free(source->timer);
    pthread_cond_destroy(&source->ordered);
    pthread_mutex_destroy(&source->mutex);
    free(source);
}

const struct jwks *jwks_source_keys(const struct jwks_source *source)
{
    return source->now.keys;
}

bool jwks_source_is_failing(const struct jwks_source *source)
{
    return source->failing;
}

void jwks_source_counts(const struct jwks_source *source, struct jwks_counts *counts)
{
    *counts = source->counts;
}
