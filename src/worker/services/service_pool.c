/* The life of a service pool, and what its worker claims: never more of a service's tasks than it
 * takes now. A claim has one number for all its types. So services with much room are claimed for
 * alone, without waiting, and in turn all of them, as many as the one with the least room takes. */
#include "worker/services/service_pool.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/thread.h"
#include "core/service/service_told.h"
#include "worker/services/service_int.h"

#define STACK_BYTES (512 * 1024) /* libcurl and TLS */
#define SIGNER_STACK_BYTES (256 * 1024)
#define FILES_KEPT 256           /* descriptors for everything else */
#define ROOM_WIDE 32             /* room that is worth a claim of its own */
#define WAIT_MS 30000
#define FULL_WAIT_MS 100         /* a service is left out of the claim because it is full */

/* ---- what is claimed ---- */

static bool grow_list(struct str **list, uint32_t count)
{
    struct str *grown = realloc(*list, count * sizeof *grown);

    if (grown)
        *list = grown;
    return grown != NULL;
}

static bool grow_types(struct service_pool *pool, uint32_t count)
{
    if (count <= pool->want_cap)
        return true;
    if (!grow_list(&pool->want_types, count) || !grow_list(&pool->want_services, count))
        return false;
    pool->want_cap = count;
    return true;
}

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* Adds the types of all that have room for `enough`. */
static void add_types(struct service_pool *pool, uint32_t enough, int64_t now_us,
                      struct dispatch_want *want)
{
    uint32_t left = pool->max > pool->held ? pool->max - pool->held : 0;

    want->types_count = 0;
    want->max = left;
    for (uint32_t i = 0; i < pool->set->lines_count && left; i++) {
        const struct service_line *line = &pool->set->lines[i];
        uint32_t room = line_room(line, now_us);

        if (room < enough)
            continue;
        memcpy(pool->want_types + want->types_count, line->types,
               line->types_count * sizeof *line->types);
        for (uint32_t t = 0; t < line->types_count; t++)
            pool->want_services[want->types_count + t] = line->rule->name;
        want->types_count += line->types_count;
        want->max = least(want->max, room);
    }
}

/* How long a claim may wait although services are left out of it. */
static int64_t look_again_ms(const struct service_pool *pool, int64_t now_us)
{
    int64_t wait_ms = pool->held >= pool->max ? FULL_WAIT_MS : WAIT_MS;

    for (uint32_t i = 0; i < pool->set->lines_count; i++) {
        const struct service_line *line = &pool->set->lines[i];
        int64_t opens_us;

        if (line_room(line, now_us))
            continue;
        opens_us = line_opens_us(line, now_us);
        if (opens_us == INT64_MAX)
            opens_us = now_us + FULL_WAIT_MS * CLOCK_MS_US;
        if ((opens_us - now_us) / CLOCK_MS_US + 1 < wait_ms)
            wait_ms = (opens_us - now_us) / CLOCK_MS_US + 1;
    }
    return wait_ms;
}

static void want(void *ctx, bool busy, struct dispatch_want *want)
{
    struct service_pool *pool = ctx;
    int64_t now_us = clock_boot_us();
    struct dispatch_want all;

    LOCKED(&pool->lock);
    *want = (struct dispatch_want){.types = NULL};
    want->wait_ms = look_again_ms(pool, now_us);
    if (!grow_types(pool, pool->set->types_count))
        return;
    want->types = pool->want_types;
    want->services = pool->want_services;
    add_types(pool, 1, now_us, want);
    pool->narrow = !pool->narrow && want->max < ROOM_WIDE;
    if (busy)
        want->wait_ms = 0;
    if (!pool->narrow)
        return;
    all = *want;
    add_types(pool, ROOM_WIDE, now_us, want);
    want->wait_ms = 0;
    if (!want->types_count) { /* none of them has much room */
        *want = all;
        add_types(pool, 1, now_us, want);
        pool->narrow = false;
    }
}

/* ---- what was claimed ---- */

