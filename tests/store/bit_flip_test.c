/* One bit of the file or of its log is the wrong way round (F-D6). The store must say so, when it
 * is opened, read or verified, or the bit does not matter; what it must never do is to show another
 * payload, result or state without a word. A log that is wrong in its middle is refused; wrong in
 * its last commit it looks like one the power cut, and ends there: that is counted on its own.
 * Without arguments a sample; the campaign prints one line:
 *
 *     bit_flip_test --flips N --seed S */
#include "workload.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define ROUNDS 60
#define FILE_BYTES_MAX (16 * 1024 * 1024)
#define NAME_BYTES 160

struct image {
    unsigned char *data;
    size_t len;
};

struct flips {
    struct workload w;
    struct image db, wal; /* in use: the last of the load is still in the log */
    struct image whole;   /* closed: all of it is in the file */
    char path[NAME_BYTES - 16];
    unsigned random;
    int64_t flips, not_opened, not_read, verified, log_cut, harmless, silent;
    char first_silent[500];
};

/* Stands in for the C library's: the ballast of thousands of stores need not be real. */
int posix_fallocate(int fd, off_t offset, off_t len)
{
    return ftruncate(fd, offset + len) < 0 ? errno : 0;
}

static const char *name_of(const char *path, const char *suffix, char *out)
{
    strcat(strcpy(out, path), suffix);
    return out;
}

static struct image read_image(const char *path)
{
    struct image image = {malloc(FILE_BYTES_MAX), 0};
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t len = fd >= 0 ? read(fd, image.data, FILE_BYTES_MAX) : -1;

    if (fd >= 0)
        close(fd);
    assert_true(len > 0 && len < FILE_BYTES_MAX);
    image.len = (size_t)len;
    return image;
}

static void write_image(const char *path, const struct image *image)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    assert_true(fd >= 0 && write(fd, image->data, image->len) == (ssize_t)image->len);
    close(fd);
}

static void record(struct flips *flips, unsigned seed)
{
    struct workload *w = &flips->w;
    char name[NAME_BYTES];

    workload_init(w, seed);
    for (uint32_t turn = 0; turn < ROUNDS; turn++) {
        if (turn == 0 || turn == ROUNDS - 4) {
            workload_close(w);
            assert_true(workload_open(w));
        }
        assert_true(workload_round(w, turn));
    }
    flips->db = read_image(w->path);
    flips->wal = read_image(name_of(w->path, "-wal", name));
    workload_close(w);
    flips->whole = read_image(w->path);
    snprintf(flips->path, sizeof flips->path, "%s/image.db", w->folder);
    flips->random = seed;
}

static void open_image(struct flips *flips, const char *what)
{
    struct store_options options = {.allow_network_fs = true};
    struct workload *w = &flips->w;
    struct store *store = NULL;

    w->finding[0] = '\0';
    if (store_open(&store, str_of(flips->path), &options, &w->err) < 0) {
        flips->not_opened++;
        return;
    }
    if (workload_check_open(w, store, NEVER - 1))
        flips->harmless++;
    else if (strncmp(w->finding, "verify: ", 8) == 0)
        flips->verified++;
    else if (strstr(w->finding, "cannot be read") || strstr(w->finding, "no reader"))
        flips->not_read++;
    else if (what[0] == 'l')
        flips->log_cut++;
    else if (flips->silent++ == 0)
        snprintf(flips->first_silent, sizeof flips->first_silent, "%s: %s", what, w->finding);
    store->verbs->close(store);
}

static void flip_one(struct flips *flips)
{
    bool in_log = rand_r(&flips->random) % 2;
    struct image *image = in_log ? &flips->wal : &flips->whole;
    size_t at = ((size_t)rand_r(&flips->random) << 16 ^ (size_t)rand_r(&flips->random)) %
                image->len;
    unsigned char bit = (unsigned char)(1u << rand_r(&flips->random) % 8);
    char name[NAME_BYTES];
    char what[80];

    snprintf(what, sizeof what, "%s, byte %zu, bit %u", in_log ? "log" : "file", at, bit);
    image->data[at] ^= bit;
    write_image(flips->path, in_log ? &flips->db : &flips->whole);
    unlink(name_of(flips->path, "-wal", name));
    if (in_log)
        write_image(name, &flips->wal);
    image->data[at] ^= bit;
    unlink(name_of(flips->path, "-shm", name));
    open_image(flips, what);
    flips->flips++;
}

static void end(struct flips *flips)
{
    free(flips->db.data);
    free(flips->wal.data);
    free(flips->whole.data);
    workload_deinit(&flips->w);
    free(flips);
}

static int campaign(int64_t count, unsigned seed)
{
    struct flips *flips = calloc(1, sizeof *flips);
    bool bad;

    record(flips, seed);
    while (flips->flips < count)
        flip_one(flips);
    bad = flips->silent > 0;
    printf("{\"seed\":%u,\"flips\":%lld,\"not_opened\":%lld,\"not_read\":%lld,\"verified\":%lld,"
           "\"log_cut\":%lld,\"harmless\":%lld,\"silent\":%lld,\"finding\":\"%s\"}\n", seed,
           (long long)flips->flips, (long long)flips->not_opened, (long long)flips->not_read,
           (long long)flips->verified, (long long)flips->log_cut, (long long)flips->harmless,
           (long long)flips->silent, flips->first_silent);
    end(flips);
    return bad ? 1 : 0;
}

static void a_flipped_bit_is_found_or_does_not_matter(void **state)
{
    struct flips *flips = calloc(1, sizeof *flips);

    (void)state;
    record(flips, 1);
    while (flips->flips < 150)
        flip_one(flips);
    if (flips->silent)
        fail_msg("%s", flips->first_silent);
    assert_true(flips->verified > 0);
    assert_true(flips->not_opened > flips->flips / 4); /* half of them are in the log */
    assert_true(flips->log_cut < flips->flips / 10);
    end(flips);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_flipped_bit_is_found_or_does_not_matter),
    };
    int64_t count = 0;
    unsigned seed = 1;

    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--flips") == 0)
            count = strtoll(argv[i + 1], NULL, 10);
        else if (strcmp(argv[i], "--seed") == 0)
            seed = (unsigned)strtoul(argv[i + 1], NULL, 10);
    }
    return count ? campaign(count, seed)
                 : cmocka_run_group_tests_name("bit_flip", tests, NULL, NULL);
}
