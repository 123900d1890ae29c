/* Consumers: claim and report in batches, from a loop of the program's own. A claim owns its
 * memory; a report is converted, sent and answered in place. One thread claims; others may report
 * and send heartbeats meanwhile. */
#include "lib/lib_sizes.h"

#include "base/thread.h"

#include <stdlib.h>
#include <unistd.h>

struct pd_consumer {
    struct pd *pd;
    struct pd_consumer *next;
    struct arena arena;
    struct source *source;
    struct source_worker registration; /* with the id it was given */
    int64_t heartbeat_ms;
    pthread_mutex_t registering;
};

struct claims_memory {
    struct pd_claims claims; /* first: it is what the caller frees */
    struct arena arena;
};

static int register_again(struct pd_consumer *consumer, struct err *err)
{
    ARENA_AUTO struct arena arena = ARENA_INIT(0);
    struct source_registration registered;

    LOCKED(&consumer->registering);
    TRY(consumer->source->verbs->register_worker(consumer->source, &consumer->registration, &arena,
                                                 &registered, err));
    consumer->heartbeat_ms = registered.heartbeat_ms;
    if (!consumer->registration.id.data) {
        consumer->registration.id = arena_str(&consumer->arena, registered.id);
        if (!consumer->registration.id.data)
            return err_no_memory(err);
    }
    return 0;
}

static int open_consumer(struct pd_consumer *consumer, const struct pd_worker_options *options,
                         struct err *err)
{
    char host[256] = "";

    if (!consumer->pd->side)
        return err_set(err, ERR_INVALID, "the handle is not open");
    TRY(lib_copy_registration(options, &consumer->arena, &consumer->registration, err));
    consumer->registration.pool_size = options->concurrency ? options->concurrency : 1;
    if (gethostname(host, sizeof host - 1) == 0)
        consumer->registration.hostname = arena_str(&consumer->arena, str_of(host));
    consumer->source = consumer->pd->verbs->source(consumer->pd, err);
    if (!consumer->source)
        return -(int)err->code;
    return register_again(consumer, err);
}

static void destroy(struct pd_consumer *consumer, bool leave)
{
    struct err err = {0};

    if (leave)
        consumer->source->verbs->leave(consumer->source, &err);
    if (consumer->source)
        consumer->source->verbs->free(consumer->source);
    arena_deinit(&consumer->arena);
    pthread_mutex_destroy(&consumer->registering);
    free(consumer);
}

int pd_consumer_open(struct pd *pd, const struct pd_worker_options *options,
                     struct pd_consumer **out)
{
    struct pd_worker_options given = PD_WORKER_OPTIONS_INIT;
    struct pd_consumer *consumer = calloc(1, sizeof *consumer);
    struct err err = {0};

    *out = NULL;
    if (!consumer) {
        err_no_memory(&err);
        return lib_fail(pd, &err);
    }
    consumer->pd = pd;
    pthread_mutex_init(&consumer->registering, NULL);
    if ((options && lib_take_struct(&lib_sized_worker_options, options, &given, &err) < 0) ||
        open_consumer(consumer, &given, &err) < 0) {
        destroy(consumer, false);
        return lib_fail(pd, &err);
    }
    pthread_mutex_lock(&pd->lock);
    consumer->next = pd->consumers;
    pd->consumers = consumer;
    pthread_mutex_unlock(&pd->lock);
    *out = consumer;
    return PD_OK;
}

void lib_consumer_destroy(struct pd_consumer *consumer)
{
    destroy(consumer, true);
}

struct pd_consumer *lib_consumer_next(const struct pd_consumer *consumer)
{
    return consumer->next;
}

void pd_consumer_close(struct pd_consumer *consumer)
{
    struct pd_consumer **at;

    if (!consumer)
        return;
    pthread_mutex_lock(&consumer->pd->lock);
    for (at = &consumer->pd->consumers; *at && *at != consumer;)
        at = &(*at)->next;
    if (*at)
        *at = consumer->next;
    pthread_mutex_unlock(&consumer->pd->lock);
    destroy(consumer, true);
}

int64_t pd_consumer_heartbeat_ms(const struct pd_consumer *consumer)
{
    return consumer->heartbeat_ms;
}

/* ---- claim ---- */

