#include "brokers/broker_consumer.h"

#include "base/fault.h"
#include "base/thread.h"
#include "brokers/broker_grave.h"
#include "brokers/broker_letter.h"
#include "core/broker/broker_url.h"

#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define FRAMES_AT_ONCE 2000 /* read before answers are looked at again */
#define HELD_BYTES_MAX ((size_t)64 << 20) /* nothing more is read above this */
#define TICK_MS 1000        /* heartbeats are sent as often as frames are asked for */
#define AGAIN_US CLOCK_SECOND_US      /* what met a bound, or a store that is full */
#define DELAY_US_MIN (CLOCK_SECOND_US / 2) /* between connections, doubled each time ... */
#define DELAY_US_MAX (30 * CLOCK_SECOND_US) /* ... up to this */
#define KEY_BYTES 128 /* "broker:" and a name */

/* Who makes the tasks: events name the broker. */
struct maker {
    struct principal principal;
    struct caller caller;
    char key[KEY_BYTES];
};

/* Any thread reads them. */
struct figures {
    atomic_bool connected;
    atomic_int_fast64_t messages, tasks, duplicates, dead, put_off, failures, held;
};

struct broker_consumer {
    struct engine *engine;
    const struct settings *settings;
    const struct broker_rule *rule;
    const struct broker_input *input;
    const struct log *log;
    char place[512];
    struct maker maker;
    pthread_t thread;
    atomic_bool stop;
    int wake_fd;
    /* the thread's own: */
    struct broker_link link;
    struct broker_grave grave;
    struct letter *oldest, **end; /* by age */
    struct letter *coming;        /* the newest, not whole yet */
    size_t held_bytes;
    uint32_t asked, waits, refused; /* letters in these states */
    int64_t bury_at_us, bury_delay_us;
    int64_t told_us;              /* when a refusal was logged last */
    /* shared: */
    pthread_mutex_t mutex;
    struct letter *done; /* that the engine has answered */
    char last_error[BROKER_ERROR_BYTES];
    int64_t last_error_us;
    struct figures figures;
};

static void wake(struct broker_consumer *consumer)
{
    uint64_t one = 1;

    if (write(consumer->wake_fd, &one, sizeof one) < 0)
        return; /* it is awake: the counter is full */
}

static void note_error(struct broker_consumer *consumer, const char *text)
{
    LOCKED(&consumer->mutex);

    snprintf(consumer->last_error, sizeof consumer->last_error, "%s", text);
    consumer->last_error_us = clock_wall_us();
}

/* ---- to the engine and back ---- */

/* On the engine's thread. */
static void on_done(struct request *request)
{
    struct letter *letter = request->ctx;
    struct broker_consumer *consumer = letter->owner;
    bool first;

    pthread_mutex_lock(&consumer->mutex);
    first = consumer->done == NULL;
    letter->next_done = consumer->done;
    consumer->done = letter;
    if (first) /* under the lock: the thread may free all of this once it has the letter */
        wake(consumer);
    pthread_mutex_unlock(&consumer->mutex);
}

static void set_state(struct broker_consumer *consumer, struct letter *letter,
                      enum letter_state state)
{
    consumer->asked += (uint32_t)(state == LETTER_ASKED) - (letter->state == LETTER_ASKED);
    consumer->waits += (uint32_t)(state == LETTER_WAITS) - (letter->state == LETTER_WAITS);
    consumer->refused += (uint32_t)(state == LETTER_REFUSED) - (letter->state == LETTER_REFUSED);
    letter->state = state;
}

static void decide(struct broker_consumer *consumer, struct letter *letter)
{
    const struct err *answer = &letter->request.base.err;

    set_state(consumer, letter, letter_decide(answer));
    if (letter->state == LETTER_SETTLED) {
        atomic_fetch_add(letter->request.duplicate[0] ? &consumer->figures.duplicates
                                                      : &consumer->figures.tasks, 1);
    } else if (letter->state == LETTER_WAITS) {
        letter->try_at_us = clock_boot_us() + AGAIN_US;
        atomic_fetch_add(&consumer->figures.put_off, 1);
        note_error(consumer, answer->text);
    }
}

