#include "base/fault.h"

#ifdef PERDURA_FAULTS

#include "base/str.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#define POINTS_MAX 128

/* The only mutable global of the project: a test build's counters. */
static struct {
    pthread_mutex_t mutex;
    struct {
        char name[64];
        long passes;
    } points[POINTS_MAX];
    int count;
} faults = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static void write_counts(void)
{
    const char *path = getenv("PERDURA_FAULT_COUNTS");
    FILE *file = path ? fopen(path, "a") : NULL;

    if (!file)
        return;
    for (int i = 0; i < faults.count; i++)
        fprintf(file, "%s %ld\n", faults.points[i].name, faults.points[i].passes);
    fclose(file);
}

static long pass(const char *name)
{
    int i = 0;

    while (i < faults.count && strcmp(faults.points[i].name, name) != 0)
        i++;
    if (i == POINTS_MAX)
        return 0;
    if (i == faults.count) {
        if (faults.count++ == 0)
            atexit(write_counts);
        snprintf(faults.points[i].name, sizeof faults.points[i].name, "%s", name);
    }
    return ++faults.points[i].passes;
}

static void act(struct str action)
{
    if (str_is(action, "stop"))
        raise(SIGSTOP);
    else if (str_is(action, "abort"))
        abort();
    else
        raise(SIGKILL);
}

void fault_point(const char *name)
{
    const char *spec = getenv("PERDURA_FAULT");
    long passes;

    pthread_mutex_lock(&faults.mutex);
    passes = pass(name);
    pthread_mutex_unlock(&faults.mutex);
    while (spec && *spec) {
        size_t len = strcspn(spec, ",");
        size_t name_len = strlen(name);

        if (len > name_len && strncmp(spec, name, name_len) == 0 && spec[name_len] == ':') {
            char *rest;
            long wanted = strtol(spec + name_len + 1, &rest, 10);

            if (wanted == passes)
                act(*rest == ':' ? str_span(rest + 1, (size_t)(spec + len - rest - 1))
                                 : STR("kill"));
        }
        spec += len + (spec[len] == ',');
    }
}

#else

typedef int fault_points_are_not_built;

#endif
