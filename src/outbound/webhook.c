/* The thread behind webhook.h. Messages are taken into a window; calls are made from it, several at
 * once but one per origin, so that a receiver that hangs costs one call and not all. What came of
 * them gathers for a moment and is saved in one request. The outbox gives the oldest messages
 * first: when those left in the window all wait for a busy origin while others want their turn,
 * they are put off, or one receiver's backlog would hide the others'. */
#include "outbound/webhook.h"

#include "base/fault.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/thread.h"
#include "core/task/retry.h"
#include "core/callback_allow.h"
#include "outbound/webhook_call.h"

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>

#define CALLS_MAX 16
#define CALLS_PER_ORIGIN 1
#define WINDOW_MAX 64
#define WINDOW_BYTES_MAX ((size_t)256 * 1024 * 1024)
#define SETTLED_MAX (WINDOW_MAX + CALLS_MAX) /* all that can be decided between two saves */
#define SAVE_AFTER_US (20 * CLOCK_MS_US)  /* one commit for many small calls */
#define STUCK_US (100 * CLOCK_MS_US)      /* how long a busy origin may keep others out */
#define PUT_OFF_US_MAX (10 * CLOCK_SECOND_US)
#define HANGS_US (2 * CLOCK_SECOND_US)    /* put off at least, where nothing moved at all */
#define PAUSE_US CLOCK_SECOND_US          /* after a refusal of the queue */
#define SLEEP_MS_MAX 60000                /* poll does not count a suspend, the engine clock does */
#define FIRST_DELAY_MS 1000
#define MAX_DELAY_MS (3600 * 1000)
#define TIMEOUT_MS 10000

struct settled {
    struct outbox_message message;
    char last_error[WEBHOOK_REASON_BYTES];
    bool remove;
};

struct webhooks {
    struct engine *engine;
    _Atomic(const struct settings *) settings;
    struct str secret;
    const struct log *log;
    struct webhook_options options;
    CURLM *multi;
    pthread_t thread;
    bool runs;
    atomic_bool stop;
    atomic_bool woken;
    /* the thread's own: */
    struct arena arena; /* of the window */
    struct outbox_message *window;
    uint32_t window_count;
    uint32_t window_left;    /* not begun yet; those begun have key 0 */
    uint32_t window_begun;
    int64_t window_since_us;
    uint32_t take_limit;
    bool wanted;             /* take as soon as possible */
    int64_t next_take_us;
    int64_t pause_until_us;  /* no requests to the queue before */
    int64_t settled_since_us;
    uint32_t settled_count;
    struct settled settled[SETTLED_MAX];
    struct webhook_call calls[CALLS_MAX];
};

/* ---- what came of a message ---- */

static struct settled *settle(struct webhooks *webhooks, const struct outbox_message *message,
                              struct str reason, int64_t now_us)
{
    struct settled *settled = &webhooks->settled[webhooks->settled_count];
    size_t len = reason.len < WEBHOOK_REASON_BYTES ? reason.len : WEBHOOK_REASON_BYTES - 1;

    ASSERT(webhooks->settled_count < SETTLED_MAX);
    if (webhooks->settled_count++ == 0)
        webhooks->settled_since_us = now_us;
    *settled = (struct settled){.message = *message};
    if (len)
        memcpy(settled->last_error, reason.data, len);
    settled->message.body = settled->message.target = settled->message.kind = STR_NONE;
    settled->message.last_error = reason.data ? str_of(settled->last_error) : STR_NONE;
    return settled;
}

static void log_outcome(const struct webhooks *webhooks, enum log_level level, const char *event,
                        const struct outbox_message *message, int64_t attempts, const char *reason)
{
    ARENA_AUTO struct arena arena = ARENA_INIT(4096);
    struct str correlation_id = STR_NONE;
    struct str body;
    char id[UUID_TEXT_BYTES];
    char task[UUID_TEXT_BYTES];

    if (!webhooks->log || webhooks->log->level > level)
        return;
    if (message->body.data && json_check_ours(message->body, &body, NULL) == 0)
        correlation_id = json_string(json_get(body, STR("correlation_id")), &arena);
    uuid_format(&message->id, id);
    uuid_format(&message->task_id, task);
    LOG(webhooks->log, level, event, KC("message", id), KC("task", task),
        KS("correlation_id", correlation_id), KS("to", callback_origin(message->target)),
        KI("attempts", attempts), KC("reason", reason));
}

