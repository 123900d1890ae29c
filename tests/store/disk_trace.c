#include "disk_trace.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SECTOR 512

enum survival { NOTHING, EVERYTHING, BEGINNING, ANY_WRITES, TORN, SURVIVALS };

static void *must(void *memory)
{
    if (!memory)
        abort();
    return memory;
}

void disk_trace_init(struct disk_trace *trace)
{
    memset(trace, 0, sizeof *trace);
}

void disk_trace_deinit(struct disk_trace *trace)
{
    for (uint32_t i = 0; i < trace->count; i++)
        free(trace->events[i].data);
    for (uint32_t i = 0; i < trace->files_count; i++) {
        free(trace->files[i].durable);
        free(trace->files[i].ghost);
        free(trace->files[i].pending);
    }
    free(trace->events);
}

static uint32_t file_of(struct disk_trace *trace, const char *path)
{
    for (uint32_t i = 0; i < trace->files_count; i++)
        if (strcmp(trace->files[i].path, path) == 0)
            return i;
    if (trace->files_count == TRACE_FILES_MAX)
        abort();
    snprintf(trace->files[trace->files_count].path, SHIM_PATH_BYTES, "%s", path);
    return trace->files_count++;
}

void disk_trace_watch(void *ctx, enum shim_change change, const char *path, int64_t offset,
                      const void *data, int len)
{
    struct disk_trace *trace = ctx;
    uint32_t count = trace->count;
    struct trace_event *event;

    if (count == TRACE_EVENTS_MAX)
        abort();
    if (count == trace->cap) {
        trace->cap = trace->cap ? trace->cap * 2 : 1024;
        trace->events = must(realloc(trace->events, trace->cap * sizeof *trace->events));
    }
    event = &trace->events[count];
    *event = (struct trace_event){change, file_of(trace, path), offset, len, NULL};
    if (len > 0)
        event->data = memcpy(must(malloc((size_t)len)), data, (size_t)len);
    trace->count = count + 1;
}

static void grow(struct trace_file *file, int64_t size)
{
    if (size <= file->size)
        return;
    if (size > file->cap) {
        file->cap = 2 * size;
        file->durable = must(realloc(file->durable, (size_t)file->cap));
    }
    memset(file->durable + file->size, 0, (size_t)(size - file->size));
    file->size = size;
}

static void apply_bytes(struct trace_file *file, const struct trace_event *event, int from, int to)
{
    grow(file, event->offset + to);
    memcpy(file->durable + event->offset + from, event->data + from, (size_t)(to - from));
}

static void apply(struct trace_file *file, const struct trace_event *event)
{
    if (event->change == SHIM_TRUNCATED)
        file->size = event->offset < file->size ? event->offset : file->size;
    else
        apply_bytes(file, event, 0, event->len);
}

static void await(struct trace_file *file, uint32_t event)
{
    if (file->pending_count == file->pending_cap) {
        file->pending_cap = file->pending_cap ? file->pending_cap * 2 : 64;
        file->pending = must(realloc(file->pending, file->pending_cap * sizeof *file->pending));
    }
    file->pending[file->pending_count++] = event;
}

static void forget_ghosts(struct disk_trace *trace)
{
    for (uint32_t i = 0; i < trace->files_count; i++) {
        free(trace->files[i].ghost);
        trace->files[i].ghost = NULL;
    }
}

/* SQLite syncs the folder with the first sync of a log it made: until then what was deleted may
 * come back. */
static void delete(struct trace_file *file, bool folder_synced)
{
    if (folder_synced) {
        free(file->ghost);
        file->ghost = NULL;
    } else if (!file->ghost) {
        file->ghost = must(malloc((size_t)file->size + 1));
        memcpy(file->ghost, file->durable ? file->durable : (unsigned char *)"",
               (size_t)file->size);
        file->ghost_size = file->size;
    }
    file->size = 0;
    file->pending_count = 0;
    file->was_synced = false;
}

static void sync_file(struct disk_trace *trace, struct trace_file *file)
{
    for (uint32_t i = 0; i < file->pending_count; i++)
        apply(file, &trace->events[file->pending[i]]);
    file->pending_count = 0;
    if (!file->was_synced && strrchr(file->path, '-') > strrchr(file->path, '/'))
        forget_ghosts(trace);
    file->was_synced = true;
}