static bool fill_claimed(struct pd_claimed *claimed, const struct work *work, struct arena *arena)
{
    *claimed = (struct pd_claimed){.size = sizeof *claimed,
                                   .lease_token = work->lease_token,
                                   .lease_ms = work->lease_ms,
                                   .attempt = work->attempt,
                                   .timeout_ms = work->timeout_ms,
                                   .type = arena_cstr(arena, work->type),
                                   .queue = arena_cstr(arena, work->queue),
                                   .payload = arena_cstr(arena, work->payload),
                                   .data = arena_cstr(arena, work->data),
                                   .metadata = arena_cstr(arena, work->metadata),
                                   .checkpoint_progress = (int)work->checkpoint_progress,
                                   .payload_len = work->payload.len};
    uuid_format(&work->id, claimed->id);
    if (work->correlation_id.data)
        claimed->correlation_id = arena_cstr(arena, work->correlation_id);
    if (work->traceparent.data)
        claimed->traceparent = arena_cstr(arena, work->traceparent);
    if (work->tracestate.data)
        claimed->tracestate = arena_cstr(arena, work->tracestate);
    if (work->checkpoint_name.data)
        claimed->checkpoint_name = arena_cstr(arena, work->checkpoint_name);
    if (work->checkpoint_data.data)
        claimed->checkpoint_data = arena_cstr(arena, work->checkpoint_data);
    return claimed->type && claimed->queue && claimed->payload && claimed->data &&
           claimed->metadata && (!work->checkpoint_data.data || claimed->checkpoint_data);
}

static int claim(struct pd_consumer *consumer, unsigned max, int64_t wait_ms,
                 struct claims_memory *memory, struct err *err)
{
    const struct source_verbs *verbs = consumer->source->verbs;
    struct pd_claimed *tasks, **pointers;
    struct work *works = NULL;
    uint32_t count = 0;
    const struct source_want want = {.max = max, .wait_ms = wait_ms};
    int rc = verbs->claim(consumer->source, &want, &memory->arena, &works, &count, err);

    if (rc == -ERR_NOT_FOUND && register_again(consumer, err) == 0) {
        *err = (struct err){0}; /* it is put right: the caller goes by what is left here */
        rc = verbs->claim(consumer->source, &want, &memory->arena, &works, &count, err);
    }
    if (rc < 0)
        return rc;
    tasks = TRY_MEMORY(arena_alloc_array(&memory->arena, count, sizeof *tasks));
    pointers = TRY_MEMORY(arena_alloc_array(&memory->arena, count, sizeof *pointers));
    for (uint32_t i = 0; i < count; i++) {
        pointers[i] = &tasks[i];
        if (!fill_claimed(&tasks[i], &works[i], &memory->arena))
            return err_no_memory(err); /* their leases end by themselves */
    }
    memory->claims.tasks = pointers;
    memory->claims.count = count;
    return 0;
}

int pd_claim(struct pd_consumer *consumer, unsigned max, int64_t wait_ms, struct pd_claims **out)
{
    struct claims_memory *memory = calloc(1, sizeof *memory);
    struct err err = {0};

    *out = NULL;
    if (!memory)
        err_no_memory(&err);
    else if (max == 0 || max > BOUND_CLAIM_MAX)
        err_set(&err, ERR_INVALID, "a claim takes 1 to %d tasks", BOUND_CLAIM_MAX);
    else
        claim(consumer, max, wait_ms < 0 || wait_ms > BOUND_WAIT_MS ? BOUND_WAIT_MS : wait_ms,
              memory, &err);
    if (err.code != ERR_NONE) {
        pd_claims_free(memory ? &memory->claims : NULL);
        return lib_fail(consumer->pd, &err);
    }
    *out = &memory->claims;
    return PD_OK;
}

void pd_claims_free(struct pd_claims *claims)
{
    struct claims_memory *memory = (struct claims_memory *)claims;

    if (!memory)
        return;
    arena_deinit(&memory->arena);
    free(memory);
}

/* ---- report ---- */

static const enum report_op ops[] = {
    [PD_OP_COMPLETE] = REPORT_COMPLETE,     [PD_OP_FAIL] = REPORT_FAIL,
    [PD_OP_CONTINUE] = REPORT_CONTINUE,     [PD_OP_PARTIAL] = REPORT_PARTIAL,
    [PD_OP_RELEASE] = REPORT_RELEASE,       [PD_OP_START] = REPORT_START,
    [PD_OP_PROGRESS] = REPORT_PROGRESS,     [PD_OP_CHECKPOINT] = REPORT_CHECKPOINT,
    [PD_OP_LOG] = REPORT_LOG,               [PD_OP_SPAWN] = REPORT_SPAWN,
};

/* Where text and JSON of an element go, by its operation. */
static void place(struct report *report, struct str text, struct str json)
{
    switch (report->op) {
    case REPORT_COMPLETE:
    case REPORT_PARTIAL:
        report->result = json;
        break;
    case REPORT_FAIL:
        report->error = text.data ? text : STR("failed");
        report->details = json;
        break;
    case REPORT_PROGRESS:
        report->state = text;
        report->data = json;
        break;
    case REPORT_CHECKPOINT:
        report->name = text;
        report->data = json;
        break;
    case REPORT_CONTINUE:
        report->data = json;
        break;
    case REPORT_LOG:
        report->message = text;
        report->context = json;
        break;
    case REPORT_SPAWN:
        report->tasks = json;
        break;
    default:
        break;
    }
}