static void settle_delivered(struct webhooks *webhooks, const struct outbox_message *message,
                             int64_t now_us)
{
    FAULT_POINT("webhook.delivered");
    settle(webhooks, message, STR_NONE, now_us)->remove = true;
    log_outcome(webhooks, LOG_DEBUG, "webhook.delivered", message, message->attempts + 1, "");
}

static void settle_given_up(struct webhooks *webhooks, const struct outbox_message *message,
                            int64_t attempts, const char *reason, int64_t now_us)
{
    struct settled *settled = settle(webhooks, message, str_of(reason), now_us);

    settled->message.attempts = attempts;
    settled->message.next_at_us = 0;
    log_outcome(webhooks, LOG_WARN, "webhook.given_up", message, attempts, reason);
}

static int64_t random_up_to(int64_t most)
{
    uint64_t random;

    hash_random(&random, sizeof random);
    return (int64_t)(random % ((uint64_t)most + 1));
}

/* Full jitter, so that many messages that failed together do not come back together. The last try
 * is at the very end. */
static int64_t next_try_us(const struct webhooks *webhooks, const struct outbox_message *message,
                           int64_t now_us)
{
    struct retry_rule rule = {.policy = RETRY_EXPONENTIAL,
                              .delay_ms = webhooks->options.first_delay_ms,
                              .max_delay_ms = webhooks->options.max_delay_ms};
    int64_t next_us = now_us + random_up_to(retry_delay_ms(&rule, message->attempts) * CLOCK_MS_US);

    return next_us < message->expires_at_us ? next_us : message->expires_at_us;
}

static void settle_failed(struct webhooks *webhooks, const struct outbox_message *message,
                          const char *reason, int64_t now_us)
{
    struct settled *settled;

    if (now_us >= message->expires_at_us) {
        settle_given_up(webhooks, message, message->attempts + 1, reason, now_us);
        return;
    }
    settled = settle(webhooks, message, str_of(reason), now_us);
    settled->message.attempts++;
    settled->message.next_at_us = next_try_us(webhooks, message, now_us);
    log_outcome(webhooks, LOG_DEBUG, "webhook.failed", message, settled->message.attempts, reason);
}

/* Those left in the window come back spread over the time they would take at the pace seen, so that
 * their receiver does not run dry. They were not tried: no attempt is counted. */
static void settle_put_off(struct webhooks *webhooks, int64_t now_us)
{
    int64_t begun = webhooks->window_begun ? webhooks->window_begun : 1;
    int64_t least_us = webhooks->window_begun ? 0 : HANGS_US;
    int64_t most_us = (now_us - webhooks->window_since_us) * webhooks->window_left / begun;

    if (most_us > PUT_OFF_US_MAX)
        most_us = PUT_OFF_US_MAX;
    for (uint32_t i = 0; i < webhooks->window_count; i++) {
        const struct outbox_message *message = &webhooks->window[i];
        struct settled *settled;

        if (!message->key)
            continue;
        settled = settle(webhooks, message, message->last_error, now_us);
        settled->message.next_at_us = now_us + least_us + random_up_to(most_us);
    }
}

/* ---- requests to the queue ---- */

static int save(struct webhooks *webhooks, int64_t now_us)
{
    struct outbox_message messages[SETTLED_MAX];
    bool remove[SETTLED_MAX];
    struct outbox_done_request request = {.base = {.kind = REQUEST_OUTBOX_DONE},
                                          .messages = messages,
                                          .remove = remove,
                                          .count = webhooks->settled_count};

    for (uint32_t i = 0; i < webhooks->settled_count; i++) {
        messages[i] = webhooks->settled[i].message;
        remove[i] = webhooks->settled[i].remove;
    }
    if (request.count && engine_call(webhooks->engine, &request.base) < 0) {
        LOG(webhooks->log, LOG_WARN, "webhook.save_failed", KC("reason", request.base.err.text));
        webhooks->pause_until_us = now_us + PAUSE_US;
        return -(int)request.base.err.code;
    }
    for (uint32_t i = 0; i < webhooks->settled_count; i++)
        if (!remove[i] && messages[i].next_at_us &&
            messages[i].next_at_us < webhooks->next_take_us)
            webhooks->next_take_us = messages[i].next_at_us;
    webhooks->settled_count = 0;
    return 0;
}

