/* Workers: handlers of the program on threads of the library. The engine's own worker does it; here
 * are its public face, and what belongs to one handle. */
#include "lib/lib_sizes.h"

#include <stdlib.h>

#include "lib/lib_task.h"
#include "worker/worker.h"

#define HANDLERS_MAX BOUND_CLAIM_TYPES  /* each is a type it registers for */
#define STACK_BYTES_DEFAULT (1024 * 1024) /* functions of strangers; only what is used counts */
#define STACK_BYTES_MIN (64 * 1024)
#define CLOSE_GRACE_MS 5000

struct pd_worker {
    struct pd *pd;
    struct pd_worker *next;
    struct arena arena; /* copies of what the options say */
    struct worker_config config;
    struct str types[HANDLERS_MAX];
    struct function_handler functions[HANDLERS_MAX];
    struct task_handler handlers[HANDLERS_MAX];
    uint32_t handlers_count;
    struct source *source;
    struct worker *worker; /* NULL = not started */
};

static int copy_texts(const char *const *from, size_t count, size_t max, const char *field,
                      struct arena *arena, const struct str **to, uint32_t *to_count,
                      struct err *err)
{
    struct str *texts;
    struct str text;

    if (count > max)
        return err_set_field(err, ERR_INVALID, field, "a worker has at most %zu %s", max, field);
    texts = TRY_MEMORY(arena_alloc_array(arena, count, sizeof *texts));
    for (size_t i = 0; i < count; i++) {
        if (!from[i] || !*from[i] || strlen(from[i]) > BOUND_NAME_BYTES)
            return err_set_field(err, ERR_INVALID, field, "one of the %s is empty or too long",
                                 field);
        TRY(lib_check_text(from[i], field, &text, err));
        texts[i] = arena_str(arena, text);
        TRY_MEMORY(texts[i].data);
    }
    *to = texts;
    *to_count = (uint32_t)count;
    return 0;
}

int lib_copy_registration(const struct pd_worker_options *options, struct arena *arena,
                          struct source_worker *worker, struct err *err)
{
    static const char *const default_queue[] = {TASK_DEFAULT_QUEUE};
    bool has_queues = options->queues_count > 0;
    struct str id;

    *worker = (struct source_worker){.version = STR(PERDURA_VERSION)};
    if (options->id) {
        if (!*options->id || strlen(options->id) > BOUND_NAME_BYTES)
            return err_set_field(err, ERR_INVALID, "id", "a worker's id has 1 to %d bytes",
                                 BOUND_NAME_BYTES);
        TRY(lib_check_text(options->id, "id", &id, err));
        worker->id = arena_str(arena, id);
        TRY_MEMORY(worker->id.data);
    }
    TRY(copy_texts(has_queues ? options->queues : default_queue,
                   has_queues ? options->queues_count : 1, BOUND_CLAIM_QUEUES, "queues", arena,
                   &worker->queues, &worker->queues_count, err));
    TRY(copy_texts(options->categories, options->categories_count, BOUND_CLAIM_TYPES, "categories",
                   arena, &worker->categories, &worker->categories_count, err));
    if (options->types_count == 0)
        return 0; /* any type */
    return copy_texts(options->types, options->types_count, BOUND_CLAIM_TYPES, "types", arena,
                      &worker->types, &worker->types_count, err);
}

static int fill(struct pd_worker *worker, const struct pd_worker_options *options,
                struct err *err)
{
    struct worker_config *config = &worker->config;

    if (!worker->pd->side)
        return err_set(err, ERR_INVALID, "the handle is not open");
    if (options->concurrency > WORKER_SLOTS_MAX || options->batch > WORKER_BATCH_MAX)
        return err_set(err, ERR_INVALID, "concurrency is at most %d, batch at most %d",
                       WORKER_SLOTS_MAX, WORKER_BATCH_MAX);
    if (options->stack_bytes && options->stack_bytes < STACK_BYTES_MIN)
        return err_set(err, ERR_INVALID, "stack_bytes must be %d or more", STACK_BYTES_MIN);
    config->slots = options->concurrency;
    config->batch = options->batch;
    config->grace_ms = -1;
    config->stack_bytes = options->stack_bytes ? options->stack_bytes : STACK_BYTES_DEFAULT;
    config->functions = worker->functions;
    return lib_copy_registration(options, &worker->arena, &config->registration, err);
}

