#include "store/postgres/pg_keeper.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/thread.h"
#include "core/hint_words.h"

#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define TELL_EVERY_US (3 * CLOCK_MS_US) /* a NOTIFY takes a lock of the whole database */
#define TELL_BYTES_MAX 7000             /* PostgreSQL takes 8,000 */
#define CONNECT_MIN_US (100 * CLOCK_MS_US)
#define CONNECT_MAX_US CLOCK_SECOND_US
#define SEPARATOR '\x1f'
#define LOOKS_MAX 3 /* after a program told of its commit: one that committed beside it did not */
#define LOOK_FIRST_US (8 * CLOCK_MS_US) /* each look four times later than the one before */
#define CHANNEL_BYTES 100
#define CHANNEL_SECRET_BYTES 16

struct pg_keeper {
    struct store_watch watch;
    const struct log *log;
    char *where;
    bool pooler;
    PGconn *pg;
    pthread_t thread;
    int wake_fd;
    atomic_bool stop;
    atomic_bool lanes_made;         /* by another node, since they were read */
    _Atomic int64_t epoch;          /* under which it leads */
    _Atomic int64_t leads_until_us; /* by CLOCK_BOOTTIME: when the renewal was sent, and a lease */
    _Atomic int64_t offset_us;      /* of the database's clock to CLOCK_BOOTTIME */
    pthread_mutex_t mutex;          /* the words to tell */
    struct buf words;
    bool everything;                /* more queues than fit: receivers check all queues */
    int64_t told_at_us;
    _Atomic int64_t heard_us;       /* of another node, by CLOCK_BOOTTIME */
    int64_t next_renewal_us;
    int64_t look_at_us; /* for what programs did with SQL; INT64_MAX = when one tells */
    uint32_t looks;     /* that found nothing, since the last that did */
    char channel[CHANNEL_BYTES];
};

int64_t keeper_epoch(const struct pg_keeper *keeper)
{
    return clock_boot_us() < atomic_load(&keeper->leads_until_us) ? atomic_load(&keeper->epoch) : 0;
}

const char *keeper_node(const struct pg_keeper *keeper)
{
    return keeper->watch.node_id;
}

int64_t keeper_now_us(const struct pg_keeper *keeper)
{
    return clock_boot_us() + atomic_load(&keeper->offset_us);
}

static void wake(struct pg_keeper *keeper)
{
    uint64_t one = 1;

    (void)!write(keeper->wake_fd, &one, sizeof one);
}

bool keeper_lanes_made(struct pg_keeper *keeper)
{
    return atomic_exchange(&keeper->lanes_made, false);
}

/* A node that listens says so when it begins to and with every renewal. After three leases without
 * a word from another node, a busy node stops sending a hint for every commit. Through a pooler no
 * node can listen. */
static bool is_alone(const struct pg_keeper *keeper)
{
    int64_t heard_us = atomic_load(&keeper->heard_us);

    return !keeper->pooler && clock_boot_us() - heard_us > 3 * keeper->watch.leader_lease_us;
}

static bool is_told(const struct pg_keeper *keeper, struct str queue)
{
    const char *at = buf_view(&keeper->words).data;
    const char *end = at + keeper->words.len;

    while (at < end) {
        const char *stop = memchr(at, SEPARATOR, (size_t)(end - at));
        size_t len = (size_t)((stop ? stop : end) - at);

        if (str_eq(str_span(at, len), queue))
            return true;
        at = stop ? stop + 1 : end;
    }
    return false;
}

void keeper_tell(struct pg_keeper *keeper, struct str queue)
{
    bool first;

    if (is_alone(keeper) && !str_eq(queue, lanes_word))
        return;
    pthread_mutex_lock(&keeper->mutex);
    first = keeper->words.len == 0 && !keeper->everything;
    if (!is_told(keeper, queue)) {
        if (keeper->words.len + queue.len + 1 > TELL_BYTES_MAX)
            keeper->everything = true;
        if (keeper->words.len)
            buf_byte(&keeper->words, SEPARATOR);
        buf_str(&keeper->words, queue);
    }
    pthread_mutex_unlock(&keeper->mutex);
    if (first)
        wake(keeper);
}

