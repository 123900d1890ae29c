#include "engine/logs/anchor_writer.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/thread.h"

#include <errno.h>
#include <stdlib.h>

#define ROOM_BYTES ((size_t)4 * 1024 * 1024) /* then it takes no more; one gift may go beyond */
#define GIFT_BYTES_MAX ((size_t)64 * ANCHOR_LINE_BYTES_MAX)
#define AGAIN_US CLOCK_SECOND_US /* after a failure */
#define END_US CLOCK_SECOND_US   /* so long its end is waited for */

struct anchor_writer {
    char *path;
    const struct log *log;
    pthread_t thread;
    pthread_mutex_t mutex; /* of all that follows */
    pthread_cond_t changed;
    struct buf lines;      /* given, not taken yet */
    int64_t given;         /* serial of the last one */
    int64_t written;
    bool known;            /* where the file ends */
    bool torn;             /* in the middle of a line */
    bool well;
    bool busy;             /* it is at the file */
    bool stop;
    bool ended;
    bool left;             /* the engine no longer waits for its end: it frees itself */
};

static void wait_until(struct anchor_writer *writer, int64_t until_boot_us)
{
    int64_t left_us = until_boot_us - clock_boot_us();
    struct timespec at = thread_deadline(left_us > 0 ? left_us : 0);

    if (left_us > 0)
        pthread_cond_timedwait(&writer->changed, &writer->mutex, &at);
}

static void writer_free(struct anchor_writer *writer)
{
    buf_deinit(&writer->lines);
    pthread_cond_destroy(&writer->changed);
    pthread_mutex_destroy(&writer->mutex);
    free(writer->path);
    free(writer);
}

/* ---- the thread ---- */

/* Under the mutex. Told once per time that it goes wrong; the log may be gone with the engine. */
static void note(struct anchor_writer *writer, int rc, const struct err *err)
{
    if (rc < 0 && writer->well && !writer->left)
        LOG(writer->log, LOG_WARN, "log.anchor_behind", KC("reason", err->text));
    writer->well = rc == 0;
    writer->known = rc == 0;
    writer->busy = false;
    pthread_cond_broadcast(&writer->changed);
}

/* The mutex is held, but not while the file is touched; the same holds for what follows. */
static void find_end(struct anchor_writer *writer)
{
    int64_t again_us = clock_boot_us() + AGAIN_US;
    struct anchor_file_end end;
    struct err err = {0};
    int rc;

    if (!writer->well)
        while (!writer->stop && clock_boot_us() < again_us)
            wait_until(writer, again_us);
    if (writer->stop)
        return;
    writer->busy = true;
    pthread_mutex_unlock(&writer->mutex);
    rc = anchor_file_end(writer->path, &end, &err);
    pthread_mutex_lock(&writer->mutex);
    if (rc == 0) {
        buf_reset(&writer->lines);
        writer->given = writer->written = end.serial;
        writer->torn = end.torn;
    }
    note(writer, rc, &err);
}

static void append(struct anchor_writer *writer)
{
    struct buf lines = writer->lines;
    int64_t serial = writer->given;
    struct err err = {0};
    int rc;

    writer->lines = BUF_INIT(ROOM_BYTES + GIFT_BYTES_MAX);
    writer->busy = true;
    pthread_mutex_unlock(&writer->mutex);
    rc = anchor_file_append(writer->path, buf_view(&lines), writer->torn, &err);
    buf_deinit(&lines);
    pthread_mutex_lock(&writer->mutex);
    if (rc == 0) {
        writer->written = serial;
        writer->torn = false;
    }
    note(writer, rc, &err);
}

static void *run(void *ctx)
{
    struct anchor_writer *writer = ctx;
    bool left;

    pthread_mutex_lock(&writer->mutex);
    while (!writer->stop || (writer->known && writer->lines.len > 0)) {
        if (!writer->known)
            find_end(writer);
        else if (writer->lines.len > 0)
            append(writer);
        else
            pthread_cond_wait(&writer->changed, &writer->mutex);
    }
    writer->ended = true;
    left = writer->left;
    pthread_cond_broadcast(&writer->changed);
    pthread_mutex_unlock(&writer->mutex);
    if (left)
        writer_free(writer);
    return NULL;
}

