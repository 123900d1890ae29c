/* Changes come from the engine's thread into a list below a mutex; the loop puts them into the
 * table, before it answers the request that made them. Twice a second the loop looks whether the
 * token of a waiting claim, a waiting client or a stream has ended, and adds to a shared store what
 * tokens took of their rates; once a minute it writes which tokens were used. Loop thread, but for
 * on_changes and the two done functions. */
#include "server/door/token_watch.h"

#include "base/clock.h"
#include "base/thread.h"
#include "server/door/door.h"
#include "server/stream.h"

#include <stdlib.h>

#define LOOK_US (500 * CLOCK_MS_US)
#define WRITE_US (60 * CLOCK_SECOND_US)

/* Some rows that changed. */
struct changes {
    struct changes *next;
    struct token_row *rows;
    uint32_t count;
    struct arena arena;
};

/* Uses on their way to the store, or the table that is read again. */
struct errand {
    struct access_request request;
    struct arena arena;
    struct loop_item item;
    struct token_watch *watch;
};

struct token_watch {
    struct server *server;
    struct tokens *tokens;
    struct loop_timer *timer;
    int64_t write_us;      /* when uses are written next, boot time */
    bool writing;
    int64_t shared_us;     /* when rates were shared last, boot time */
    bool sharing;
    pthread_mutex_t mutex; /* below it the next four */
    struct changes *first, **last;
    bool lost;             /* there was no memory for a change: the table is read again */
    bool posted;
    struct loop_item item;
};

int64_t token_clock_us(const struct server *server)
{
    return server->store->shared ? engine_now_us(server->engine) : clock_wall_us();
}

/* ---- what waits while its token ends ---- */

static bool has_ended(const struct api_call *call, int64_t now_us)
{
    return token_ended(call->credential.token, call->principal, now_us) != NULL;
}

/* Again with every look: a request that had just arrived was not waiting yet. */
static void end_waiting(struct token_watch *watch)
{
    int64_t now_us = token_clock_us(watch->server);

    for (struct api_call *call = watch->server->waiting; call; call = call->next_waiting)
        if (has_ended(call, now_us)) {
            call->credential.ended = true;
            call_forget(call);
        }
    stream_end_credentials(watch->server->stream, now_us);
}

/* ---- the table ---- */

static void put_rows(struct token_watch *watch, const struct token_row *rows, uint32_t count)
{
    bool was_open = door_is_open(&watch->server->auth, watch->tokens);
    int64_t now_us = token_clock_us(watch->server);
    struct err err;

    for (uint32_t i = 0; i < count; i++)
        if (tokens_put(watch->tokens, &rows[i], now_us, &err) < 0)
            LOG(watch->server->log, LOG_ERROR, "token.not_known", KS("token", rows[i].id),
                KC("reason", err.text));
    if (watch->server->http && was_open != door_is_open(&watch->server->auth, watch->tokens))
        server_limit_strangers(watch->server);
    if (map_count(&watch->tokens->by_id))
        loop_timer_set(watch->timer, 0);
}

static void take_changes(struct loop_item *item)
{
    struct token_watch *watch =
        (struct token_watch *)(void *)((char *)item - offsetof(struct token_watch, item));
    struct changes *first, *next;

    pthread_mutex_lock(&watch->mutex);
    first = watch->first;
    watch->first = NULL;
    watch->last = &watch->first;
    watch->posted = false;
    pthread_mutex_unlock(&watch->mutex);
    for (; first; first = next) {
        next = first->next;
        put_rows(watch, first->rows, first->count);
        arena_deinit(&first->arena);
        free(first);
    }
}

static struct changes *changes_new(const struct token_row *rows, uint32_t count)
{
    struct changes *changes = calloc(1, sizeof *changes);

    if (!changes)
        return NULL;
    changes->rows = arena_alloc_array(&changes->arena, count, sizeof *changes->rows);
    for (uint32_t i = 0; changes->rows && i < count; i++)
        token_copy(&rows[i], &changes->arena, &changes->rows[i]);
    changes->count = count;
    if (changes->rows && !changes->arena.failed)
        return changes;
    arena_deinit(&changes->arena);
    free(changes);
    return NULL;
}

