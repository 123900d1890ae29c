/* The cache of zones. One lock around everything: a hit is a look into a map, and a miss or a check
 * reads a small file that the system has in memory. A zone is replaced, never changed; a holder of
 * the old one keeps it until it gives it back. */
#include "calendar/zones.h"

#include "base/map.h"
#include "calendar/zone_int.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>

#define PATH_BYTES 4096

/* What tells one version of a file from another. */
struct mark {
    bool there;
    dev_t device;
    ino_t inode;
    off_t bytes;
    struct timespec changed;
};

struct entry {
    char name[ZONE_NAME_BYTES_MAX + 1];
    struct zone *zone; /* NULL: gone or not readable; the error is kept */
    struct err err;
    struct mark mark;
    int64_t checked_us;
    int64_t used_us;
};

struct zones {
    pthread_mutex_t lock;
    struct map entries;
    char *folder;
    uint64_t generation;
};

int zones_new(const char *folder, struct zones **zones, struct err *err)
{
    struct zones *made = calloc(1, sizeof *made);

    if (!made || (folder && !(made->folder = strdup(folder)))) {
        free(made);
        return err_set(err, ERR_MEMORY, "no memory for time zones");
    }
    pthread_mutex_init(&made->lock, NULL);
    made->entries = MAP_INIT;
    *zones = made;
    return 0;
}

static void drop_zone(struct zone *zone)
{
    if (zone && --zone->holders == 0)
        zone_free(zone);
}

static void entry_free(struct entry *entry)
{
    drop_zone(entry->zone);
    free(entry);
}

void zones_free(struct zones *zones)
{
    uint32_t cursor = 0;
    struct entry *entry;

    if (!zones)
        return;
    while ((entry = map_next(&zones->entries, &cursor))) {
        map_remove(&zones->entries, str_of(entry->name));
        entry_free(entry);
    }
    map_deinit(&zones->entries);
    pthread_mutex_destroy(&zones->lock);
    free(zones->folder);
    free(zones);
}

static struct mark mark_of(const struct zones *zones, struct str name)
{
    struct mark mark = {0};
    char path[PATH_BYTES];
    struct stat info;

    if (!zone_file_path(zones->folder, name, path, sizeof path) || stat(path, &info) < 0)
        return mark;
    return (struct mark){true, info.st_dev, info.st_ino, info.st_size, info.st_mtim};
}

static bool mark_eq(const struct mark *a, const struct mark *b)
{
    return a->there == b->there && a->device == b->device && a->inode == b->inode &&
           a->bytes == b->bytes && a->changed.tv_sec == b->changed.tv_sec &&
           a->changed.tv_nsec == b->changed.tv_nsec;
}

/* Reads the zone of an entry (again). The old zone is dropped even when the new file cannot be
 * read: rules that are no longer the system's would give wrong times silently. */
static void entry_read(struct zones *zones, struct entry *entry)
{
    struct zone *zone = NULL;
    bool had = entry->zone != NULL;

    entry->err = (struct err){0};
    if (zone_load(zones->folder, str_of(entry->name), &zone, &entry->err) == 0)
        zone->holders = 1;
    else if (!entry->mark.there && had)
        err_set_field(&entry->err, ERR_INVALID, "timezone",
                      "the time zone \"%s\" is gone from the system; install tzdata again or "
                      "choose another zone", entry->name);
    drop_zone(entry->zone);
    entry->zone = zone;
}

/* The file is looked at before it is read: when it changes in between, the next check sees it. */
static void entry_check(struct zones *zones, struct entry *entry, int64_t now_us)
{
    struct mark mark = mark_of(zones, str_of(entry->name));
    bool same = mark_eq(&mark, &entry->mark);

    entry->checked_us = now_us;
    if (same && (entry->zone || entry->err.code == ERR_INVALID))
        return;
    entry->mark = mark;
    entry_read(zones, entry); /* also when there was no memory for it the last time */
    if (!same || entry->zone)
        zones->generation++;
}