void keeper_tell_lanes(struct pg_keeper *keeper)
{
    atomic_store(&keeper->lanes_made, true); /* for this node's other writers */
    keeper_tell(keeper, lanes_word);
}

/* ---- the connection ---- */

/* NULL on failure; the loop then checks the connection. Texts in, texts out: rare. */
static PGresult *ask(struct pg_keeper *keeper, const char *text, int count,
                     const char *const *values)
{
    PGresult *result = PQexecParams(keeper->pg, text, count, NULL, values, NULL, NULL, 0);
    ExecStatusType status = PQresultStatus(result);

    if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK)
        return result;
    LOG(keeper->log, LOG_WARN, "keeper.failed", KC("reason", PQerrorMessage(keeper->pg)));
    PQclear(result);
    return NULL;
}

/* Restores the search path that the connection was opened with, because a foreign trigger may have
 * put another one before it. Not in a transaction, which would keep the row locked if the node
 * froze. Behind a pooler the session is shared. */
static PGresult *ask_in_place(struct pg_keeper *keeper, const char *text, int count,
                              const char *const *values)
{
    PGresult *placed =
        keeper->pooler ? NULL : ask(keeper, "SET search_path TO DEFAULT", 0, NULL);

    PQclear(placed);
    return placed || keeper->pooler ? ask(keeper, text, count, values) : NULL;
}

/* Every role of the database may listen to a channel whose name it knows, and hints have the names
 * of queues. So the name is a secret of the store: who may not read its tables does not know it. */
static bool listen_to_others(struct pg_keeper *keeper)
{
    char text[CHANNEL_BYTES + 16], secret[2 * CHANNEL_SECRET_BYTES + 1];
    uint8_t bytes[CHANNEL_SECRET_BYTES];
    const char *values[] = {secret};
    PGresult *result;

    hash_random(bytes, sizeof bytes);
    hash_hex(bytes, sizeof bytes, secret);
    result = ask_in_place(keeper, "INSERT INTO store_info AS i (name, value) "
                          "VALUES ('hints', 'perdura_' || $1) "
                          "ON CONFLICT (name) DO UPDATE SET value = i.value RETURNING value", 1,
                          values);
    if (!result)
        return false;
    snprintf(keeper->channel, sizeof keeper->channel, "%s", PQgetvalue(result, 0, 0));
    PQclear(result);
    if (keeper->pooler)
        return true; /* it would receive nothing */
    snprintf(text, sizeof text, "LISTEN \"%s\"", keeper->channel);
    result = ask(keeper, text, 0, NULL);
    PQclear(result);
    return result != NULL;
}

/* Assumes half of the round trip: good to a millisecond on any suitable network. */
static bool follow_clock(struct pg_keeper *keeper)
{
    int64_t sent_us = clock_boot_us(), back_us;
    PGresult *result = ask(keeper, "SELECT (extract(epoch FROM pg_catalog.clock_timestamp()) "
                                   "* 1000000)::bigint", 0, NULL);

    if (!result)
        return false;
    back_us = clock_boot_us();
    atomic_store(&keeper->offset_us, strtoll(PQgetvalue(result, 0, 0), NULL, 10) -
                                         (sent_us + back_us) / 2);
    PQclear(result);
    return true;
}

static bool tell_now(struct pg_keeper *keeper, struct str word)
{
    const char *values[] = {keeper->channel, keeper->watch.node_id, word.data};
    PGresult *result = ask(keeper, "SELECT pg_catalog.pg_notify($1, $2 || chr(31) || $3)", 3,
                           values);

    PQclear(result);
    return result != NULL;
}

static bool say_here(struct pg_keeper *keeper)
{
    return keeper->pooler || tell_now(keeper, here_word);
}

