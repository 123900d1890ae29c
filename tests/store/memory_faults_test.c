/* The n-th allocation fails, for n = 1, 2, 3 ... until the workload meets no failure any more
 * (F-D16), in our code and in SQLite alike: malloc, calloc and realloc of this program are its own.
 * Once the one allocation fails, once all from the n-th on. The outcome is an answer with an error
 * or a store that does not open; never an acknowledged word that is not there, never a value that
 * silently got lost, and with a sanitizer no leak and no double free. Without arguments a sample;
 *
 *     memory_faults_test --from N --to N [--step N] [--seed S] [--lasting]
 *
 * tries a range and prints one JSON line; "over" says that no failure came any more. */
#include "workload.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifdef SANITIZED
#define BELOW(name) __interceptor_##name
#else
#define BELOW(name) __libc_##name
#endif
void *BELOW(malloc)(size_t bytes);
void *BELOW(calloc)(size_t count, size_t bytes);
void *BELOW(realloc)(void *memory, size_t bytes);

#define EVERYWHERE __attribute__((visibility("default"))) /* libraries use it too */
#define ROUNDS 4

/* The fault that is set; process-wide, because malloc knows no context. */
static _Atomic int64_t countdown; /* allocations until it fails; 0 = none does */
static _Atomic int64_t fired;
static atomic_bool lasting;
static _Thread_local bool is_exempt; /* this thread's own bookkeeping never fails */

static bool fails(void)
{
    int64_t left;

    if (is_exempt || atomic_load_explicit(&countdown, memory_order_relaxed) == 0)
        return false;
    left = atomic_fetch_sub(&countdown, 1);
    if (left > 1)
        return false;
    if (left < 1 || atomic_load(&lasting))
        atomic_store(&countdown, atomic_load(&lasting) ? 1 : 0);
    if (left < 1 && !atomic_load(&lasting))
        return false;
    atomic_fetch_add(&fired, 1);
    return true;
}

EVERYWHERE void *malloc(size_t bytes)
{
    return fails() ? NULL : BELOW(malloc)(bytes);
}

EVERYWHERE void *calloc(size_t count, size_t bytes)
{
    return fails() ? NULL : BELOW(calloc)(count, bytes);
}

EVERYWHERE void *realloc(void *memory, size_t bytes)
{
    return fails() ? NULL : BELOW(realloc)(memory, bytes);
}

/* Stands in for the C library's: the ballast of thousands of stores need not be real. */
int posix_fallocate(int fd, off_t offset, off_t len)
{
    return ftruncate(fd, offset + len) < 0 ? errno : 0;
}

struct tally {
    int64_t runs, refused, stopped, not_opened, acknowledged;
    bool over;
    char finding[700];
};

/* The test's own thread takes part only while it is inside the store or the queue. */
static void inside(void *ctx, bool is_inside)
{
    (void)ctx;
    is_exempt = !is_inside;
}

static void load(struct workload *w, struct tally *tally)
{
    bool opened;

    if (workload_life(w, ROUNDS, 1, &opened))
        return;
    tally->stopped += opened;
    tally->not_opened += !opened;
}

static void then_kept(struct workload *w, int64_t n, struct tally *tally)
{
    if (workload_check(w, w->path, NEVER - 1) && !workload_open(w))
        workload_find(w, "it does not start again: %s", w->err.text);
    if (!w->finding[0] && !workload_round(w, ROUNDS))
        workload_find(w, "it does not continue: %s", w->err.text);
    workload_close(w);
    if (!w->finding[0])
        workload_check(w, w->path, NEVER - 1);
    if (w->finding[0] && !tally->finding[0])
        snprintf(tally->finding, sizeof tally->finding, "n = %lld%s, seed %u: %s", (long long)n,
                 atomic_load(&lasting) ? " and all later ones" : "", w->seed, w->finding);
}

/* One life with the n-th allocation failing; false when it never came to it. */
static bool run_once(int64_t n, unsigned seed, struct tally *tally)
{
    struct workload *w = calloc(1, sizeof *w);
    bool came;

    workload_init(w, seed);
    w->inside = inside;
    is_exempt = true;
    atomic_store(&fired, 0);
    atomic_store(&countdown, n);
    load(w, tally);
    workload_close(w);
    atomic_store(&countdown, 0);
    came = atomic_load(&fired) > 0;
    then_kept(w, n, tally);
    tally->runs += came;
    tally->refused += w->refused;
    tally->acknowledged += w->acknowledged;
    workload_deinit(w);
    is_exempt = false;
    free(w);
    return came;
}

static void run_range(int64_t from, int64_t to, int64_t step, unsigned seed, struct tally *tally)
{
    memset(tally, 0, sizeof *tally);
    for (int64_t n = from; n <= to && !tally->finding[0] && !tally->over; n += step)
        tally->over = !run_once(n, seed, tally);
}

static int campaign(int64_t from, int64_t to, int64_t step, unsigned seed)
{
    struct tally tally;

    run_range(from, to, step, seed, &tally);
    printf("{\"from\":%lld,\"to\":%lld,\"seed\":%u,\"lasting\":%s,\"runs\":%lld,\"refused\":%lld,"
           "\"stopped\":%lld,\"not_opened\":%lld,\"acknowledged\":%lld,\"over\":%s,"
           "\"finding\":\"%s\"}\n", (long long)from, (long long)to, seed,
           atomic_load(&lasting) ? "true" : "false", (long long)tally.runs,
           (long long)tally.refused, (long long)tally.stopped, (long long)tally.not_opened,
           (long long)tally.acknowledged, tally.over ? "true" : "false", tally.finding);
    return tally.finding[0] ? 1 : 0;
}

static void then_harmless(int64_t step)
{
    struct tally tally;

    run_range(1, INT64_C(10000000), step, 1, &tally);
    if (tally.finding[0])
        fail_msg("%s", tally.finding);
    assert_true(tally.runs > 0);
    assert_true(tally.over);
    assert_true(tally.refused + tally.not_opened > 0);
}

static void one_failed_allocation_costs_no_acknowledged_word(void **state)
{
    (void)state;
    atomic_store(&lasting, false);
    then_harmless(1009);
}

static void memory_that_stays_away_costs_no_acknowledged_word(void **state)
{
    (void)state;
    atomic_store(&lasting, true);
    then_harmless(2503);
    atomic_store(&lasting, false);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_failed_allocation_costs_no_acknowledged_word),
        cmocka_unit_test(memory_that_stays_away_costs_no_acknowledged_word),
    };
    int64_t from = 0, to = 0, step = 1;
    unsigned seed = 1;

    for (int i = 1; i < argc; i++) {
        int64_t number = i + 1 < argc ? strtoll(argv[i + 1], NULL, 10) : 0;

        if (strcmp(argv[i], "--from") == 0)
            from = number;
        else if (strcmp(argv[i], "--to") == 0)
            to = number;
        else if (strcmp(argv[i], "--step") == 0)
            step = number > 0 ? number : 1;
        else if (strcmp(argv[i], "--seed") == 0)
            seed = (unsigned)number;
        else if (strcmp(argv[i], "--lasting") == 0)
            atomic_store(&lasting, true);
    }
    return to ? campaign(from, to, step, seed)
              : cmocka_run_group_tests_name("memory_faults", tests, NULL, NULL);
}