static int convert(const struct pd_report *from, struct report *to, struct err *err)
{
    struct str text, json;

    if ((size_t)from->op >= sizeof ops / sizeof *ops || (unsigned)from->level > PD_LOG_FATAL ||
        from->progress < PD_NONE || from->progress > 100 || from->delay_ms < 0 || from->seq < 0)
        return err_set(err, ERR_INVALID, "a report has a number that is out of its bounds");
    *to = (struct report){.lease_token = from->lease_token,
                          .seq = from->seq,
                          .op = ops[from->op],
                          .progress = -1,
                          .level = (enum log_severity)from->level,
                          .delay_ms = -1,
                          .wait_children = from->wait_children != 0,
                          .retryable = !from->not_retryable};
    if (to->op == REPORT_PROGRESS || to->op == REPORT_CHECKPOINT)
        to->progress = from->progress;
    if (to->op == REPORT_CONTINUE)
        to->delay_ms = from->delay_ms;
    TRY(lib_parse_id(from->task_id, &to->task_id, err));
    TRY(lib_check_text(from->text, "text", &text, err));
    TRY(lib_check_json(from->json, 0, "json", &json, err));
    if ((to->op == REPORT_CHECKPOINT && !text.len) || (to->op == REPORT_LOG && !text.data))
        return err_set(err, ERR_INVALID, "a checkpoint needs a name and a log line a message");
    if (to->op == REPORT_SPAWN && (!json.data || json_kind(json) != JSON_ARRAY))
        return err_set(err, ERR_INVALID, "children are a JSON array of task objects");
    place(to, text, json);
    return 0;
}

/* Into the program's own array, whose elements are as large as its first says. */
static void answer(struct pd_report *reports, uint32_t i, const struct report_result *result)
{
    struct pd_report *report = (void *)((char *)reports + i * reports->size);

    report->rc = lib_code(result->code);
    report->stop = result->cancel || result->pause;
}

static int send_reports(struct pd_consumer *consumer, struct pd_report *reports, uint32_t count,
                        struct arena *arena, struct err *err)
{
    const struct source_verbs *verbs = consumer->source->verbs;
    struct report *converted = TRY_MEMORY(arena_alloc_array(arena, count, sizeof *converted));
    struct report_result *results = TRY_MEMORY(arena_alloc_array(arena, count, sizeof *results));
    const struct pd_report *taken;
    const void *array;
    struct err cause = {0};
    int rc;

    TRY(lib_take_array(&lib_sized_report, reports, count, arena, &array, err));
    taken = array;
    for (uint32_t i = 0; i < count; i++)
        if (convert(&taken[i], &converted[i], &cause) < 0)
            return err_set(err, cause.code, "element %u: %.400s", i, cause.text);
    rc = verbs->report(consumer->source, converted, count, results, err);
    if (rc == -ERR_NOT_FOUND && register_again(consumer, err) == 0)
        rc = verbs->report(consumer->source, converted, count, results, err);
    for (uint32_t i = 0; rc == 0 && i < count; i++)
        answer(reports, i, &results[i]);
    return rc;
}

int pd_report(struct pd_consumer *consumer, struct pd_report *reports, size_t count)
{
    ARENA_AUTO struct arena arena = ARENA_INIT(0);
    struct err err = {0};
    int rc = 0;

    if (count > BOUND_REPORT_ELEMENTS)
        rc = err_set(&err, ERR_TOO_LARGE, "%zu reports are too many; send at most %d at once",
                     count, BOUND_REPORT_ELEMENTS);
    else if (count > 0)
        rc = send_reports(consumer, reports, (uint32_t)count, &arena, &err);
    return rc < 0 ? lib_fail(consumer->pd, &err) : PD_OK;
}

int pd_heartbeat(struct pd_consumer *consumer, void (*stop)(const char *id, void *ctx), void *ctx)
{
    ARENA_AUTO struct arena arena = ARENA_INIT(0);
    struct err err = {0};
    struct uuid *ids = NULL;
    uint32_t count = 0;
    char text[UUID_TEXT_BYTES];
    int rc;

    rc = consumer->pd->verbs->heartbeat(consumer->pd, consumer->registration.id, &arena, &ids,
                                        &count, &err);
    if (rc == -ERR_NOT_FOUND)
        rc = register_again(consumer, &err);
    for (uint32_t i = 0; rc == 0 && stop && i < count; i++) {
        uuid_format(&ids[i], text);
        stop(text, ctx);
    }
    return rc < 0 ? lib_fail(consumer->pd, &err) : PD_OK;
}