static bool connect_again(struct pg_keeper *keeper)
{
    const char *const names[] = {PG_NETWORK_NAMES, "dbname", "application_name", NULL};
    const char *const values[] = {PG_NETWORK_VALUES, keeper->where, "perdura keeper", NULL};

    PQfinish(keeper->pg);
    keeper->pg = PQconnectdbParams(names, values, 1);
    conn_quiet(keeper->pg);
    if (PQstatus(keeper->pg) != CONNECTION_OK || !listen_to_others(keeper) ||
        !say_here(keeper) || !follow_clock(keeper))
        return false;
    keeper->next_renewal_us = 0;
    atomic_store(&keeper->heard_us, clock_boot_us()); /* listeners send within a lease */
    atomic_store(&keeper->lanes_made, true);
    if (keeper->watch.on_hint) /* hints sent meanwhile were missed */
        keeper->watch.on_hint(keeper->watch.ctx, STR_NONE);
    return true;
}

/* At a start, like conn_open_first(). */
static bool connect_first(struct pg_keeper *keeper)
{
    bool good = connect_again(keeper);

    for (int tries = 1; !good && conn_took_too_long(keeper->pg) && tries < PG_FIRST_TRIES; tries++)
        good = connect_again(keeper);
    return good;
}

/* ---- leadership ---- */

/* The node believes that it leads until a lease after the request was sent, however late the answer
 * comes. */
static bool renew(struct pg_keeper *keeper)
{
    char lease[32];
    const char *values[] = {keeper->watch.node_id, lease};
    int64_t sent_us = clock_boot_us();
    PGresult *result;
    bool leads;

    snprintf(lease, sizeof lease, "%lld", (long long)keeper->watch.leader_lease_us);
    result = ask_in_place(keeper, "INSERT INTO leadership AS l (namespace, holder, epoch, until) "
                          "VALUES ('*', $1, 1, clock_timestamp() + $2::bigint "
                          "* interval '1 microsecond') "
                          "ON CONFLICT (namespace) DO UPDATE SET holder = excluded.holder, "
                          "epoch = l.epoch + CASE WHEN l.holder = excluded.holder THEN 0 ELSE 1 "
                          "END, until = clock_timestamp() + $2::bigint * interval '1 microsecond' "
                          "WHERE l.holder = excluded.holder OR l.until < clock_timestamp() "
                          "RETURNING epoch", 2, values);
    if (!result)
        return false;
    leads = PQntuples(result) == 1;
    if (leads) {
        atomic_store(&keeper->epoch, strtoll(PQgetvalue(result, 0, 0), NULL, 10));
        if (clock_boot_us() >= atomic_load(&keeper->leads_until_us))
            LOG(keeper->log, LOG_INFO, "node.leads", KI("epoch", atomic_load(&keeper->epoch)));
    }
    atomic_store(&keeper->leads_until_us,
                 leads ? sent_us + keeper->watch.leader_lease_us : 0);
    PQclear(result);
    keeper->next_renewal_us = sent_us + keeper->watch.leader_lease_us / 3;
    return say_here(keeper) && follow_clock(keeper);
}

/* Other nodes would only notice at their next request, up to a third of a lease later, so this
 * tells them. */
static void give_back(struct pg_keeper *keeper)
{
    const char *values[] = {keeper->watch.node_id, keeper->channel, vacant_word.data};

    atomic_store(&keeper->leads_until_us, 0);
    if (keeper->pg && PQstatus(keeper->pg) == CONNECTION_OK)
        PQclear(ask_in_place(keeper, "WITH mine AS (UPDATE leadership SET until = "
                             "clock_timestamp() - interval '1 second' WHERE holder = $1 "
                             "RETURNING 1) SELECT pg_catalog.pg_notify($2, $1 || chr(31) || $3) "
                             "FROM mine", 3, values));
}

/* ---- telling and hearing ---- */