bool disk_trace_next(struct disk_trace *trace)
{
    bool moved = false;

    for (; trace->at < trace->count; trace->at++) {
        const struct trace_event *event = &trace->events[trace->at];
        struct trace_file *file = &trace->files[event->file];

        if (event->change == SHIM_SYNCED && moved)
            return true;
        if (event->change == SHIM_SYNCED)
            sync_file(trace, file);
        else if (event->change == SHIM_DELETED)
            delete(file, event->offset != 0);
        else
            await(file, trace->at);
        moved = true;
    }
    return moved;
}

uint32_t disk_trace_pending(const struct disk_trace *trace)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < trace->files_count; i++)
        count += trace->files[i].pending_count + (trace->files[i].ghost != NULL);
    return count;
}

static void mark(uint64_t *print, uint64_t number)
{
    *print = (*print ^ number) * 0x100000001B3u;
}

static void apply_torn(struct trace_file *file, const struct trace_event *event, unsigned *random,
                       uint64_t *print)
{
    for (int from = 0; from < event->len;) {
        int to = from + SECTOR - (int)((event->offset + from) % SECTOR);

        to = to < event->len ? to : event->len;
        if (rand_r(random) % 4) {
            apply_bytes(file, event, from, to);
            mark(print, (uint64_t)from + 2);
        }
        from = to;
    }
}

/* What becomes of the writes that were not synced. */
static void survive(struct disk_trace *trace, struct trace_file *file, enum survival survival,
                    unsigned *random, uint64_t *print)
{
    uint32_t first = file->pending_count ? (uint32_t)rand_r(random) % (file->pending_count + 1)
                                         : 0;

    for (uint32_t i = 0; i < file->pending_count; i++) {
        const struct trace_event *event = &trace->events[file->pending[i]];
        bool some = rand_r(random) % 2;

        if (survival == NOTHING || (survival == BEGINNING && i >= first) ||
            (survival >= ANY_WRITES && !some))
            continue;
        mark(print, file->pending[i] + 7u);
        if (survival == TORN && event->change == SHIM_WRITTEN)
            apply_torn(file, event, random, print);
        else
            apply(file, event);
    }
}

static void write_file(const char *path, const unsigned char *data, int64_t size)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

    if (fd < 0 || (size > 0 && pwrite(fd, data, (size_t)size, 0) != size) ||
        ftruncate(fd, size) < 0)
        abort();
    close(fd);
}

/* The durable state stays as it is: the image is made in a copy. */
static void write_image(struct disk_trace *trace, struct trace_file *file, const char *name,
                        enum survival survival, unsigned *random, uint64_t *print)
{
    struct trace_file copy = *file;

    if (file->ghost && rand_r(random) % 2) {
        mark(print, 5);
        write_file(name, file->ghost, file->ghost_size);
        return;
    }
    copy.cap = file->size;
    copy.durable = must(malloc((size_t)file->size + 1));
    if (file->size)
        memcpy(copy.durable, file->durable, (size_t)file->size);
    survive(trace, &copy, survival, random, print);
    write_file(name, copy.durable, copy.size);
    free(copy.durable);
}

uint64_t disk_trace_image(struct disk_trace *trace, const char *path, unsigned seed)
{
    uint64_t print = 0xCBF29CE484222325u;
    unsigned random = seed;
    enum survival survival = seed < SURVIVALS ? (enum survival)seed
                                              : BEGINNING + (enum survival)(seed % 3);
    char name[SHIM_PATH_BYTES + 8];

    mark(&print, trace->at);
    for (uint32_t i = 0; i < trace->files_count; i++) {
        const char *suffix = strrchr(trace->files[i].path, '-');

        snprintf(name, sizeof name, "%s%s", path, suffix && strchr(suffix, '/') == NULL ? suffix
                                                                                        : "");
        write_image(trace, &trace->files[i], name, survival, &random, &print);
    }
    snprintf(name, sizeof name, "%s-shm", path); /* shared memory does not outlive a power cut */
    unlink(name);
    return print;
}
