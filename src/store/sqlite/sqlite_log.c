/* Looks at the log before SQLite does. SQLite takes a log up to the first frame whose sum is wrong
 * and forgets the rest without a word: right for the end of a write that the power cut, wrong for a
 * bit that flipped in the middle (F-D6). The two can be told apart: every frame's sum goes on from
 * that of the frame before, and nothing is written after a commit before that commit is synced. So
 * a whole commit with a whole frame behind it, both after the wrong one, was acknowledged once.
 * The format is the one of SQLite's page "WAL-mode File Format". At the open, one thread. */
#include "store/sqlite/sqlite_int.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
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
    uint32_t page_bytes;
    unsigned char header[HEADER_BYTES];
    unsigned char *frame;
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

/* False: there is no log, or not one whose header can be trusted. */
static bool read_header(struct log_file *log)
{
    struct sum none = {0, 0};
    uint32_t magic;

    if (pread(log->fd, log->header, HEADER_BYTES, 0) != HEADER_BYTES)
        return false;
    magic = word_at(log->header);
    log->page_bytes = word_at(log->header + 8);
    log->big_endian = magic == MAGIC_LITTLE + 1;
    return (magic == MAGIC_LITTLE || log->big_endian) && log->page_bytes >= 512 &&
           log->page_bytes <= PAGE_BYTES_MAX && log->page_bytes % 8 == 0 &&
           sum_same(sum_add(none, log->header, 24, log->big_endian), sum_at(log->header + 24));
}

/* Walks over all frames of this log's generation; counts commits that lie behind a wrong sum and
 * have a whole frame behind them. On disks that may harm what lies beside a write, SQLite fills a
 * commit up with copies of its last frame: these are no next commit. */
static uint32_t commits_behind_damage(struct log_file *log)
{
    size_t frame_bytes = FRAME_HEADER_BYTES + (size_t)log->page_bytes;
    struct sum before = sum_at(log->header + 24);
    unsigned char last[8] = {0}; /* page and commit mark of the frame before */
    bool damaged = false, after_commit = false;
    off_t offset = HEADER_BYTES;
    uint32_t commits = 0;

    while (pread(log->fd, log->frame, frame_bytes, offset) == (ssize_t)frame_bytes) {
        struct sum sum = sum_add(sum_add(before, log->frame, 8, log->big_endian),
                                 log->frame + FRAME_HEADER_BYTES, log->page_bytes,
                                 log->big_endian);
        bool whole = memcmp(log->frame + 8, log->header + 16, 8) == 0 &&
                     sum_same(sum, sum_at(log->frame + 16));

        if (whole && damaged && after_commit && memcmp(last, log->frame, sizeof last) != 0)
            commits++;
        memcpy(last, log->frame, sizeof last);
        damaged = damaged || !whole;
        after_commit = whole && damaged && word_at(log->frame + 4) != 0;
        before = sum_at(log->frame + 16);
        offset += (off_t)frame_bytes;
    }
    return commits;
}

int sqlite_log_check(const char *path, struct err *err)
{
    struct log_file log = {.fd = -1};
    char name[PATH_BYTES_MAX + 8];
    uint32_t commits = 0;
    int rc = 0;

    snprintf(name, sizeof name, "%s-wal", path);
    log.fd = open(name, O_RDONLY | O_CLOEXEC);
    if (log.fd < 0)
        return 0; /* closed in order: there is none */
    if (read_header(&log)) {
        log.frame = malloc(FRAME_HEADER_BYTES + (size_t)log.page_bytes);
        if (log.frame)
            commits = commits_behind_damage(&log);
        else
            rc = err_set(err, ERR_MEMORY, "out of memory for the log of the store");
    }
    if (commits > 0)
        rc = err_set(err, ERR_IO, "the log '%s' is damaged: at least %u commits behind the damage "
                     "would be lost; keep a copy and restore a backup, or let SQLite drop them "
                     "with: sqlite3 '%s' 'PRAGMA wal_checkpoint(TRUNCATE)'", name, commits, path);
    free(log.frame);
    close(log.fd);
    return rc;
}