static void ask(struct broker_consumer *consumer, struct letter *letter)
{
    struct request *request = &letter->request.base;

    letter_parse(letter, consumer->rule->name, consumer->input, consumer->settings);
    if (request->err.code != ERR_NONE) {
        decide(consumer, letter);
        return;
    }
    request->done = on_done;
    request->ctx = letter;
    request->caller = &consumer->maker.caller;
    set_state(consumer, letter, LETTER_ASKED);
    engine_submit(consumer->engine, request);
}

static void collect(struct broker_consumer *consumer)
{
    struct letter *letter, *next;

    pthread_mutex_lock(&consumer->mutex);
    letter = consumer->done;
    consumer->done = NULL;
    pthread_mutex_unlock(&consumer->mutex);
    for (; letter; letter = next) {
        next = letter->next_done;
        decide(consumer, letter);
    }
}

static void ask_again(struct broker_consumer *consumer)
{
    int64_t now_us = clock_boot_us();

    for (struct letter *at = consumer->oldest; at && consumer->waits; at = at->next)
        if (at->state == LETTER_WAITS && at->try_at_us <= now_us)
            ask(consumer, at);
}

/* ---- the letters ---- */

static void drop(struct broker_consumer *consumer, struct letter **link)
{
    struct letter *letter = *link;

    *link = letter->next;
    if (!*link)
        consumer->end = link;
    consumer->held_bytes -= letter->body_bytes;
    atomic_fetch_sub(&consumer->figures.held, 1);
    letter_free(letter);
}

static int add(struct broker_consumer *consumer, uint64_t tag, struct err *err)
{
    struct letter *letter = TRY_MEMORY(letter_new(tag));

    letter->owner = consumer;
    *consumer->end = letter;
    consumer->end = &letter->next;
    consumer->coming = letter;
    atomic_fetch_add(&consumer->figures.held, 1);
    return 0;
}

/* Once the connection is gone the broker sends what is here again. */
static void drop_all(struct broker_consumer *consumer)
{
    while (consumer->asked) {
        struct pollfd fd = {.fd = consumer->wake_fd, .events = POLLIN};
        uint64_t count;

        poll(&fd, 1, TICK_MS);
        if (read(consumer->wake_fd, &count, sizeof count) < 0)
            count = 0;
        collect(consumer);
    }
    while (consumer->oldest)
        drop(consumer, &consumer->oldest);
    consumer->coming = NULL;
    consumer->waits = consumer->refused = 0;
}

/* ---- the broker ---- */

static void take_whole(struct broker_consumer *consumer)
{
    struct letter *letter = consumer->coming;

    consumer->coming = NULL;
    atomic_fetch_add(&consumer->figures.messages, 1);
    ask(consumer, letter);
    amqp_maybe_release_buffers(consumer->link.state);
}

static int take_method(struct broker_consumer *consumer, const amqp_method_t *method,
                       struct err *err)
{
    const amqp_basic_deliver_t *deliver = method->decoded;

    switch (method->id) {
    case AMQP_BASIC_DELIVER_METHOD:
        return add(consumer, deliver->delivery_tag, err);
    case AMQP_BASIC_CANCEL_METHOD:
        return err_set(err, ERR_UNAVAILABLE, "the broker has ended the delivery: the queue was "
                       "deleted, or moves to another of its nodes");
    default:
        return broker_link_ended(method, "the broker has closed the channel", err);
    }
}

static int take_frame(struct broker_consumer *consumer, const amqp_frame_t *frame,
                      struct err *err)
{
    struct letter *letter = consumer->coming;

    if (frame->frame_type == AMQP_FRAME_METHOD)
        return take_method(consumer, &frame->payload.method, err);
    if (!letter)
        return err_set(err, ERR_UNAVAILABLE, "the broker sends content without a message");
    if (frame->frame_type == AMQP_FRAME_HEADER) {
        TRY(letter_take_head(letter, frame, err));
        consumer->held_bytes += letter->body_bytes;
        if (letter->body_bytes == 0)
            take_whole(consumer);
    } else if (letter_take_body(letter, frame->payload.body_fragment)) {
        take_whole(consumer);
    }
    return 0;
}

