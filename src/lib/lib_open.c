/* A handle's life and its errors. Sentences are kept per thread, so that one thread's failure never
 * replaces what another one is about to read. Any thread. */
#include "lib/lib_sizes.h"

#include "base/thread.h"

#include <signal.h>
#include <stdlib.h>

#define ERROR_SLOTS_MAX 4096 /* threads with an error of their own; beyond it the oldest goes */

struct error_slot {
    struct error_slot *next;
    pthread_t thread;
    struct err err;
};

static const struct {
    enum err_code code;
    int public_code;
} codes[] = {
    {ERR_NONE, PD_OK},
    {ERR_MALFORMED, PD_EMALFORMED},
    {ERR_UNAUTHORIZED, PD_EAUTH},
    {ERR_FORBIDDEN, PD_EAUTH},
    {ERR_NOT_FOUND, PD_ENOTFOUND},
    {ERR_METHOD, PD_EIO}, /* not a server of ours */
    {ERR_REQUEST_TIMEOUT, PD_ETIMEOUT},
    {ERR_CONFLICT, PD_ECONFLICT},
    {ERR_STALE_LEASE, PD_ESTALE},
    {ERR_VERSION, PD_ETRANSITION},
    {ERR_TRANSITION, PD_ETRANSITION},
    {ERR_PRECONDITION, PD_ETRANSITION},
    {ERR_TOO_LARGE, PD_ETOOLARGE},
    {ERR_MEDIA_TYPE, PD_EINVALID},
    {ERR_INVALID, PD_EINVALID},
    {ERR_RATE, PD_ERATE},
    {ERR_HEADERS_TOO_LARGE, PD_ETOOLARGE},
    {ERR_INTERNAL, PD_EINTERNAL},
    {ERR_MEMORY, PD_ENOMEM},
    {ERR_STORAGE, PD_ESTORAGE},
    {ERR_STORAGE_READ, PD_ESTORAGE},
    {ERR_UNAVAILABLE, PD_EUNAVAILABLE},
    {ERR_LOCKED, PD_EUNAVAILABLE},
    {ERR_STORAGE_FULL, PD_EFULL},
    {ERR_USAGE, PD_EINVALID},
    {ERR_IO, PD_EIO},
};

_Static_assert(sizeof codes / sizeof *codes == ERR_COUNT, "every error has a public code");

int lib_code(enum err_code code)
{
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (codes[i].code == code)
            return codes[i].public_code;
    return PD_EINTERNAL;
}

const char *pd_code_word(int code)
{
    static const char *const words[] = {
        "ok",         "malformed",  "invalid",      "too_large",   "not_found", "conflict",
        "stale_lease", "invalid_transition", "unauthorized", "rate_limited", "timeout",
        "unavailable", "storage_full", "storage_error", "io", "out_of_memory", "internal"};

    if (code > 0 || code < PD_EINTERNAL)
        return "unknown";
    return words[-code];
}

const char *pd_version(void)
{
    return PERDURA_VERSION;
}

/* The calling thread's slot is moved to the front, so that the last one is the oldest. */
static struct error_slot *take_slot(struct pd *pd, bool make)
{
    struct error_slot **at = &pd->errors;
    struct error_slot *slot;

    while (*at && !pthread_equal((*at)->thread, pthread_self()) &&
           !(make && pd->errors_count >= ERROR_SLOTS_MAX && !(*at)->next))
        at = &(*at)->next;
    slot = *at;
    if (slot) {
        *at = slot->next;
    } else {
        slot = make ? calloc(1, sizeof *slot) : NULL;
        if (!slot)
            return NULL;
        pd->errors_count++;
    }
    slot->thread = pthread_self();
    slot->next = pd->errors;
    pd->errors = slot;
    return slot;
}

int lib_fail(struct pd *pd, const struct err *err)
{
    struct error_slot *slot;

    LOCKED(&pd->lock);
    slot = take_slot(pd, true);
    if (slot)
        slot->err = *err;
    return lib_code(err->code);
}