/* Makes room by forgetting what was not asked for the longest. */
static void forget_one(struct zones *zones)
{
    struct entry *oldest = NULL;
    struct entry *entry;
    uint32_t cursor = 0;

    while ((entry = map_next(&zones->entries, &cursor)))
        if (!oldest || entry->used_us < oldest->used_us)
            oldest = entry;
    if (!oldest)
        return;
    map_remove(&zones->entries, str_of(oldest->name));
    entry_free(oldest);
}

/* Names that never were a zone are not cached: a client could invent any number of them. */
static int entry_add(struct zones *zones, struct str name, int64_t now_us, struct entry **added,
                     struct err *err)
{
    struct entry *entry;

    if (name.len > ZONE_NAME_BYTES_MAX)
        return err_set_field(err, ERR_INVALID, "timezone", "a time zone's name has at most %d "
                             "bytes", ZONE_NAME_BYTES_MAX);
    if (map_count(&zones->entries) >= ZONES_MAX)
        forget_one(zones);
    entry = calloc(1, sizeof *entry);
    if (!entry)
        return err_set(err, ERR_MEMORY, "no memory for a time zone");
    memcpy(entry->name, name.data ? name.data : "", name.len);
    entry->mark = mark_of(zones, name);
    entry->checked_us = now_us;
    entry_read(zones, entry);
    if (!entry->zone || map_put(&zones->entries, str_of(entry->name), entry) < 0) {
        struct err why = entry->err;

        entry_free(entry);
        return why.code ? err_set_field(err, why.code, why.field, "%s", why.text)
                        : err_set(err, ERR_MEMORY, "no memory for a time zone");
    }
    *added = entry;
    return 0;
}

/* A file that is there and cannot be read (rights, a loop of links, a bad disk) is a fault of that
 * zone, like a missing file: not of the caller, and not of other zones. */
static int refuse(struct str name, const struct err *why, struct err *err)
{
    struct err read = *why;

    if (read.code != ERR_IO)
        return err_set_field(err, read.code, read.field, "%s", read.text);
    return err_set_field(err, ERR_INVALID, "timezone", "the time zone \"" STR_FMT "\" cannot be "
                         "read: %s", STR_ARG(str_cut(name, ZONE_NAME_BYTES_MAX)), read.text);
}

int zones_get(struct zones *zones, struct str name, int64_t now_us, const struct zone **zone,
              struct err *err)
{
    struct err why = {0};
    struct entry *entry;
    int rc = 0;

    *zone = NULL;
    pthread_mutex_lock(&zones->lock);
    entry = map_get(&zones->entries, name);
    if (!entry)
        rc = entry_add(zones, name, now_us, &entry, &why);
    else if (now_us - entry->checked_us >= ZONES_CHECK_US || now_us < entry->checked_us)
        entry_check(zones, entry, now_us);
    if (rc < 0) {
        rc = refuse(name, &why, err);
    } else if (!entry->zone) {
        rc = refuse(name, &entry->err, err);
    } else {
        entry->used_us = now_us;
        entry->zone->holders++;
        *zone = entry->zone;
    }
    pthread_mutex_unlock(&zones->lock);
    return rc;
}

void zones_put(struct zones *zones, const struct zone *zone)
{
    if (!zone)
        return;
    pthread_mutex_lock(&zones->lock);
    drop_zone((struct zone *)zone);
    pthread_mutex_unlock(&zones->lock);
}

uint64_t zones_generation(struct zones *zones)
{
    uint64_t generation;

    pthread_mutex_lock(&zones->lock);
    generation = zones->generation;
    pthread_mutex_unlock(&zones->lock);
    return generation;
}

void zones_check(struct zones *zones, int64_t now_us)
{
    struct entry *entry;
    uint32_t cursor = 0;

    pthread_mutex_lock(&zones->lock);
    while ((entry = map_next(&zones->entries, &cursor)))
        entry_check(zones, entry, now_us);
    pthread_mutex_unlock(&zones->lock);
}
