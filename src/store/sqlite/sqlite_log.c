/* Checks the log before SQLite opens it. SQLite reads a log up to the first frame whose sum is
 * wrong and silently drops the rest. That is right for a write that a power cut ended, and wrong
 * for a bit that flipped in the middle or in the header (F-D6). This file distinguishes the two:
 * every frame's sum continues that of the frame before, and nothing is written after a commit until
 * that commit is synced (nor a frame until its header is). So if a whole commit and a whole frame
 * follow the wrong one, that commit was acknowledged. The format is that of SQLite's page "WAL-mode
 * File Format". At the open, one thread. */
#include "store/sqlite/sqlite_int.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#define HEADER_BYTES 32
#define FRAME_HEADER_BYTES 24
#define PAGE_BYTES_MAX 65536
#define MAGIC_LITTLE 0x377F0682u /* sums over little-endian words; one more: big-endian */
#define PATH_BYTES_MAX 4096

struct sum {
    uint32_t a, b;
};

struct log_file {
    int fd;
    bool big_endian;
    bool damaged; /* so far */
    uint32_t page_bytes;
    unsigned char header[HEADER_BYTES];
    unsigned char *frame, *before; /* two frames of one block */
};

static uint32_t word_at(const unsigned char *bytes)
{
    uint32_t word;

    memcpy(&word, bytes, sizeof word);
    return be32toh(word);
}

static struct sum sum_add(struct sum sum, const unsigned char *data, size_t len, bool big_endian)
{
    for (size_t i = 0; i < len; i += 8) {
        uint32_t first = word_at(data + i), second = word_at(data + i + 4);

        sum.a += (big_endian ? first : __builtin_bswap32(first)) + sum.b;
        sum.b += (big_endian ? second : __builtin_bswap32(second)) + sum.a;
    }
    return sum;
}

static struct sum sum_at(const unsigned char *bytes)
{
    return (struct sum){word_at(bytes), word_at(bytes + 4)};
}

static bool sum_same(struct sum x, struct sum y)
{
    return x.a == y.a && x.b == y.b;
}

static bool is_page_size(uint32_t bytes)
{
    return bytes >= 512 && bytes <= PAGE_BYTES_MAX && (bytes & (bytes - 1)) == 0;
}

static bool header_is_whole(struct log_file *log)
{
    struct sum none = {0, 0};
    uint32_t magic = word_at(log->header);

    log->page_bytes = word_at(log->header + 8);
    log->big_endian = magic == MAGIC_LITTLE + 1;
    return (magic == MAGIC_LITTLE || log->big_endian) && is_page_size(log->page_bytes) &&
           sum_same(sum_add(none, log->header, 24, log->big_endian), sum_at(log->header + 24));
}

/* What a damaged header said is known elsewhere: the page size in the file itself, the generation
 * in the first frame, and the order of bytes is this machine's. */
static bool mend_header(struct log_file *log, const char *path)
{
    unsigned char size[2] = {0};
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t len = fd >= 0 ? pread(fd, size, sizeof size, 16) : -1;

    if (fd >= 0)
        close(fd);
    log->page_bytes = (uint32_t)size[0] << 8 | size[1];
    if (log->page_bytes == 1)
        log->page_bytes = PAGE_BYTES_MAX;
    log->big_endian = __BYTE_ORDER == __BIG_ENDIAN;
    log->damaged = true;
    return len == (ssize_t)sizeof size && is_page_size(log->page_bytes) &&
           pread(log->fd, log->header + 16, 8, HEADER_BYTES + 8) == 8;
}

/* False: there is nothing that could be lost. */
static bool read_header(struct log_file *log, const char *path)
{
    return pread(log->fd, log->header, HEADER_BYTES, 0) == HEADER_BYTES &&
           (header_is_whole(log) || mend_header(log, path));
}