static bool is_full(const struct broker_consumer *consumer)
{
    return consumer->held_bytes > HELD_BYTES_MAX && !consumer->coming;
}

/* *more: it stopped before there was nothing left. */
static int read_some(struct broker_consumer *consumer, bool *more, struct err *err)
{
    amqp_frame_t frame;

    for (int i = 0; i < FRAMES_AT_ONCE && !is_full(consumer); i++) {
        int rc = broker_link_frame(&consumer->link, &frame, 0, err);

        *more = rc > 0;
        if (rc <= 0)
            return rc;
        TRY(take_frame(consumer, &frame, err));
    }
    return 0;
}

static int send_ack(struct broker_consumer *consumer, uint64_t tag, bool multiple,
                    struct err *err)
{
    int status = amqp_basic_ack(consumer->link.state, BROKER_CHANNEL, tag, multiple);

    return status == AMQP_STATUS_OK
               ? 0 : broker_link_failed(status, "a message cannot be acknowledged", err);
}

/* Up to the oldest one that is not settled with one word; behind one that may stay for long, each
 * by itself. */
static int acknowledge(struct broker_consumer *consumer, struct err *err)
{
    struct letter **link = &consumer->oldest;
    uint64_t tag = 0;

    while (consumer->oldest && consumer->oldest->state == LETTER_SETTLED) {
        tag = consumer->oldest->tag;
        drop(consumer, &consumer->oldest);
    }
    if (tag) {
        FAULT_POINT("broker.acknowledge");
        TRY(send_ack(consumer, tag, true, err));
    }
    if (!*link || ((*link)->state != LETTER_WAITS && (*link)->state != LETTER_REFUSED))
        return 0;
    while (*link) {
        if ((*link)->state != LETTER_SETTLED) {
            link = &(*link)->next;
            continue;
        }
        TRY(send_ack(consumer, (*link)->tag, false, err));
        drop(consumer, link);
    }
    return 0;
}

/* ---- dead letters ---- */

static void tell_refused(struct broker_consumer *consumer, const struct letter *letter)
{
    int64_t now_us = clock_boot_us();

    note_error(consumer, letter->request.base.err.text);
    if (now_us - consumer->told_us < CLOCK_SECOND_US && consumer->told_us)
        return; /* a queue full of them says it once a second */
    consumer->told_us = now_us;
    LOG(consumer->log, LOG_WARN, "broker.message_refused", KS("broker", consumer->rule->name),
        KS("queue", consumer->input->queue), KC("reason", letter->request.base.err.text));
}

static void tell_buried(struct broker_consumer *consumer, struct letter *letter)
{
    FAULT_POINT("broker.buried");
    tell_refused(consumer, letter);
    atomic_fetch_add(&consumer->figures.dead, 1);
    consumer->bury_delay_us = 0;
    set_state(consumer, letter, LETTER_SETTLED);
}

static int bury(struct broker_consumer *consumer, const struct letter *letter, struct err *err)
{
    struct dead_letter dead = {.body = str_span(letter->body, letter->body_bytes),
                               .properties = &letter->properties,
                               .reason = str_of(letter->request.base.err.text)};

    return broker_grave_put(&consumer->grave, consumer->rule, consumer->input, &dead, err);
}

static void bury_later(struct broker_consumer *consumer, const struct err *err)
{
    note_error(consumer, err->text);
    consumer->bury_delay_us = consumer->bury_delay_us ? 2 * consumer->bury_delay_us : DELAY_US_MIN;
    if (consumer->bury_delay_us > DELAY_US_MAX)
        consumer->bury_delay_us = DELAY_US_MAX;
    consumer->bury_at_us = clock_boot_us() + consumer->bury_delay_us;
}

