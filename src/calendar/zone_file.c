/* Reads zones from the system's zoneinfo. The only file of the calendar that touches the disk.
 * Any thread. */
#include "calendar/zone.h"

#include "base/buf.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEFAULT_FOLDER "/usr/share/zoneinfo"
#define PATH_BYTES 4096

static bool is_name_byte(char byte)
{
    return (byte >= 'A' && byte <= 'Z') || (byte >= 'a' && byte <= 'z') ||
           (byte >= '0' && byte <= '9') || byte == '_' || byte == '+' || byte == '-';
}

/* Names as IANA gives them: parts of letters, digits, '_', '+' and '-' with slashes between. No dot
 * is among them, so that no name leads out of the folder. */
static bool name_valid(struct str name)
{
    if (!name.data || name.len == 0 || name.len > ZONE_NAME_BYTES_MAX)
        return false;
    for (size_t i = 0; i < name.len; i++) {
        bool at_end = i == 0 || i == name.len - 1 || name.data[i - 1] == '/';

        if (!is_name_byte(name.data[i]) && (name.data[i] != '/' || at_end))
            return false;
    }
    return true;
}

bool zone_file_path(const char *folder, struct str name, char *path, size_t path_bytes)
{
    int len;

    if (!name_valid(name))
        return false;
    if (!folder)
        folder = getenv("TZDIR");
    if (!folder || !folder[0])
        folder = DEFAULT_FOLDER;
    len = snprintf(path, path_bytes, "%s/" STR_FMT, folder, STR_ARG(name));
    return len > 0 && (size_t)len < path_bytes;
}

static int unknown(struct str name, struct err *err)
{
    return err_set_field(err, ERR_INVALID, "timezone",
                         "there is no time zone \"" STR_FMT "\"; use an IANA name such as "
                         "Europe/Paris, or UTC",
                         STR_ARG(str_cut(name, ZONE_NAME_BYTES_MAX)));
}

/* Only regular files: a folder (Europe) is no zone, and a pipe would never end. */
static int read_bytes(const char *path, struct str name, struct buf *bytes, struct err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat info;
    int rc = 0;

    if (fd < 0 || fstat(fd, &info) < 0 || !S_ISREG(info.st_mode)) {
        rc = fd >= 0 || errno == ENOENT || errno == ENOTDIR
                 ? unknown(name, err)
                 : err_set(err, ERR_IO, "cannot open %s: %s", path, strerror(errno));
        goto out;
    }
    for (;;) {
        ssize_t got;

        if (!buf_reserve(bytes, 4096)) {
            rc = err_set(err, ERR_MALFORMED, "%s is too large for a time zone", path);
            break;
        }
        got = read(fd, bytes->data + bytes->len, 4096);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            rc = err_set(err, ERR_IO, "cannot read %s: %s", path, strerror(errno));
        if (got <= 0)
            break;
        bytes->len += (size_t)got;
    }
out:
    if (fd >= 0)
        close(fd);
    return rc;
}

static bool is_utc(struct str name)
{
    return str_is(name, "UTC") || str_is(name, "Etc/UTC");
}

int zone_load(const char *folder, struct str name, struct zone **zone, struct err *err)
{
    BUF_AUTO struct buf bytes = BUF_INIT(ZONE_FILE_BYTES_MAX + 8192);
    char path[PATH_BYTES];
    int rc;

    *zone = NULL;
    if (is_utc(name))
        return zone_new_utc(name, zone, err);
    if (!zone_file_path(folder, name, path, sizeof path))
        return unknown(name, err);
    rc = read_bytes(path, name, &bytes, err);
    if (rc == 0)
        rc = zone_parse(name, buf_view(&bytes), zone, err);
    if (rc == -ERR_MALFORMED)
        rc = err_set_field(err, ERR_INVALID, "timezone",
                           "the time zone \"" STR_FMT "\" cannot be used: %s", STR_ARG(name),
                           err ? err->text : "");
    return rc;
}