int pd_worker_new(struct pd *pd, const struct pd_worker_options *options, struct pd_worker **out)
{
    struct pd_worker_options given = PD_WORKER_OPTIONS_INIT;
    struct pd_worker *worker = calloc(1, sizeof *worker);
    struct err err = {0};

    *out = NULL;
    if (!worker) {
        err_no_memory(&err);
        return lib_fail(pd, &err);
    }
    worker->pd = pd;
    if ((options && lib_take_struct(&lib_sized_worker_options, options, &given, &err) < 0) ||
        fill(worker, &given, &err) < 0) {
        arena_deinit(&worker->arena);
        free(worker);
        return lib_fail(pd, &err);
    }
    pthread_mutex_lock(&pd->lock);
    worker->next = pd->workers;
    pd->workers = worker;
    pthread_mutex_unlock(&pd->lock);
    *out = worker;
    return PD_OK;
}

static int add_handler(struct pd_worker *worker, const char *type, pd_handler *handler, void *ctx,
                       struct err *err)
{
    uint32_t at = worker->handlers_count;
    struct str text;

    if (worker->worker)
        return err_set(err, ERR_INVALID, "the worker runs already; add handlers before its start");
    if (at == HANDLERS_MAX)
        return err_set(err, ERR_TOO_LARGE, "a worker has at most %d handlers", HANDLERS_MAX);
    if (!handler || !type || !*type || strlen(type) > BOUND_NAME_BYTES)
        return err_set(err, ERR_INVALID, "a handler needs a function and a type of 1 to %d bytes",
                       BOUND_NAME_BYTES);
    TRY(lib_check_text(type, "type", &text, err));
    worker->types[at] = arena_str(&worker->arena, text);
    TRY_MEMORY(worker->types[at].data);
    worker->handlers[at] = (struct task_handler){handler, ctx};
    worker->functions[at] = (struct function_handler){worker->types[at], lib_task_run,
                                                      &worker->handlers[at]};
    worker->handlers_count++;
    return 0;
}

int pd_worker_handle(struct pd_worker *worker, const char *type, pd_handler *handler, void *ctx)
{
    struct err err = {0};

    if (add_handler(worker, type, handler, ctx, &err) < 0)
        return lib_fail(worker->pd, &err);
    return PD_OK;
}

static int start(struct pd_worker *worker, struct err *err)
{
    struct worker_config *config = &worker->config;

    if (worker->worker)
        return err_set(err, ERR_INVALID, "the worker was started already");
    if (worker->handlers_count == 0)
        return err_set(err, ERR_INVALID, "the worker has no handlers; add one first");
    config->functions_count = worker->handlers_count;
    config->registration.types = worker->types;
    config->registration.types_count = worker->handlers_count;
    if (!worker->source)
        worker->source = worker->pd->verbs->source(worker->pd, err);
    if (!worker->source)
        return -(int)err->code;
    worker->worker = worker_start(worker->source, config, worker->pd->logger, err);
    return worker->worker ? 0 : -(int)err->code;
}

int pd_worker_start(struct pd_worker *worker)
{
    struct err err = {0};

    return start(worker, &err) < 0 ? lib_fail(worker->pd, &err) : PD_OK;
}

int pd_worker_stop(struct pd_worker *worker, int64_t grace_ms)
{
    struct err err = {0};

    if (!worker->worker)
        return PD_OK;
    if (grace_ms < 0 || grace_ms > BOUND_DELAY_MS)
        grace_ms = BOUND_DELAY_MS;
    if (worker_stop(worker->worker, grace_ms, &err) < 0)
        return lib_fail(worker->pd, &err);
    return PD_OK;
}

void lib_worker_destroy(struct pd_worker *worker)
{
    pd_worker_stop(worker, CLOSE_GRACE_MS);
    worker_free(worker->worker);
    if (worker->source)
        worker->source->verbs->free(worker->source);
    arena_deinit(&worker->arena);
    free(worker);
}

struct pd_worker *lib_worker_next(const struct pd_worker *worker)
{
    return worker->next;
}

void pd_worker_free(struct pd_worker *worker)
{
    struct pd_worker **at;

    if (!worker)
        return;
    pthread_mutex_lock(&worker->pd->lock);
    for (at = &worker->pd->workers; *at && *at != worker;)
        at = &(*at)->next;
    if (*at)
        *at = worker->next;
    pthread_mutex_unlock(&worker->pd->lock);
    lib_worker_destroy(worker);
}