/* The oldest refused one; the next when it is confirmed, or after a growing wait. */
static void bury_some(struct broker_consumer *consumer)
{
    for (struct letter *at = consumer->oldest; at && consumer->refused; at = at->next) {
        struct err err = {0};
        int rc = 0;

        if (at->state != LETTER_REFUSED)
            continue;
        if (!consumer->grave.asked && clock_boot_us() < consumer->bury_at_us)
            return;
        if (!consumer->grave.asked)
            rc = bury(consumer, at, &err);
        if (rc == 0)
            rc = broker_grave_ask(&consumer->grave, &err);
        if (rc < 0)
            bury_later(consumer, &err);
        if (rc <= 0)
            return;
        tell_buried(consumer, at);
    }
    broker_grave_close(&consumer->grave);
}

/* ---- the thread ---- */

/* Until something comes, at most this long; fd < 0 = of the engine only. */
static void wait_for(struct broker_consumer *consumer, int fd, int wait_ms)
{
    struct pollfd fds[] = {{.fd = consumer->wake_fd, .events = POLLIN},
                           {.fd = fd, .events = POLLIN},
                           {.fd = consumer->grave.link.fd, .events = POLLIN}};
    uint64_t count;

    poll(fds, 3, wait_ms);
    if (fds[0].revents && read(consumer->wake_fd, &count, sizeof count) < 0)
        return; /* another look costs nothing */
}

static int serve(struct broker_consumer *consumer, struct err *err)
{
    for (;;) {
        bool stops = atomic_load(&consumer->stop), more = false;

        if (!stops)
            TRY(read_some(consumer, &more, err));
        collect(consumer);
        if (!stops) {
            bury_some(consumer);
            ask_again(consumer);
        }
        TRY(acknowledge(consumer, err));
        if (stops && consumer->asked == 0)
            return 0;
        if (stops || !more)
            wait_for(consumer, stops || is_full(consumer) ? -1 : consumer->link.fd,
                     consumer->waits || consumer->refused ? TICK_MS / 10 : TICK_MS);
    }
}

static int subscribe(struct broker_consumer *consumer, struct err *err)
{
    struct broker_link *link = &consumer->link;

    TRY(broker_link_open(link, consumer->rule, err));
    TRY(broker_link_queue(link, consumer->rule, consumer->input->queue,
                          consumer->input->queue_type, err));
    amqp_basic_qos(link->state, BROKER_CHANNEL, 0, (uint16_t)consumer->input->prefetch, 0);
    TRY(broker_link_check(link, "the prefetch is refused", err));
    amqp_basic_consume(link->state, BROKER_CHANNEL, broker_bytes(consumer->input->queue),
                       amqp_empty_bytes, 0, 0, 0, amqp_empty_table);
    return broker_link_check(link, "the queue cannot be consumed", err);
}

static int connect_and_serve(struct broker_consumer *consumer, struct err *err)
{
    TRY(subscribe(consumer, err));
    atomic_store(&consumer->figures.connected, true);
    LOG(consumer->log, LOG_INFO, "broker.connected", KS("broker", consumer->rule->name),
        KC("place", consumer->place), KS("queue", consumer->input->queue));
    return serve(consumer, err);
}

static void tell_failed(struct broker_consumer *consumer, const struct err *err)
{
    atomic_fetch_add(&consumer->figures.failures, 1);
    note_error(consumer, err->text);
    LOG(consumer->log, LOG_WARN, "broker.failed", KS("broker", consumer->rule->name),
        KC("place", consumer->place), KS("queue", consumer->input->queue),
        KC("reason", err->text));
}

static void *run(void *ctx)
{
    struct broker_consumer *consumer = ctx;
    int64_t delay_us = DELAY_US_MIN;

    while (!atomic_load(&consumer->stop)) {
        struct err err = {0};
        int64_t until_us;
        int rc = connect_and_serve(consumer, &err);

        if (atomic_exchange(&consumer->figures.connected, false))
            delay_us = DELAY_US_MIN;
        broker_link_close(&consumer->link);
        broker_grave_close(&consumer->grave);
        drop_all(consumer);
        if (rc == 0)
            break;
        tell_failed(consumer, &err);
        until_us = clock_boot_us() + delay_us;
        while (!atomic_load(&consumer->stop) && clock_boot_us() < until_us)
            wait_for(consumer, -1, (int)((until_us - clock_boot_us()) / CLOCK_MS_US + 1));
        delay_us = 2 * delay_us < DELAY_US_MAX ? 2 * delay_us : DELAY_US_MAX;
    }
    return NULL;
}