static bool is_under_way(const struct webhooks *webhooks, int64_t key)
{
    for (size_t i = 0; i < CALLS_MAX; i++)
        if (webhooks->calls[i].busy && webhooks->calls[i].message.key == key)
            return true;
    return false;
}

/* Keeps what is ours to begin; what may not be called is given up at once. */
static void sift(struct webhooks *webhooks, const struct outbox_take_request *request,
                 int64_t now_us)
{
    webhooks->window = request->messages;
    webhooks->window_count = request->count;
    webhooks->window_since_us = now_us;
    for (uint32_t i = 0; i < request->count; i++) {
        struct outbox_message *message = &webhooks->window[i];

        if (str_is(message->kind, "webhook") && !is_under_way(webhooks, message->key)) {
            if (callback_allowed(webhooks->settings, message->target)) {
                webhooks->window_left++;
                continue;
            }
            settle_given_up(webhooks, message, message->attempts,
                            "callbacks.allow does not list the URL, so it is not called.", now_us);
        }
        message->key = 0;
    }
    if (request->count == request->limit && !webhooks->window_left && !webhooks->settled_count)
        webhooks->pause_until_us = now_us + PAUSE_US; /* full, but nothing in it was for us */
}

static void take_failed(struct webhooks *webhooks, const struct err *err, int64_t now_us)
{
    if (err->code == ERR_MEMORY && webhooks->take_limit > 1) {
        webhooks->take_limit /= 2; /* large bodies */
        return;
    }
    LOG(webhooks->log, LOG_WARN, "webhook.take_failed", KC("reason", err->text));
    webhooks->pause_until_us = now_us + PAUSE_US;
}

static void drop_window(struct webhooks *webhooks)
{
    webhooks->window_count = webhooks->window_left = webhooks->window_begun = 0;
    arena_reset(&webhooks->arena);
}

static void take(struct webhooks *webhooks, int64_t now_us)
{
    struct outbox_take_request request = {
        .base = {.kind = REQUEST_OUTBOX_TAKE, .arena = &webhooks->arena},
        .limit = webhooks->take_limit};

    settle_put_off(webhooks, now_us);
    drop_window(webhooks);
    if (save(webhooks, now_us) < 0) /* or they would be taken again */
        return;
    if (engine_call(webhooks->engine, &request.base) < 0) {
        take_failed(webhooks, &request.base.err, now_us);
        return;
    }
    webhooks->wanted = request.count == request.limit;
    webhooks->next_take_us = request.next_at_us;
    webhooks->take_limit = WINDOW_MAX;
    sift(webhooks, &request, now_us);
}

/* ---- calls ---- */

static struct webhook_call *free_call(struct webhooks *webhooks)
{
    for (size_t i = 0; i < CALLS_MAX; i++)
        if (!webhooks->calls[i].busy)
            return &webhooks->calls[i];
    return NULL;
}

static bool origin_is_busy(const struct webhooks *webhooks, struct str origin)
{
    unsigned count = 0;

    for (size_t i = 0; i < CALLS_MAX; i++)
        count += webhooks->calls[i].busy && str_eq(webhooks->calls[i].origin, origin);
    return count >= CALLS_PER_ORIGIN;
}

static void begin_call(struct webhooks *webhooks, struct webhook_call *call,
                       struct outbox_message *message, int64_t now_us)
{
    struct err err = {0};
    int rc = webhook_call_prepare(call, message, webhooks->secret, clock_wall_us(),
                                  webhooks->options.timeout_ms, &err);

    if (rc == 0 && curl_multi_add_handle(webhooks->multi, call->easy) != CURLM_OK) {
        webhook_call_finish(call);
        rc = err_no_memory(&err);
    }
    if (rc < 0)
        settle_failed(webhooks, message, err.text, now_us);
    FAULT_POINT("webhook.sending");
    message->key = 0;
    webhooks->window_left--;
    webhooks->window_begun++;
}

/* Tried again until it expires: the key may come back. */
static void settle_locked(struct webhooks *webhooks, struct outbox_message *message,
                          int64_t now_us)
{
    settle_failed(webhooks, message, "its body is encrypted and cannot be opened here.", now_us);
    message->key = 0;
    webhooks->window_left--;
    webhooks->window_begun++;
}