static bool tell(struct pg_keeper *keeper)
{
    struct buf text = BUF_INIT(2 * TELL_BYTES_MAX);
    const char *values[] = {keeper->channel, NULL};
    PGresult *result = NULL;
    bool any;

    pthread_mutex_lock(&keeper->mutex);
    any = keeper->words.len > 0;
    buf_text(&text, keeper->watch.node_id);
    if (any && !keeper->everything) {
        buf_byte(&text, SEPARATOR);
        buf_str(&text, buf_view(&keeper->words));
    }
    buf_byte(&text, '\0');
    buf_reset(&keeper->words);
    keeper->everything = false;
    pthread_mutex_unlock(&keeper->mutex);
    values[1] = text.data;
    if (any && !text.failed)
        result = ask(keeper, "SELECT pg_catalog.pg_notify($1, $2)", 2, values);
    keeper->told_at_us = clock_boot_us();
    PQclear(result);
    buf_deinit(&text);
    return !any || result;
}

/* ---- what programs do with SQL ---- */

static void look_soon(struct pg_keeper *keeper)
{
    keeper->looks = 0;
    keeper->look_at_us = clock_boot_us() + LOOK_FIRST_US;
}

/* Only the first of several commits tells the nodes, because a NOTIFY holds up all others. */
static bool look(struct pg_keeper *keeper)
{
    PGresult *result = ask_in_place(keeper, "SELECT 1 FROM intake_rows WHERE due_at <= now() "
                                    "UNION ALL SELECT 1 FROM intake_reports WHERE due_at <= now() "
                                    "LIMIT 1", 0, NULL);
    bool found = result && PQntuples(result) > 0;

    PQclear(result);
    if (found) {
        look_soon(keeper);
        keeper->watch.on_hint(keeper->watch.ctx, intake_word);
    } else {
        keeper->looks++;
        keeper->look_at_us = keeper->looks < LOOKS_MAX
                                 ? clock_boot_us() + (LOOK_FIRST_US << 2 * keeper->looks)
                                 : INT64_MAX;
    }
    return result != NULL;
}

static void hear_word(struct pg_keeper *keeper, struct str word)
{
    if (str_eq(word, intake_word))
        look_soon(keeper);
    if (str_eq(word, vacant_word))
        keeper->next_renewal_us = 0;
    else if (str_eq(word, lanes_word))
        atomic_store(&keeper->lanes_made, true);
    else if (!str_eq(word, here_word))
        keeper->watch.on_hint(keeper->watch.ctx, word);
}

/* A message is the sender's node id, or nothing if SQL sent it, then words. Without words it means
 * all queues. */
static void hear(struct pg_keeper *keeper, const char *text)
{
    size_t len = strcspn(text, "\x1f");
    bool all = text[len] == '\0';

    if (str_is(str_span(text, len), keeper->watch.node_id))
        return;
    if (len > 0)
        atomic_store(&keeper->heard_us, clock_boot_us());
    if (!keeper->watch.on_hint)
        return;
    if (all) {
        atomic_store(&keeper->lanes_made, true);
        keeper->watch.on_hint(keeper->watch.ctx, STR_NONE);
    }
    while (text[len] != '\0') {
        text += len + 1;
        len = strcspn(text, "\x1f");
        hear_word(keeper, str_span(text, len));
    }
}

static bool take_notifications(struct pg_keeper *keeper)
{
    PGnotify *notice;

    if (!PQconsumeInput(keeper->pg))
        return false;
    while ((notice = PQnotifies(keeper->pg)) != NULL) {
        hear(keeper, notice->extra);
        PQfreemem(notice);
    }
    return true;
}

static bool has_words(struct pg_keeper *keeper)
{
    bool any;

    pthread_mutex_lock(&keeper->mutex);
    any = keeper->words.len > 0;
    pthread_mutex_unlock(&keeper->mutex);
    return any;
}

