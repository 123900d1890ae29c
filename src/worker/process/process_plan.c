/* The layout: a head of numbers, the groups, then texts that each end with NUL: the folder, the
 * paths, the command, the environment. Both sides are of one build (see spawner.c). */
#include "worker/process/process_plan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define PLAN_MARK 0x50447031u

struct head {
    uint32_t mark;
    uint32_t bytes; /* of everything */
    uint32_t paths_count;
    uint32_t command_count;
    uint32_t environment_count;
    uint32_t groups_count;
    uint32_t has_directory;
    uint32_t has_identity;
    uint32_t uid;
    uint32_t gid;
    struct process_limits limits;
};

/* ---- writing ---- */

static uint32_t count_texts(char *const *texts, size_t *bytes)
{
    uint32_t count = 0;

    for (; texts && texts[count]; count++)
        *bytes += strlen(texts[count]) + 1;
    return count;
}

static char *put_texts(char *at, char *const *texts, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        at = stpcpy(at, texts[i]) + 1;
    return at;
}

static void fill(char *at, const struct head *head, const struct process_plan *plan)
{
    size_t groups_bytes = head->groups_count * sizeof(gid_t);

    memcpy(at, head, sizeof *head);
    at += sizeof *head;
    if (groups_bytes)
        memcpy(at, plan->identity.groups, groups_bytes);
    at += groups_bytes;
    if (plan->directory)
        at = stpcpy(at, plan->directory) + 1;
    at = put_texts(at, plan->paths, head->paths_count);
    at = put_texts(at, plan->command, head->command_count);
    put_texts(at, plan->environment, head->environment_count);
}

static int write_file(const char *data, size_t bytes)
{
    int fd = memfd_create("perdura-plan", MFD_CLOEXEC);
    size_t done = 0;

    while (fd >= 0 && done < bytes) {
        ssize_t wrote = write(fd, data + done, bytes - done);

        if (wrote < 0 && errno != EINTR) {
            int why = errno;

            close(fd);
            errno = why;
            return -1;
        }
        done += wrote > 0 ? (size_t)wrote : 0;
    }
    return fd;
}

int process_plan_write(const struct process_plan *plan)
{
    struct head head = {.mark = PLAN_MARK,
                        .groups_count = plan->identity.groups_count,
                        .has_directory = plan->directory != NULL,
                        .has_identity = plan->identity.is_set,
                        .uid = plan->identity.uid,
                        .gid = plan->identity.gid,
                        .limits = plan->limits};
    size_t bytes = sizeof head + head.groups_count * sizeof(gid_t);
    char *data;
    int fd;

    bytes += plan->directory ? strlen(plan->directory) + 1 : 0;
    head.paths_count = count_texts(plan->paths, &bytes);
    head.command_count = count_texts(plan->command, &bytes);
    head.environment_count = count_texts(plan->environment, &bytes);
    head.bytes = (uint32_t)bytes;
    if (bytes > UINT32_MAX) {
        errno = E2BIG;
        return -1;
    }
    data = malloc(bytes);
    if (!data)
        return -1;
    fill(data, &head, plan);
    fd = write_file(data, bytes);
    free(data);
    return fd;
}

/* ---- reading ---- */

struct cursor {
    char *at;
    char *end;
};

static char *next_text(struct cursor *cursor)
{
    char *text = cursor->at;
    char *end = memchr(text, '\0', (size_t)(cursor->end - text));

    if (!end)
        return NULL;
    cursor->at = end + 1;
    return text;
}

static char **next_texts(struct cursor *cursor, uint32_t count)
{
    char **texts;

    if (count > (size_t)(cursor->end - cursor->at)) /* each has its NUL at least */
        return NULL;
    texts = calloc((size_t)count + 1, sizeof *texts);
    for (uint32_t i = 0; texts && i < count; i++) {
        texts[i] = next_text(cursor);
        if (!texts[i])
            return NULL;
    }
    return texts;
}

static char *map_file(int fd, size_t *bytes)
{
    struct stat info;
    char *data;

    if (fstat(fd, &info) < 0 || info.st_size < (off_t)sizeof(struct head))
        return NULL;
    *bytes = (size_t)info.st_size;
    data = mmap(NULL, *bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    return data == MAP_FAILED ? NULL : data;
}

bool process_plan_read(int fd, struct process_plan *plan)
{
    size_t bytes = 0;
    char *data = map_file(fd, &bytes);
    struct cursor cursor = {data, data + bytes};
    struct head head;

    errno = EINVAL;
    if (!data)
        return false;
    memcpy(&head, data, sizeof head);
    cursor.at += sizeof head;
    if (head.mark != PLAN_MARK || head.bytes != bytes ||
        head.groups_count > (bytes - sizeof head) / sizeof(gid_t))
        return false;
    *plan = (struct process_plan){
        .limits = head.limits,
        .identity = {.is_set = head.has_identity, .uid = head.uid, .gid = head.gid,
                     .groups = (const gid_t *)(void *)cursor.at,
                     .groups_count = head.groups_count}};
    cursor.at += head.groups_count * sizeof(gid_t);
    plan->directory = head.has_directory ? next_text(&cursor) : NULL;
    if (head.has_directory && !plan->directory)
        return false;
    plan->paths = next_texts(&cursor, head.paths_count);
    plan->command = next_texts(&cursor, head.command_count);
    plan->environment = next_texts(&cursor, head.environment_count);
    return plan->paths && plan->command && plan->environment;
}
