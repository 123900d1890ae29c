/* Reading and appending. Nothing is synced: after a power cut the store has what the file lacks,
 * and it is appended again. The thread of anchor_writer.c; a start and commands only read. */
#include "engine/logs/anchor_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#define TAIL_BYTES (2 * ANCHOR_LINE_BYTES_MAX) /* holds one whole line, wherever it is cut */
#define READ_BYTES (64 * 1024)

static int file_err(const char *path, const char *what, struct err *err)
{
    return err_set(err, ERR_IO, "cannot %s the anchor file '%s': %s", what, path, strerror(errno));
}

static bool is_record(struct str line)
{
    struct str record, signature;

    return anchor_line_parse(line, &record, &signature);
}

static size_t whole_lines(const char *text, size_t len)
{
    while (len > 0 && text[len - 1] != '\n')
        len--;
    return len;
}

/* The last line that is a record, in the end of the file. One without its newline may be whole or a
 * piece: it counts as not there, goes before the next append, and its record comes again. */
static void find_last(const char *text, size_t len, struct anchor_file_end *end)
{
    end->torn = len > 0 && text[len - 1] != '\n';
    len = whole_lines(text, len);
    while (len > 0 && end->serial == 0) {
        size_t stop = len, begin;
        struct str record, signature;
        struct anchor anchor;

        if (text[stop - 1] == '\n')
            stop--;
        for (begin = stop; begin > 0 && text[begin - 1] != '\n'; begin--)
            ;
        if (anchor_line_parse(str_span(text + begin, stop - begin), &record, &signature) &&
            anchor_parse(record, &anchor)) {
            end->serial = anchor.serial;
            end->at_us = anchor.at_us;
            memcpy(end->hash, anchor.hash, sizeof end->hash);
            memcpy(end->key, anchor.key, sizeof end->key);
        }
        len = begin;
    }
}

static int read_tail(int fd, const char *path, char **text, size_t *len, struct err *err)
{
    struct stat info;
    off_t from;

    *len = 0;
    if (fstat(fd, &info) < 0)
        return file_err(path, "look at", err);
    from = info.st_size > TAIL_BYTES ? info.st_size - TAIL_BYTES : 0;
    *text = malloc((size_t)(info.st_size - from) + 1);
    if (!*text)
        return err_set(err, ERR_MEMORY, "out of memory for the anchor file");
    while (from + (off_t)*len < info.st_size) {
        ssize_t got = pread(fd, *text + *len, (size_t)(info.st_size - from) - *len,
                            from + (off_t)*len);

        if (got < 0)
            return file_err(path, "read", err);
        if (got == 0)
            break;
        *len += (size_t)got;
    }
    return 0;
}

int anchor_file_check_folder(const char *path, struct err *err)
{
    const char *slash = strrchr(path, '/');
    size_t len = slash ? (size_t)(slash - path) : 0;
    char folder[PATH_MAX];
    struct stat info;

    if (len == 0) /* the working folder, or the root */
        return 0;
    if (len >= sizeof folder)
        return err_set(err, ERR_INVALID, "log_anchor has %zu bytes; no path is that long",
                       strlen(path));
    memcpy(folder, path, len);
    folder[len] = '\0';
    if (stat(folder, &info) == 0)
        return S_ISDIR(info.st_mode) ? 0
                                     : err_set(err, ERR_INVALID, "log_anchor is '%s', but '%s' is "
                                               "no folder", path, folder);
    if (errno == ENOENT || errno == ENOTDIR)
        return err_set(err, ERR_INVALID, "log_anchor is '%s', but the folder '%s' is not there; "
                       "make it, or mount it", path, folder);
    return 0; /* whatever else it is shows when the file is opened */
}

int anchor_file_end(const char *path, struct anchor_file_end *end, struct err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    char *text = NULL;
    size_t len;
    int rc;

    *end = (struct anchor_file_end){.serial = 0};
    if (fd < 0)
        return errno == ENOENT ? 0 : file_err(path, "open", err);
    rc = read_tail(fd, path, &text, &len, err);
    if (rc == 0)
        find_last(text, len, end);
    free(text);
    close(fd);
    return rc;
}

/* A file that can only be appended to keeps the piece, on a line of its own; what follows begins
 * like it, which verification knows. */
static int mend_end(int fd, const char *path, struct err *err)
{
    char *text = NULL;
    size_t len;
    struct stat info;
    int rc = read_tail(fd, path, &text, &len, err);

    if (rc == 0 && fstat(fd, &info) == 0 &&
        ftruncate(fd, info.st_size - (off_t)(len - whole_lines(text, len))) < 0 &&
        write(fd, "\n", 1) != 1)
        rc = file_err(path, "write", err);
    free(text);
    return rc;
}

int anchor_file_append(const char *path, struct str lines, bool torn, struct err *err)
{
    int fd = open(path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    int rc = 0;

    if (fd < 0)
        return file_err(path, "open", err);
    if (torn)
        rc = mend_end(fd, path, err);
    if (rc == 0 && write(fd, lines.data, lines.len) != (ssize_t)lines.len)
        rc = file_err(path, "write", err);
    close(fd);
    return rc;
}

/* Hands on the whole lines that are in the buffer; what is left is moved to its front. */
static void give_lines(struct buf *buf, void (*line)(void *ctx, struct str line), void *ctx)
{
    size_t begin = 0;
    char *end;

    while (begin < buf->len && (end = memchr(buf->data + begin, '\n', buf->len - begin)) != NULL) {
        line(ctx, str_span(buf->data + begin, (size_t)(end - buf->data) - begin));
        begin = (size_t)(end - buf->data) + 1;
    }
    buf_drop_front(buf, begin);
}

int anchor_file_read(const char *path, void (*line)(void *ctx, struct str line), void *ctx,
                     struct err *err)
{
    struct buf buf = BUF_INIT(ANCHOR_LINE_BYTES_MAX + READ_BYTES);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = 1;
    int rc = 0;

    if (fd < 0)
        return file_err(path, "open", err);
    while (rc == 0 && got > 0) {
        if (!buf_reserve(&buf, READ_BYTES)) {
            rc = err_set(err, ERR_TOO_LARGE, "the anchor file '%s' has lines longer than any "
                         "record", path);
            break;
        }
        got = read(fd, buf.data + buf.len, READ_BYTES);
        if (got < 0)
            rc = file_err(path, "read", err);
        else
            buf.len += (size_t)got;
        give_lines(&buf, line, ctx);
    }
    if (rc == 0 && is_record(buf_view(&buf))) /* or one under way, or what a crash left of it */
        line(ctx, buf_view(&buf));
    buf_deinit(&buf);
    close(fd);
    return rc;
}