static bool frame_is_whole(const struct log_file *log, struct sum before)
{
    struct sum sum = sum_add(sum_add(before, log->frame, 8, log->big_endian),
                             log->frame + FRAME_HEADER_BYTES, log->page_bytes, log->big_endian);

    return memcmp(log->frame + 8, log->header + 16, 8) == 0 &&
           sum_same(sum, sum_at(log->frame + 16));
}

/* On disks that may harm what lies beside a write, SQLite fills a commit up with copies of its last
 * frame: these are no next commit. One that writes the same page again is. */
static bool frame_is_copy(const struct log_file *log)
{
    return memcmp(log->frame, log->before, 8) == 0 &&
           memcmp(log->frame + FRAME_HEADER_BYTES, log->before + FRAME_HEADER_BYTES,
                  log->page_bytes) == 0;
}

/* Walks over all frames of this log's generation; counts commits that lie behind a wrong sum and
 * have a whole frame behind them. */
static uint32_t commits_behind_damage(struct log_file *log)
{
    size_t frame_bytes = FRAME_HEADER_BYTES + (size_t)log->page_bytes;
    struct sum before = sum_at(log->header + 24);
    bool after_commit = false;
    off_t offset = HEADER_BYTES;
    uint32_t commits = 0;

    while (pread(log->fd, log->frame, frame_bytes, offset) == (ssize_t)frame_bytes) {
        bool whole = frame_is_whole(log, before);
        unsigned char *next = log->before;

        if (whole && after_commit && !frame_is_copy(log))
            commits++;
        log->damaged = log->damaged || !whole;
        after_commit = whole && log->damaged && word_at(log->frame + 4) != 0;
        before = sum_at(log->frame + 16);
        log->before = log->frame;
        log->frame = next;
        offset += (off_t)frame_bytes;
    }
    return commits;
}

static int count_lost(struct log_file *log, uint32_t *commits, struct err *err)
{
    size_t frame_bytes = FRAME_HEADER_BYTES + (size_t)log->page_bytes;
    unsigned char *frames = calloc(2, frame_bytes);

    if (!frames)
        return err_set(err, ERR_MEMORY, "out of memory for the log of the store");
    log->frame = frames;
    log->before = frames + frame_bytes;
    *commits = commits_behind_damage(log);
    free(frames);
    return 0;
}

/* A log that its owner writes at the moment may look damaged to others. */
static bool is_in_use(const char *path)
{
    char name[PATH_BYTES_MAX + 8];
    bool in_use;
    int fd;

    snprintf(name, sizeof name, "%s-lock", path);
    fd = open(name, O_RDONLY | O_CLOEXEC);
    in_use = fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) < 0;
    if (fd >= 0)
        close(fd);
    return in_use;
}

/* What a killed process wrote and did not sync is taken for committed from now on: so it has to be
 * on the disk, also before anything is written behind it. */
int sqlite_log_check(const char *path, bool owner, struct err *err)
{
    struct log_file log = {.fd = -1};
    char name[PATH_BYTES_MAX + 8];
    uint32_t commits = 0;
    int rc = 0;

    snprintf(name, sizeof name, "%s-wal", path);
    log.fd = open(name, O_RDONLY | O_CLOEXEC);
    if (log.fd < 0)
        return 0; /* closed in order: there is none */
    if (read_header(&log, path))
        rc = count_lost(&log, &commits, err);
    if (commits > 0 && (owner || !is_in_use(path)))
        rc = err_set(err, ERR_IO, "the log '%s' is damaged: at least %u commits behind the damage "
                     "would be lost; keep a copy and restore a backup, or let SQLite drop them "
                     "with: sqlite3 '%s' 'PRAGMA wal_checkpoint(TRUNCATE)'", name, commits, path);
    if (rc == 0 && owner && fdatasync(log.fd) < 0)
        rc = err_set(err, ERR_IO, "cannot sync the log '%s': %s", name, strerror(errno));
    close(log.fd);
    return rc;
}