static void on_changes(void *ctx, const struct token_row *rows, uint32_t count)
{
    struct token_watch *watch = ctx;
    struct changes *changes = changes_new(rows, count);
    bool post;

    pthread_mutex_lock(&watch->mutex);
    if (changes) {
        *watch->last = changes;
        watch->last = &changes->next;
    }
    watch->lost |= !changes;
    post = !watch->posted;
    watch->posted = true;
    pthread_mutex_unlock(&watch->mutex);
    if (post)
        loop_post(watch->server->loop, &watch->item);
}

/* ---- errands to the engine ---- */

/* What the rates of all nodes together leave. */
static void take_shares(struct token_watch *watch, const struct access_request *request,
                        bool failed)
{
    for (uint32_t i = 0; i < request->count; i++) {
        struct token_entry *entry = map_get(&watch->tokens->by_id, request->taken[i].id);

        if (!entry)
            continue;
        if (failed) /* with the next look */
            entry->taken += request->taken[i].count;
        else
            entry->shared_until_us = clock_boot_us() + request->taken[i].wait_us;
    }
}

static void errand_over(struct loop_item *item)
{
    struct errand *errand =
        (struct errand *)(void *)((char *)item - offsetof(struct errand, item));
    struct access_request *request = &errand->request;
    struct token_watch *watch = errand->watch;
    bool failed = request->base.err.code != ERR_NONE;

    if (request->op == ACCESS_FOLLOW && failed) {
        LOCKED(&watch->mutex);
        watch->lost = true;
    }
    if (request->op == ACCESS_FOLLOW && !failed)
        put_rows(watch, request->tokens, request->count);
    for (uint32_t i = 0; request->op == ACCESS_USED && failed && i < request->count; i++) {
        struct token_entry *entry = map_get(&watch->tokens->by_id, request->uses[i].id);

        if (entry)
            entry->written_us = 0; /* next time */
    }
    if (request->op == ACCESS_RATES)
        take_shares(watch, request, failed);
    watch->writing &= request->op != ACCESS_USED;
    watch->sharing &= request->op != ACCESS_RATES;
    arena_deinit(&errand->arena);
    free(errand);
    server_work_ended(watch->server);
}

static void errand_done(struct request *request)
{
    struct errand *errand = request->ctx;

    loop_post(errand->watch->server->loop, &errand->item);
}

static struct errand *errand_new(struct token_watch *watch, enum access_op op)
{
    struct errand *errand = calloc(1, sizeof *errand);

    if (!errand)
        return NULL;
    errand->watch = watch;
    errand->item.run = errand_over;
    errand->request.op = op;
    errand->request.base = (struct request){.kind = REQUEST_ACCESS, .arena = &errand->arena,
                                            .done = errand_done, .ctx = errand};
    return errand;
}

static void send(struct errand *errand)
{
    errand->watch->server->calls_open++;
    engine_submit(errand->watch->server->engine, &errand->request.base);
}

static uint32_t list_uses(const struct tokens *tokens, struct arena *arena,
                          struct token_use *uses)
{
    struct token_entry *entry;
    uint32_t cursor = 0, count = 0;

    while ((entry = map_next(&tokens->by_id, &cursor)) != NULL) {
        if (entry->used_us <= entry->written_us)
            continue;
        uses[count++] = (struct token_use){arena_str(arena, entry->row.id), entry->used_us};
        entry->written_us = entry->used_us;
    }
    return count;
}

static void write_uses(struct token_watch *watch)
{
    struct errand *errand = watch->writing ? NULL : errand_new(watch, ACCESS_USED);
    struct token_use *uses;

    if (!errand)
        return;
    uses = arena_alloc_array(&errand->arena, map_count(&watch->tokens->by_id) + 1, sizeof *uses);
    errand->request.uses = uses;
    errand->request.count = uses ? list_uses(watch->tokens, &errand->arena, uses) : 0;
    if (errand->arena.failed || errand->request.count == 0) {
        arena_deinit(&errand->arena);
        free(errand);
        return;
    }
    watch->writing = true;
    send(errand);
}

static uint32_t count_taken(const struct tokens *tokens)
{
    struct token_entry *entry;
    uint32_t cursor = 0, count = 0;

    while ((entry = map_next(&tokens->by_id, &cursor)) != NULL)
        count += entry->taken > 0;
    return count;
}