static void begin(void *ctx, struct worker *worker, struct run *run)
{
    struct service_pool *pool = ctx;
    struct service_call *call = calloc(1, sizeof *call);
    bool wakes = false;

    pthread_mutex_lock(&pool->lock);
    pool->worker = worker; /* the first claim may come before worker_start returns */
    if (call) {
        *call = (struct service_call){.worker = worker, .run = run, .arena = ARENA_INIT(0)};
        call->line = service_set_find(pool->set, run->work.type, &call->method);
        if (call->line)
            call->line->held++;
        pool->held++;
        wakes = call_come(pool, call);
    } else {
        wakes = true;
        run->next = pool->refused;
        pool->refused = run;
    }
    pthread_mutex_unlock(&pool->lock);
    if (wakes)
        service_poll_wake(pool);
}

/* ---- life ---- */

/* As many calls as there can be descriptors for. */
static uint32_t files_max(void)
{
    rlim_t wanted = SERVICE_CALLS_MAX + FILES_KEPT;
    struct rlimit files;

    if (getrlimit(RLIMIT_NOFILE, &files) < 0)
        return ROOM_WIDE;
    if (files.rlim_cur < wanted && files.rlim_cur < files.rlim_max) {
        rlim_t before = files.rlim_cur;

        files.rlim_cur = files.rlim_max < wanted ? files.rlim_max : wanted;
        if (setrlimit(RLIMIT_NOFILE, &files) < 0)
            files.rlim_cur = before;
    }
    if (files.rlim_cur >= wanted)
        return SERVICE_CALLS_MAX;
    return files.rlim_cur > 2 * FILES_KEPT ? (uint32_t)files.rlim_cur - FILES_KEPT : ROOM_WIDE;
}

static uint32_t calls_max(const struct settings *settings, uint32_t files)
{
    int64_t max = 0;

    for (uint32_t i = 0; i < settings->pool.services_count; i++)
        max += settings->pool.services[i].concurrency;
    return max < files ? (uint32_t)max : files;
}

static int watch(struct service_pool *pool, int *fd, struct err *err)
{
    struct epoll_event event = {.events = EPOLLIN};

    *fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    event.data.fd = *fd;
    if (*fd < 0 || epoll_ctl(pool->epoll_fd, EPOLL_CTL_ADD, *fd, &event) < 0)
        return err_set(err, ERR_UNAVAILABLE, "cannot open a descriptor: %s", strerror(errno));
    return 0;
}

static int open_loop(struct service_pool *pool, const struct settings *settings, struct err *err)
{
    int rc;

    pool->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (pool->epoll_fd < 0)
        return err_set(err, ERR_UNAVAILABLE, "cannot open a descriptor: %s", strerror(errno));
    TRY(watch(pool, &pool->wake_fd, err));
    TRY(watch(pool, &pool->slot.wake_fd, err));
    pool->set = service_set_new(pool, settings, err);
    if (!pool->set)
        return -(int)err->code;
    rc = thread_start(&pool->thread, STACK_BYTES, service_loop_main, pool);
    pool->runs = rc == 0;
    if (pool->runs && pool->proofs.keys) /* without it the loop signs */
        pool->signer.runs = thread_start(&pool->signer.thread, SIGNER_STACK_BYTES,
                                         service_signer_main, pool) == 0;
    return rc == 0 ? 0 : err_set(err, ERR_UNAVAILABLE, "cannot start a thread: %s", strerror(rc));
}

static struct source_worker registration(const struct service_pool *pool,
                                         const struct service_set *set,
                                         const struct service_pool_config *config)
{
    return (struct source_worker){.version = STR(PERDURA_VERSION),
                                  .pool_size = calls_max(config->settings, pool->dispatch.max),
                                  .queues = config->queues,
                                  .queues_count = config->queues_count,
                                  .types = set->types,
                                  .types_count = set->types_count,
                                  .categories = config->categories,
                                  .categories_count = config->categories_count};
}