/* ---- the thread that gives lines ---- */

struct anchor_writer *anchor_writer_start(const char *path, const struct anchor_file_end *end,
                                          const struct log *log, struct err *err)
{
    struct anchor_writer *writer = calloc(1, sizeof *writer);

    if (!writer || !(writer->path = strdup(path))) {
        err_set(err, ERR_MEMORY, "out of memory for the anchor file");
        free(writer);
        return NULL;
    }
    writer->log = log;
    writer->lines = BUF_INIT(ROOM_BYTES + GIFT_BYTES_MAX);
    writer->known = writer->well = end != NULL;
    if (end) {
        writer->given = writer->written = end->serial;
        writer->torn = end->torn;
    }
    pthread_mutex_init(&writer->mutex, NULL);
    thread_cond_init(&writer->changed);
    if (thread_start(&writer->thread, 0, run, writer) != 0) {
        err_set(err, ERR_MEMORY, "cannot start the thread of the anchor file");
        writer_free(writer);
        return NULL;
    }
    return writer;
}

bool anchor_writer_has_room(struct anchor_writer *writer, int64_t *after)
{
    bool room;

    pthread_mutex_lock(&writer->mutex);
    room = writer->known && writer->lines.len < ROOM_BYTES && !writer->stop;
    *after = writer->given;
    pthread_mutex_unlock(&writer->mutex);
    return room;
}

void anchor_writer_give(struct anchor_writer *writer, int64_t after, struct str lines,
                        int64_t serial)
{
    size_t before;

    pthread_mutex_lock(&writer->mutex);
    before = writer->lines.len;
    if (writer->known && writer->given == after) {
        buf_str(&writer->lines, lines);
        if (writer->lines.failed) { /* no memory: asked for again */
            writer->lines.failed = false;
            writer->lines.len = before;
        } else {
            writer->given = serial;
        }
        pthread_cond_broadcast(&writer->changed);
    }
    pthread_mutex_unlock(&writer->mutex);
}

static bool is_done(const struct anchor_writer *writer)
{
    return writer->known && writer->written == writer->given;
}

bool anchor_writer_is_done(struct anchor_writer *writer)
{
    bool done;

    pthread_mutex_lock(&writer->mutex);
    done = is_done(writer);
    pthread_mutex_unlock(&writer->mutex);
    return done;
}

bool anchor_writer_is_well(struct anchor_writer *writer)
{
    bool well;

    pthread_mutex_lock(&writer->mutex);
    well = writer->well;
    pthread_mutex_unlock(&writer->mutex);
    return well;
}

bool anchor_writer_wait(struct anchor_writer *writer, int64_t until_boot_us)
{
    bool in_time;

    pthread_mutex_lock(&writer->mutex);
    while (!is_done(writer) && (writer->busy || writer->well) && clock_boot_us() < until_boot_us)
        wait_until(writer, until_boot_us);
    in_time = is_done(writer) || (!writer->busy && !writer->well);
    pthread_mutex_unlock(&writer->mutex);
    return in_time;
}

void anchor_writer_stop(struct anchor_writer *writer)
{
    int64_t until_us = clock_boot_us() + END_US;
    pthread_t thread;
    bool left;

    if (!writer)
        return;
    thread = writer->thread;
    pthread_mutex_lock(&writer->mutex);
    writer->stop = true;
    pthread_cond_broadcast(&writer->changed);
    while (!writer->ended && clock_boot_us() < until_us)
        wait_until(writer, until_us);
    left = writer->left = !writer->ended;
    pthread_mutex_unlock(&writer->mutex);
    if (left) { /* from here on it may be gone */
        pthread_detach(thread);
        return;
    }
    pthread_join(thread, NULL);
    writer_free(writer);
}