static void begin_calls(struct webhooks *webhooks, int64_t now_us)
{
    struct webhook_call *call = free_call(webhooks);

    for (uint32_t i = 0; i < webhooks->window_count && webhooks->window_left && call; i++) {
        struct outbox_message *message = &webhooks->window[i];

        if (!message->key || origin_is_busy(webhooks, callback_origin(message->target)))
            continue;
        if (message->locked) {
            settle_locked(webhooks, message, now_us);
            continue;
        }
        begin_call(webhooks, call, message, now_us);
        call = free_call(webhooks);
    }
    if (!webhooks->window_left)
        drop_window(webhooks); /* its bodies may be large */
}

static void end_call(struct webhooks *webhooks, CURL *easy, CURLcode result, int64_t now_us)
{
    struct webhook_call *call = NULL;
    char reason[WEBHOOK_REASON_BYTES];

    curl_easy_getinfo(easy, CURLINFO_PRIVATE, (char **)&call);
    if (webhook_call_delivered(call, result, reason))
        settle_delivered(webhooks, &call->message, now_us);
    else
        settle_failed(webhooks, &call->message, reason, now_us);
    curl_multi_remove_handle(webhooks->multi, easy);
    webhook_call_finish(call);
}

/* Moves the transfers on; true when one of them ended. */
static bool advance_calls(struct webhooks *webhooks)
{
    bool ended = false;
    int running, left;
    CURLMsg *message;

    curl_multi_perform(webhooks->multi, &running);
    while (webhooks->settled_count < SETTLED_MAX &&
           (message = curl_multi_info_read(webhooks->multi, &left))) {
        if (message->msg != CURLMSG_DONE)
            continue;
        end_call(webhooks, message->easy_handle, message->data.result,
                 engine_now_us(webhooks->engine));
        ended = true;
    }
    return ended;
}

/* ---- the thread ---- */

static int64_t later(int64_t a_us, int64_t b_us)
{
    return a_us > b_us ? a_us : b_us;
}

static int64_t save_at_us(const struct webhooks *webhooks)
{
    int64_t at_us = webhooks->settled_since_us + SAVE_AFTER_US;

    return webhooks->settled_count ? later(at_us, webhooks->pause_until_us) : INT64_MAX;
}

static int64_t take_at_us(struct webhooks *webhooks)
{
    int64_t at_us = webhooks->wanted ? 0 : webhooks->next_take_us;

    if (!free_call(webhooks))
        return INT64_MAX;
    if (webhooks->window_left)
        at_us = later(at_us, webhooks->window_since_us + STUCK_US);
    return later(at_us, webhooks->pause_until_us);
}

static void sleep_until(struct webhooks *webhooks, int64_t until_us)
{
    int64_t wait_us = until_us - engine_now_us(webhooks->engine);
    int wait_ms = SLEEP_MS_MAX;

    if (until_us == INT64_MAX)
        wait_ms = INT_MAX;
    else if (wait_us < (int64_t)SLEEP_MS_MAX * CLOCK_MS_US)
        wait_ms = wait_us <= 0 ? 0 : (int)((wait_us + CLOCK_MS_US - 1) / CLOCK_MS_US);
    curl_multi_poll(webhooks->multi, NULL, 0, wait_ms, NULL);
}

static void *run(void *ctx)
{
    struct webhooks *webhooks = ctx;

    while (!atomic_load(&webhooks->stop)) {
        bool ended = advance_calls(webhooks);
        int64_t now_us = engine_now_us(webhooks->engine);
        int64_t save_us, take_us;

        if (atomic_exchange(&webhooks->woken, false))
            webhooks->wanted = true;
        begin_calls(webhooks, now_us);
        if (now_us >= save_at_us(webhooks))
            save(webhooks, now_us);
        if (now_us >= take_at_us(webhooks)) {
            take(webhooks, now_us);
            begin_calls(webhooks, now_us);
        }
        save_us = save_at_us(webhooks);
        take_us = take_at_us(webhooks);
        if (!ended)
            sleep_until(webhooks, save_us < take_us ? save_us : take_us);
    }
    save(webhooks, engine_now_us(webhooks->engine)); /* what is cut off now stays due as it was */
    return NULL;
}

/* ---- start and stop ---- */

static void global_init(void)
{
    curl_global_init(CURL_GLOBAL_DEFAULT);
}