const char *pd_error(struct pd *pd)
{
    struct error_slot *slot;

    if (!pd)
        return "there is not enough memory for a handle";
    LOCKED(&pd->lock);
    slot = take_slot(pd, false);
    return slot ? slot->err.text : "";
}

static bool is_url(const char *where)
{
    return strncmp(where, "http://", 7) == 0 || strncmp(where, "https://", 8) == 0;
}

static int check_where(const char *where, struct err *err)
{
    if (!where || !*where)
        return err_set(err, ERR_INVALID, "give the path of a store, or http://host:port");
    if (strncmp(where, "postgres://", 11) == 0 || strncmp(where, "postgresql://", 13) == 0)
        return err_set(err, ERR_INVALID, "a PostgreSQL database is served by 'perdura serve'; give "
                       "http://host:port of such a server here");
    return 0;
}

static int check_options(const struct pd_options *options, struct err *err)
{
    const int64_t times[] = {options->timeout_ms, options->lease_ms};

    for (size_t i = 0; i < sizeof times / sizeof *times; i++)
        if (times[i] < 0 || times[i] > BOUND_DELAY_MS)
            return err_set(err, ERR_INVALID, "a time in the options is negative or too long");
    if (options->lease_ms > 0 && options->lease_ms < 100)
        return err_set(err, ERR_INVALID, "lease_ms must be 100 or more");
    if (options->keep_completed_ms > BOUND_DELAY_MS || options->keep_failed_ms > BOUND_DELAY_MS)
        return err_set(err, ERR_INVALID, "tasks are kept for ten years, or PD_FOREVER");
    return 0;
}

/* The threads it starts are born with all signals blocked: they belong to the program. */
static int open_side(struct pd *pd, const char *where, const struct pd_options *options,
                     struct err *err)
{
    sigset_t all;
    sigset_t old;
    int rc;

    pd->verbs = is_url(where) ? &lib_remote_verbs : &lib_local_verbs;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    rc = pd->verbs->open(pd, where, options, err);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return rc;
}

int pd_open(const char *where, const struct pd_options *options, struct pd **out)
{
    struct pd_options given = PD_OPTIONS_INIT;
    struct pd *pd = calloc(1, sizeof *pd);
    struct err err = {0};
    int rc = 0;

    *out = pd;
    if (!pd)
        return PD_ENOMEM;
    pthread_mutex_init(&pd->lock, NULL);
    if (options)
        rc = lib_take_struct(&lib_sized_options, options, &given, &err);
    if (rc == 0 && given.log_fd > 0) {
        log_init(&pd->log, LOG_INFO, STR("auto"), given.log_fd);
        pd->logger = &pd->log;
    }
    if (rc == 0)
        rc = check_where(where, &err);
    if (rc == 0)
        rc = check_options(&given, &err);
    if (rc == 0)
        rc = open_side(pd, where, &given, &err);
    return rc < 0 ? lib_fail(pd, &err) : PD_OK;
}

int pd_validator(struct pd *pd, const char *type, pd_validate *validate, void *ctx)
{
    struct err err = {0};

    if (pd->verbs->validator(pd, type, validate, ctx, &err) < 0)
        return lib_fail(pd, &err);
    return PD_OK;
}

void pd_close(struct pd *pd)
{
    if (!pd)
        return;
    while (pd->workers) {
        struct pd_worker *worker = pd->workers;

        pd->workers = lib_worker_next(worker);
        lib_worker_destroy(worker);
    }
    while (pd->consumers) {
        struct pd_consumer *consumer = pd->consumers;

        pd->consumers = lib_consumer_next(consumer);
        lib_consumer_destroy(consumer);
    }
    if (pd->side)
        pd->verbs->close(pd);
    while (pd->errors) {
        struct error_slot *slot = pd->errors;

        pd->errors = slot->next;
        free(slot);
    }
    pthread_mutex_destroy(&pd->lock);
    free(pd);
}
