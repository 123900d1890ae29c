/* The thread behind validators.h: takes one entry at a time, by priority, asks, and brings the
 * answer with the next request. */
#include "worker/validators/validators.h"

#include "base/fault.h"
#include "base/thread.h"
#include "core/render.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#define TASK_BYTES_MAX ((size_t)16 * 1024 * 1024)
#define PAUSE_US CLOCK_SECOND_US              /* after a refusal of the queue */
#define ANSWER_TRIES 5 /* then its entry waits for its lease to end and blocks no other */
#define SLEEP_US_MAX (60 * CLOCK_SECOND_US)   /* a suspend is not counted by the wait */

struct validators {
    struct engine *engine;
    _Atomic(const struct settings *) settings;
    struct spawner *spawner;
    const struct validator_functions *functions;
    const struct log *log;
    struct store_reader *reader;
    pthread_t thread;
    bool runs;
    pthread_mutex_t mutex; /* of woken and stopping */
    pthread_cond_t cond;
    bool woken;
    bool stopping;
    atomic_int stop; /* the same as stopping, for a command under way */
    int wake_fd;
};

bool validators_configured(const struct settings *settings, struct str type)
{
    const struct handler_rule *rule = settings_handler(settings, type);

    return rule && (rule->validate_command || rule->validate_url.data);
}

bool validators_any(const struct settings *settings)
{
    for (uint32_t i = 0; i < settings->handlers_count; i++)
        if (settings->handlers[i].validate_command || settings->handlers[i].validate_url.data)
            return true;
    return false;
}

static int write_task(struct validators *validators, const struct uuid *id, struct buf *out,
                      struct err *err)
{
    struct store *store = engine_store(validators->engine);
    ARENA_AUTO struct arena arena = ARENA_INIT(0);
    struct task *task = NULL;

    if (!validators->reader)
        validators->reader = store->verbs->reader_open(store, err);
    if (!validators->reader)
        return -(int)err->code;
    TRY(store->verbs->read_task(validators->reader, id, &arena, &task, err));
    if (!task)
        return err_set(err, ERR_NOT_FOUND, "the task is gone");
    render_task(out, task, NULL);
    TRY_MEMORY(!out->failed);
    return 0;
}

static void ask(struct validators *validators, const struct recovery_work *work,
                struct validator_answer *answer)
{
    const struct validator_functions *functions = validators->functions;
    const struct settings *settings = atomic_load(&validators->settings);
    BUF_AUTO struct buf task = BUF_INIT(TASK_BYTES_MAX);
    struct err err = {0};

    *answer = (struct validator_answer){.answered = false};
    if (write_task(validators, &work->task_id, &task, &err) < 0)
        snprintf(answer->reason, sizeof answer->reason, "%.255s", err.text);
    else if (functions && functions->knows(functions->ctx, work->type))
        functions->ask(functions->ctx, work->type, &work->task_id, buf_view(&task), answer);
    else if (validators_configured(settings, work->type))
        validator_ask(settings_handler(settings, work->type), validators->spawner, &work->task_id,
                      work->type, buf_view(&task), &validators->stop, validators->wake_fd, answer);
    else
        answer->answered = answer->valid = true; /* it was taken away meanwhile */
    FAULT_POINT("recovery.validated");
}

static void rest_until(struct validators *validators, int64_t until_us)
{
    int64_t wait_us =
        until_us == INT64_MAX ? SLEEP_US_MAX : until_us - engine_now_us(validators->engine);
    struct timespec deadline;

    if (wait_us > SLEEP_US_MAX)
        wait_us = SLEEP_US_MAX;
    deadline = thread_deadline(wait_us);
    LOCKED(&validators->mutex);
    while (wait_us > 0 && !validators->woken && !validators->stopping &&
           pthread_cond_timedwait(&validators->cond, &validators->mutex, &deadline) == 0)
        ;
    validators->woken = false;
}