/* ---- from outside ---- */

static int show_place(struct broker_consumer *consumer, struct err *err)
{
    ARENA_AUTO struct arena arena = ARENA_INIT(0);
    struct broker_url url;
    struct str shown;

    TRY(broker_url_parse(consumer->rule->url, &arena, &url, err));
    shown = broker_url_shown(&url, &arena);
    TRY_MEMORY(shown.data);
    snprintf(consumer->place, sizeof consumer->place, STR_FMT, STR_ARG(shown));
    return 0;
}

static void set_maker(struct maker *maker, const struct broker_consumer *consumer)
{
    struct str namespace_name = consumer->input->namespace_name;

    snprintf(maker->key, sizeof maker->key, "broker:" STR_FMT, STR_ARG(consumer->rule->name));
    maker->principal.key = maker->principal.name = str_of(maker->key);
    maker->principal.namespace_name = namespace_name;
    maker->principal.scopes = SCOPE_BIT(SCOPE_TASKS_ENQUEUE);
    maker->caller.principal = &maker->principal;
    maker->caller.namespace_name = namespace_name;
    maker->caller.is_program = true;
}

struct broker_consumer *broker_consumer_start(struct engine *engine,
                                              const struct settings *settings,
                                              const struct broker_rule *rule,
                                              const struct broker_input *input,
                                              const struct log *log, struct err *err)
{
    struct broker_consumer *consumer = err_calloc(sizeof *consumer, err);

    if (!consumer)
        return NULL;
    consumer->engine = engine;
    consumer->settings = settings;
    consumer->rule = rule;
    consumer->input = input;
    consumer->log = log;
    consumer->end = &consumer->oldest;
    consumer->link.fd = consumer->grave.link.fd = -1;
    set_maker(&consumer->maker, consumer);
    pthread_mutex_init(&consumer->mutex, NULL);
    consumer->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (consumer->wake_fd >= 0 && show_place(consumer, err) == 0 &&
        thread_start(&consumer->thread, 0, run, consumer) == 0)
        return consumer;
    if (err->code == ERR_NONE)
        err_set(err, ERR_IO, "no thread can be started for broker '" STR_FMT "'",
                STR_ARG(rule->name));
    if (consumer->wake_fd >= 0)
        close(consumer->wake_fd);
    pthread_mutex_destroy(&consumer->mutex);
    free(consumer);
    return NULL;
}

void broker_consumer_stop(struct broker_consumer *consumer)
{
    atomic_store(&consumer->stop, true);
    wake(consumer);
}

void broker_consumer_free(struct broker_consumer *consumer)
{
    if (!consumer)
        return;
    broker_consumer_stop(consumer);
    pthread_join(consumer->thread, NULL);
    close(consumer->wake_fd);
    pthread_mutex_destroy(&consumer->mutex);
    free(consumer);
}

void broker_consumer_view(struct broker_consumer *consumer, struct broker_view *view)
{
    LOCKED(&consumer->mutex);

    *view = (struct broker_view){.broker = consumer->rule->name,
                                 .place = str_of(consumer->place),
                                 .queue = consumer->input->queue,
                                 .type = consumer->input->type,
                                 .namespace_name = consumer->input->namespace_name,
                                 .connected = atomic_load(&consumer->figures.connected),
                                 .messages = atomic_load(&consumer->figures.messages),
                                 .tasks = atomic_load(&consumer->figures.tasks),
                                 .duplicates = atomic_load(&consumer->figures.duplicates),
                                 .refused = atomic_load(&consumer->figures.dead),
                                 .put_off = atomic_load(&consumer->figures.put_off),
                                 .failures = atomic_load(&consumer->figures.failures),
                                 .held = atomic_load(&consumer->figures.held),
                                 .last_error_us = consumer->last_error_us};
    memcpy(view->last_error, consumer->last_error, sizeof view->last_error);
}