int webhooks_check(const struct settings *settings, struct err *err)
{
    for (uint32_t i = 0; i < settings->callbacks.allow_count; i++) {
        struct str entry = settings->callbacks.allow[i];

        if (!callback_entry_valid(entry))
            return err_set_field(err, ERR_INVALID, "callbacks.allow",
                                 "'%.*s' in callbacks.allow is not an address; write it like "
                                 "https://example.org or https://example.org:8443/hooks",
                                 entry.len < 200 ? (int)entry.len : 200,
                                 entry.data ? entry.data : "");
    }
    return 0;
}

void webhooks_configure(struct webhooks *webhooks, const struct settings *settings)
{
    atomic_store(&webhooks->settings, settings);
}

static int check(const struct settings *settings, struct str secret, struct err *err)
{
    TRY(webhooks_check(settings, err));
    if (!secret.len)
        return err_set_field(err, ERR_INVALID, "callbacks.secret",
                             "callbacks.secret is empty; callbacks cannot be signed without it");
    return 0;
}

static int64_t or_default(int64_t value, int64_t fallback)
{
    return value > 0 ? value : fallback;
}

static int open_curl(struct webhooks *webhooks, struct err *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT; /* libcurl's own state, not ours */
    struct str ca = atomic_load(&webhooks->settings)->callbacks.ca;

    pthread_once(&once, global_init);
    webhooks->multi = TRY_MEMORY(curl_multi_init());
    curl_multi_setopt(webhooks->multi, CURLMOPT_MAXCONNECTS, (long)CALLS_MAX);
    for (size_t i = 0; i < CALLS_MAX; i++)
        TRY(webhook_call_init(&webhooks->calls[i], ca, err));
    return 0;
}

/* Other threads handle signals; SIGPIPE, which a TLS connection may raise, is ignored. */
static int start_thread(struct webhooks *webhooks, struct err *err)
{
    webhooks->runs = thread_start(&webhooks->thread, 0, run, webhooks) == 0;
    return webhooks->runs ? 0 : err_set(err, ERR_MEMORY, "cannot start the thread for callbacks");
}

struct webhooks *webhooks_start(struct engine *engine, const struct settings *settings,
                                struct str secret, const struct webhook_options *options,
                                const struct log *log, struct err *err)
{
    struct webhook_options given = options ? *options : (struct webhook_options){0};
    struct webhooks *webhooks;

    if (check(settings, secret, err) < 0)
        return NULL;
    webhooks = err_calloc(sizeof *webhooks, err);
    if (!webhooks)
        return NULL;
    webhooks->engine = engine;
    webhooks->settings = settings;
    webhooks->secret = secret;
    webhooks->log = log;
    webhooks->options.first_delay_ms = or_default(given.first_delay_ms, FIRST_DELAY_MS);
    webhooks->options.max_delay_ms = or_default(given.max_delay_ms, MAX_DELAY_MS);
    webhooks->options.timeout_ms = or_default(given.timeout_ms, TIMEOUT_MS);
    webhooks->arena = ARENA_INIT(WINDOW_BYTES_MAX);
    webhooks->take_limit = WINDOW_MAX;
    webhooks->wanted = true;
    if (open_curl(webhooks, err) < 0 || start_thread(webhooks, err) < 0) {
        webhooks_stop(webhooks);
        return NULL;
    }
    return webhooks;
}

void webhooks_wake(struct webhooks *webhooks)
{
    if (!atomic_exchange(&webhooks->woken, true))
        curl_multi_wakeup(webhooks->multi);
}

void webhooks_halt(struct webhooks *webhooks)
{
    if (!webhooks->runs)
        return;
    atomic_store(&webhooks->stop, true);
    curl_multi_wakeup(webhooks->multi);
    pthread_join(webhooks->thread, NULL);
    webhooks->runs = false;
}

void webhooks_stop(struct webhooks *webhooks)
{
    if (!webhooks)
        return;
    webhooks_halt(webhooks);
    for (size_t i = 0; i < CALLS_MAX; i++) {
        struct webhook_call *call = &webhooks->calls[i];

        if (call->busy)
            curl_multi_remove_handle(webhooks->multi, call->easy);
        webhook_call_deinit(call);
    }
    if (webhooks->multi)
        curl_multi_cleanup(webhooks->multi);
    arena_deinit(&webhooks->arena);
    free(webhooks);
}