static uint32_t list_taken(const struct tokens *tokens, struct arena *arena, int64_t for_us,
                           struct token_taken *taken)
{
    struct token_entry *entry;
    uint32_t cursor = 0, count = 0;

    while ((entry = map_next(&tokens->by_id, &cursor)) != NULL) {
        if (entry->taken == 0)
            continue;
        taken[count++] = (struct token_taken){.id = arena_str(arena, entry->row.id),
                                              .rate = entry->principal.rate,
                                              .count = entry->taken, .for_us = for_us};
        entry->taken = 0;
    }
    return count;
}

/* Where several nodes may be, they count what a token takes of its rate together. */
static void share_rates(struct token_watch *watch)
{
    int64_t boot_us = clock_boot_us(), for_us = boot_us - watch->shared_us;
    struct access_request *request;
    struct errand *errand;
    uint32_t count;

    if (!watch->server->store->shared || watch->sharing)
        return;
    watch->shared_us = boot_us;
    count = count_taken(watch->tokens);
    errand = count ? errand_new(watch, ACCESS_RATES) : NULL;
    if (!errand)
        return;
    request = &errand->request;
    request->taken = arena_alloc_array(&errand->arena, count, sizeof *request->taken);
    if (request->taken)
        request->count = list_taken(watch->tokens, &errand->arena, for_us, request->taken);
    watch->sharing = true;
    send(errand); /* of none, where there is no memory */
}

static void read_again(struct token_watch *watch)
{
    struct errand *errand;
    bool lost;

    pthread_mutex_lock(&watch->mutex);
    lost = watch->lost;
    watch->lost = false;
    pthread_mutex_unlock(&watch->mutex);
    if (!lost)
        return;
    errand = errand_new(watch, ACCESS_FOLLOW);
    if (!errand)
        return;
    errand->request.tell = on_changes;
    errand->request.tell_ctx = watch;
    send(errand);
}

static void on_time(void *ctx)
{
    struct token_watch *watch = ctx;

    if (watch->server->stopping)
        return;
    end_waiting(watch);
    read_again(watch);
    share_rates(watch);
    if (clock_boot_us() >= watch->write_us) {
        watch->write_us = clock_boot_us() + WRITE_US;
        write_uses(watch);
    }
    loop_timer_set(watch->timer, LOOK_US);
}

/* ---- its life ---- */

static int follow(struct token_watch *watch, struct err *err)
{
    ARENA_AUTO struct arena arena = ARENA_INIT(0);
    struct access_request request = {.base = {.kind = REQUEST_ACCESS, .arena = &arena},
                                     .op = ACCESS_FOLLOW,
                                     .tell = on_changes,
                                     .tell_ctx = watch};

    if (engine_call(watch->server->engine, &request.base) < 0) {
        *err = request.base.err;
        return -(int)err->code;
    }
    put_rows(watch, request.tokens, request.count);
    return 0;
}

struct token_watch *token_watch_open(struct server *server, struct tokens *tokens,
                                     struct err *err)
{
    struct token_watch *watch = err_calloc(sizeof *watch, err);

    if (!watch)
        return NULL;
    watch->server = server;
    watch->tokens = tokens;
    watch->last = &watch->first;
    watch->item.run = take_changes;
    watch->write_us = clock_boot_us() + WRITE_US;
    watch->shared_us = clock_boot_us();
    pthread_mutex_init(&watch->mutex, NULL);
    watch->timer = loop_timer_new(server->loop, on_time, watch);
    if (!watch->timer)
        err_no_memory(err);
    if (watch->timer && follow(watch, err) == 0)
        return watch;
    token_watch_free(watch);
    return NULL;
}

void token_watch_begin(struct token_watch *watch)
{
    loop_timer_set(watch->timer, 0);
}

void token_watch_stop(struct token_watch *watch)
{
    loop_timer_stop(watch->timer);
    write_uses(watch);
}

void token_watch_free(struct token_watch *watch)
{
    struct changes *next;

    if (!watch)
        return;
    for (struct changes *at = watch->first; at; at = next) {
        next = at->next;
        arena_deinit(&at->arena);
        free(at);
    }
    loop_timer_free(watch->timer);
    pthread_mutex_destroy(&watch->mutex);
    free(watch);
}