struct service_pool *service_pool_start(struct source *source,
                                        const struct service_pool_config *config,
                                        const struct log *log, struct err *err)
{
    struct service_pool *pool = err_calloc(sizeof *pool, err);
    struct worker_config worker;
    struct worker *started;
    uint32_t serial; /* not the one of a worker before it with this id */

    if (!pool)
        return NULL;
    curl_global_init(CURL_GLOBAL_DEFAULT);
    pool->log = log;
    pool->proofs = config->proofs;
    pool->holds = (struct source_holds){pool, holds_tell, holds_hear};
    pool->telling = (struct source_figures){pool, figures_tell, figures_heard};
    pool->news.text = BUF_INIT(2 * SERVICES_TOLD_BYTES);
    hash_random(&serial, sizeof serial);
    pool->news.serial = serial;
    pool->epoll_fd = pool->wake_fd = pool->slot.wake_fd = -1;
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->signer.due, NULL);
    pool->dispatch = (struct worker_dispatch){.ctx = pool, .max = files_max(),
                                              .slot = &pool->slot, .want = want, .begin = begin};
    pool->max = calls_max(config->settings, pool->dispatch.max);
    if (open_loop(pool, config->settings, err) < 0) {
        service_pool_free(pool);
        return NULL;
    }
    worker = (struct worker_config){.registration = registration(pool, pool->set, config),
                                    .grace_ms = config->settings->grace_ms,
                                    .dispatch = &pool->dispatch};
    source->holds = &pool->holds;
    source->figures = &pool->telling;
    started = worker_start(source, &worker, log, err);
    pthread_mutex_lock(&pool->lock);
    pool->worker = started;
    pthread_mutex_unlock(&pool->lock);
    if (started)
        return pool;
    service_pool_free(pool);
    return NULL;
}

static struct service_set *next_set(struct service_pool *pool, const struct settings *settings,
                                    struct err *err)
{
    LOCKED(&pool->lock);

    return service_set_new(pool, settings, err);
}

/* Registered first: until the set is changed, claims name the types of the one before. */
int service_pool_configure(struct service_pool *pool, const struct service_pool_config *config,
                           struct err *err)
{
    struct service_set *set = next_set(pool, config->settings, err);
    struct source_worker as;

    if (!set)
        return -(int)err->code;
    as = registration(pool, set, config);
    if (worker_dispatch_configure(pool->worker, &as, err) < 0) {
        service_set_free(set);
        return -(int)err->code;
    }
    pthread_mutex_lock(&pool->lock);
    pool->set = set;
    pool->max = calls_max(config->settings, pool->dispatch.max);
    pthread_mutex_unlock(&pool->lock);
    service_poll_wake(pool);
    worker_dispatch_room(pool->worker);
    return 0;
}

struct worker *service_pool_worker(struct service_pool *pool)
{
    return pool->worker;
}

static void end_loop(struct service_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    pool->over = true;
    pthread_mutex_unlock(&pool->lock);
    service_poll_wake(pool);
    pthread_join(pool->thread, NULL);
}

static void end_signer(struct service_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    pool->signer.over = true;
    pthread_cond_signal(&pool->signer.due);
    pthread_mutex_unlock(&pool->lock);
    pthread_join(pool->signer.thread, NULL);
}

static void close_fd(int fd)
{
    if (fd >= 0)
        close(fd);
}

void service_pool_free(struct service_pool *pool)
{
    struct service_set *older;
    struct err err = {0};

    if (!pool)
        return;
    if (pool->worker)
        worker_stop(pool->worker, 0, &err);
    if (pool->runs)
        end_loop(pool);
    if (pool->signer.runs)
        end_signer(pool);
    worker_free(pool->worker);
    for (struct service_set *set = pool->set; set; set = older) {
        older = set->older;
        service_set_free(set);
    }
    while (pool->known) {
        struct service_known *known = pool->known;

        pool->known = known->next;
        free(known);
    }
    buf_deinit(&pool->news.text);
    free(pool->want_types);
    free(pool->want_services);
    free(pool->owners);
    close_fd(pool->epoll_fd);
    close_fd(pool->wake_fd);
    close_fd(pool->slot.wake_fd);
    pthread_cond_destroy(&pool->signer.due);
    pthread_mutex_destroy(&pool->lock);
    free(pool);
}