/* Waits until there is something to do, receive or send. */
static void rest(struct pg_keeper *keeper, int64_t until_us)
{
    struct pollfd fds[2] = {{keeper->wake_fd, POLLIN, 0},
                            {keeper->pg ? PQsocket(keeper->pg) : -1, POLLIN, 0}};
    int64_t wait_us = until_us - clock_boot_us();
    uint64_t count;

    if (wait_us < 0)
        wait_us = 0;
    if (poll(fds, 2, (int)((wait_us + CLOCK_MS_US - 1) / CLOCK_MS_US)) > 0 && fds[0].revents)
        (void)!read(keeper->wake_fd, &count, sizeof count);
}

/* One turn of the loop; false when the connection is broken. */
static bool turn(struct pg_keeper *keeper)
{
    int64_t until_us = keeper->next_renewal_us;
    int64_t now_us = clock_boot_us();

    if (now_us >= until_us)
        return renew(keeper);
    if (now_us >= keeper->look_at_us)
        return look(keeper) && take_notifications(keeper);
    if (keeper->look_at_us < until_us)
        until_us = keeper->look_at_us;
    if (has_words(keeper)) {
        if (now_us - keeper->told_at_us >= TELL_EVERY_US)
            return tell(keeper);
        if (keeper->told_at_us + TELL_EVERY_US < until_us)
            until_us = keeper->told_at_us + TELL_EVERY_US;
    }
    rest(keeper, until_us);
    return take_notifications(keeper);
}

static void *keep(void *ctx)
{
    struct pg_keeper *keeper = ctx;
    unsigned seed = (unsigned)clock_boot_us();
    int64_t pause_us = CONNECT_MIN_US;
    bool good = PQstatus(keeper->pg) == CONNECTION_OK;

    while (!atomic_load(&keeper->stop)) {
        if (good && turn(keeper))
            continue;
        good = connect_again(keeper);
        if (good) {
            pause_us = CONNECT_MIN_US;
            continue;
        }
        PQfinish(keeper->pg); /* its socket would wake us at once */
        keeper->pg = NULL;
        rest(keeper, clock_boot_us() + pause_us / 2 + rand_r(&seed) % (pause_us / 2 + 1));
        pause_us = pause_us * 2 < CONNECT_MAX_US ? pause_us * 2 : CONNECT_MAX_US;
    }
    give_back(keeper);
    return NULL;
}

/* ---- start and stop ---- */

static void keeper_free(struct pg_keeper *keeper)
{
    PQfinish(keeper->pg);
    if (keeper->wake_fd >= 0)
        close(keeper->wake_fd);
    pthread_mutex_destroy(&keeper->mutex);
    buf_deinit(&keeper->words);
    free(keeper->where);
    free(keeper);
}

int keeper_start(struct pg_keeper **out, const struct pg_store *store,
                 const struct store_watch *watch, struct err *err)
{
    struct pg_keeper *keeper = calloc(1, sizeof *keeper);

    if (!keeper)
        return err_set(err, ERR_MEMORY, "out of memory for the node's keeper");
    keeper->watch = *watch;
    keeper->log = store->log;
    keeper->pooler = store->pooler;
    keeper->words = BUF_INIT(2 * TELL_BYTES_MAX);
    keeper->look_at_us = INT64_MAX;
    pthread_mutex_init(&keeper->mutex, NULL);
    keeper->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    keeper->where = strdup(store->where);
    if (keeper->wake_fd < 0 || !keeper->where || !connect_first(keeper) || !renew(keeper) ||
        thread_start(&keeper->thread, 0, keep, keeper) != 0) {
        err_set(err, ERR_UNAVAILABLE, "the node's second connection to the database failed; check "
                "how many it allows");
        keeper_free(keeper);
        return -(int)err->code;
    }
    *out = keeper;
    return 0;
}

void keeper_stop(struct pg_keeper *keeper)
{
    if (!keeper)
        return;
    atomic_store(&keeper->stop, true);
    wake(keeper);
    pthread_join(keeper->thread, NULL);
    keeper_free(keeper);
}
