#include "engine/history/archive.h"

#include "base/clock.h"
#include "core/bounds.h"
#include "core/render.h"
#include "store/sealed/sealed.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>
#include <zstd_errors.h>

#define LINES_BYTES_MAX (256 * 1024 * 1024) /* of one chunk of removed tasks */
#define COMPRESSION_LEVEL 3
#define EVENT_PAGES_MAX 1000 /* of 1,000 events each */

/* Oldest first, all of them: the store gives them in pages from the newest on. */
static int write_events(struct store *store, struct store_reader *reader, const struct task *task,
                        struct arena *arena, struct buf *out, struct err *err)
{
    struct task_event **pages = arena_alloc_array(arena, EVENT_PAGES_MAX, sizeof *pages);
    uint32_t *counts = arena_alloc_array(arena, EVENT_PAGES_MAX, sizeof *counts);
    int64_t before_seq = 0;
    uint32_t count = 0;
    bool first = true;

    TRY_MEMORY(pages && counts);
    for (; count < EVENT_PAGES_MAX; count++) {
        TRY(sealed_below(store)->read_events(reader, &task->id, before_seq, BOUND_LIST_LIMIT, arena,
                                             &pages[count], &counts[count], err));
        if (counts[count] == 0)
            break;
        before_seq = pages[count][counts[count] - 1].seq;
    }
    while (count-- > 0) {
        for (uint32_t i = counts[count]; i-- > 0;) {
            buf_text(out, first ? "" : ",");
            render_event(out, &pages[count][i], &task->id, task->spec.correlation_id,
                         false);
            first = false;
        }
    }
    return 0;
}

/* {"task":{…},"events":[…]} */
static int write_line(struct store *store, struct store_reader *reader, const struct task *task,
                      struct buf *out, struct err *err)
{
    ARENA_AUTO struct arena arena = ARENA_INIT(0);
    struct render_extra extra = {.single = true};
    struct task *whole;
    int64_t created_us;

    TRY(sealed_below(store)->read_task(reader, &task->id, &arena, &whole, err));
    if (whole)
        TRY(sealed_below(store)->read_result(reader, &task->id, &arena, &extra.result,
                                             &created_us, err));
    if (whole) {
        buf_text(out, "{\"task\":");
        render_task(out, whole, &extra);
        buf_text(out, ",\"events\":[");
        TRY(write_events(store, reader, task, &arena, out, err));
        buf_text(out, "]}\n");
    }
    return 0;
}

static bool is_zeros(const char *data, off_t len)
{
    return len == 0 || (data[0] == 0 && memcmp(data, data + 1, (size_t)len - 1) == 0);
}

/* Where a last frame begins that goes beyond the end of the file, or the zeros that some file
 * systems leave for what the power cut; otherwise the end. Other damage is left alone. */
static off_t whole_bytes(int fd, off_t len)
{
    char *data = mmap(NULL, (size_t)len, PROT_READ, MAP_PRIVATE, fd, 0);
    size_t frame = 0;
    off_t at = 0;
    bool torn;

    if (data == MAP_FAILED)
        return len;
    while (at < len && !ZSTD_isError(frame)) {
        frame = ZSTD_findFrameCompressedSize(data + at, (size_t)(len - at));
        if (!ZSTD_isError(frame))
            at += (off_t)frame;
    }
    torn = at < len && (ZSTD_getErrorCode(frame) == ZSTD_error_srcSize_wrong ||
                        is_zeros(data + at, len - at));
    munmap(data, (size_t)len);
    return torn ? at : len;
}

/* Part of a frame, left by a kill in a write, would hide everything after it. It is cut off: its
 * tasks were not removed and are written again. *len: where the file ends now. */
static int cut_torn_tail(int fd, bool look, off_t *len)
{
    struct stat info;
    off_t whole;

    if (fstat(fd, &info) < 0)
        return -1;
    *len = info.st_size;
    if (!look || *len == 0)
        return 0;
    whole = whole_bytes(fd, *len);
    if (whole < *len && ftruncate(fd, whole) < 0)
        return -1;
    *len = whole;
    return 0;
}

static int append_file(struct str folder, struct str data, int64_t now_us, bool *checked,
                       struct err *err)
{
    char path[4096];
    char day[CLOCK_TEXT_BYTES];
    off_t before = 0;
    int fd;
    int rc = 0;

    clock_format(now_us, day);
    snprintf(path, sizeof path, STR_FMT, STR_ARG(folder));
    if (mkdir(path, 0700) < 0 && errno != EEXIST)
        return err_set(err, ERR_UNAVAILABLE, "cannot make the archive folder '%s': %s", path,
                       strerror(errno));
    snprintf(path, sizeof path, STR_FMT "/tasks-%.10s.jsonl.zst", STR_ARG(folder), day);
    fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd < 0 || cut_torn_tail(fd, !*checked, &before) < 0) {
        err_set(err, ERR_UNAVAILABLE, "cannot open the archive '%s': %s", path, strerror(errno));
        if (fd >= 0)
            close(fd);
        return -(int)err->code;
    }
    *checked = true;
    for (size_t done = 0; done < data.len && rc == 0;) {
        ssize_t wrote = write(fd, data.data + done, data.len - done);

        if (wrote > 0)
            done += (size_t)wrote;
        else if (wrote < 0 && errno != EINTR)
            rc = err_set(err, ERR_UNAVAILABLE, "cannot write the archive '%s': %s", path,
                         strerror(errno));
    }
    if (rc == 0 && fsync(fd) < 0)
        rc = err_set(err, ERR_UNAVAILABLE, "cannot sync the archive '%s': %s", path,
                     strerror(errno));
    if (rc < 0 && ftruncate(fd, before) < 0)
        *checked = false;
    close(fd);
    return rc;
}

int archive_write(struct store *store, struct store_reader *reader, struct str folder,
                  struct task *const *tasks, uint32_t count, int64_t now_us, bool *checked,
                  struct err *err)
{
    BUF_AUTO struct buf lines = BUF_INIT(LINES_BYTES_MAX);
    void *packed = NULL;
    size_t cap, len;
    int rc = 0;

    for (uint32_t i = 0; i < count && rc == 0; i++)
        rc = write_line(store, reader, tasks[i], &lines, err);
    if (rc < 0)
        goto out;
    cap = ZSTD_compressBound(lines.len);
    packed = malloc(cap);
    if (lines.failed || !packed) {
        rc = err_no_memory(err);
        goto out;
    }
    len = ZSTD_compress(packed, cap, lines.data, lines.len, COMPRESSION_LEVEL);
    if (ZSTD_isError(len))
        rc = err_set(err, ERR_MEMORY, "cannot compress the archive: %s", ZSTD_getErrorName(len));
    else
        rc = append_file(folder, str_span(packed, len), now_us, checked, err);
out:
    free(packed);
    return rc;
}
