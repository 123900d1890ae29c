/* What the disk allows: 4 KiB written over an existing file and synced, the least a durable queue
 * can do for one job. One after the other, and 100 in a second as the start latency is measured:
 * between them the machine falls asleep, and waking it is most of the time. Prints one line of
 * JSON.
 *
 *   raw_sync FOLDER [SECONDS]   the file is made there and removed */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096
#define FILE_BYTES (16 * 1024 * 1024)
#define SAMPLES_MAX 1000000
#define STEP_NS 10000000 /* 100 in a second */

static int64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static int compare_int64(const void *left, const void *right)
{
    int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;

    return (a > b) - (a < b);
}

static void fill(int fd, char *page)
{
    memset(page, 7, PAGE);
    for (off_t at = 0; at < FILE_BYTES; at += PAGE)
        if (pwrite(fd, page, PAGE, at) != PAGE)
            die("raw_sync: write");
    if (fsync(fd) < 0)
        die("raw_sync: sync");
}

/* The samples, sorted; how many. step_ns 0 = without a rest between. */
static int64_t measure(int fd, const char *page, int64_t seconds, int64_t step_ns,
                       int64_t *samples)
{
    int64_t end_ns = now_ns() + seconds * 1000000000;
    int64_t count = 0;

    for (off_t at = 0; now_ns() < end_ns && count < SAMPLES_MAX; at = (at + PAGE) % FILE_BYTES) {
        struct timespec rest = {.tv_nsec = step_ns};
        int64_t began_ns;

        if (step_ns)
            nanosleep(&rest, NULL);
        began_ns = now_ns();
        if (pwrite(fd, page, PAGE, at) != PAGE || fdatasync(fd) < 0)
            die("raw_sync: write and sync");
        samples[count++] = now_ns() - began_ns;
    }
    qsort(samples, (size_t)count, sizeof *samples, compare_int64);
    return count;
}

int main(int argc, char **argv)
{
    int64_t *samples = malloc(SAMPLES_MAX * sizeof *samples);
    int64_t seconds = argc > 2 ? strtoll(argv[2], NULL, 10) : 4;
    static char page[PAGE];
    char path[4096];
    int64_t count;
    int fd;

    if (argc < 2 || !samples || seconds < 1) {
        fprintf(stderr, "usage: raw_sync FOLDER [SECONDS]\n");
        return 2;
    }
    snprintf(path, sizeof path, "%s/raw_sync.tmp", argv[1]);
    fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        die(path);
    unlink(path);
    fill(fd, page);
    count = measure(fd, page, seconds, 0, samples);
    printf("{\"sync_per_second\":%lld,\"sync_p50_ms\":%.3f,", (long long)(count / seconds),
           (double)samples[count / 2] / 1e6);
    count = measure(fd, page, seconds, STEP_NS, samples);
    printf("\"sync_rested_p50_ms\":%.3f,\"sync_rested_p99_ms\":%.3f}\n",
           (double)samples[count / 2] / 1e6, (double)samples[count * 99 / 100] / 1e6);
    free(samples);
    close(fd);
    return 0;
}