/* Here, while the queue and its store are there. */
static void close_reader(struct validators *validators)
{
    struct store *store = engine_store(validators->engine);

    if (validators->reader)
        store->verbs->reader_close(validators->reader);
    validators->reader = NULL;
}

static void *run(void *ctx)
{
    struct validators *validators = ctx;
    struct arena arena = ARENA_INIT(0);
    struct validator_answer answer;
    struct recovery_result result;
    bool has_result = false;
    int tries = 0;

    while (!atomic_load(&validators->stop) || has_result) {
        struct recovery_work_request request = {
            .base = {.kind = REQUEST_RECOVERY_WORK, .arena = &arena},
            .results = &result,
            .results_count = has_result,
            .limit = atomic_load(&validators->stop) ? 0 : 1};

        arena_reset(&arena);
        if (engine_call(validators->engine, &request.base) < 0) {
            LOG(validators->log, LOG_WARN, "recovery.work_failed",
                KC("reason", request.base.err.text));
            if (atomic_load(&validators->stop))
                break; /* its entry is tried again when its lease is over */
            has_result = has_result && ++tries < ANSWER_TRIES;
            rest_until(validators, engine_now_us(validators->engine) + PAUSE_US);
            continue;
        }
        tries = 0;
        has_result = request.works_count > 0;
        if (!has_result) {
            if (request.limit)
                rest_until(validators, request.next_at_us);
            continue;
        }
        ask(validators, &request.works[0], &answer);
        result = (struct recovery_result){.entry_id = request.works[0].entry_id,
                                          .attempts = request.works[0].attempts,
                                          .answered = answer.answered,
                                          .valid = answer.valid,
                                          .reason = str_of(answer.reason)};
    }
    arena_deinit(&arena);
    close_reader(validators);
    return NULL;
}

static int start_thread(struct validators *validators, struct err *err)
{
    validators->runs = thread_start(&validators->thread, 0, run, validators) == 0;
    return validators->runs ? 0
                            : err_set(err, ERR_MEMORY, "cannot start the thread for validators");
}

void validators_configure(struct validators *validators, const struct settings *settings)
{
    atomic_store(&validators->settings, settings);
}

struct validators *validators_start(struct engine *engine, const struct settings *settings,
                                    struct spawner *spawner,
                                    const struct validator_functions *functions,
                                    const struct log *log, struct err *err)
{
    struct validators *validators = err_calloc(sizeof *validators, err);

    if (!validators)
        return NULL;
    validators->engine = engine;
    validators->settings = settings;
    validators->spawner = spawner;
    validators->functions = functions;
    validators->log = log;
    validators->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    pthread_mutex_init(&validators->mutex, NULL);
    thread_cond_init(&validators->cond);
    if (validators->wake_fd < 0)
        err_set(err, ERR_IO, "cannot make a descriptor for validators");
    if (validators->wake_fd < 0 || start_thread(validators, err) < 0) {
        validators_stop(validators);
        return NULL;
    }
    return validators;
}

static void tell(struct validators *validators, bool stop)
{
    LOCKED(&validators->mutex);

    validators->woken = true;
    validators->stopping |= stop;
    pthread_cond_signal(&validators->cond);
}

void validators_wake(struct validators *validators)
{
    tell(validators, false);
}

void validators_halt(struct validators *validators)
{
    const uint64_t one = 1;

    if (!validators->runs)
        return;
    atomic_store(&validators->stop, 1);
    if (write(validators->wake_fd, &one, sizeof one) < 0)
        LOG(validators->log, LOG_WARN, "recovery.wake_failed", KI("fd", validators->wake_fd));
    tell(validators, true);
    pthread_join(validators->thread, NULL);
    validators->runs = false;
}

void validators_stop(struct validators *validators)
{
    if (!validators)
        return;
    validators_halt(validators);
    if (validators->wake_fd >= 0)
        close(validators->wake_fd);
    pthread_cond_destroy(&validators->cond);
    pthread_mutex_destroy(&validators->mutex);
    free(validators);
}
