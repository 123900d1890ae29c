/* Counts in one array; when a minute is over, or the server stops, all of it goes to the engine as
 * one request. A request that fails is counted again with the next minute. */
#include "server/door/refusals.h"

#include "base/clock.h"
#include "core/log/audit.h"
#include "server/server_int.h"
#include "store/sealed/sealed.h"

#include <stdio.h>
#include <stdlib.h>

#define EVERY_US (60 * INT64_C(1000000))
#define LABEL_BYTES 200
#define NAME_BYTES 128
#define ID_BYTES 40

struct refusal {
    char principal[LABEL_BYTES];
    char token_id[ID_BYTES];
    char namespace_name[NAME_BYTES];
    char route[NAME_BYTES]; /* method and pattern, never the path, which is any text */
    char request_id[NAME_BYTES]; /* of the first */
    struct http_address address; /* of the first; strangers are counted by it */
    enum err_code code;
    int64_t count;
};

struct refusals {
    struct server *server;
    struct loop_timer *timer;
    struct refusal list[REFUSALS_MAX + 1]; /* the last one: all others */
    uint32_t count;
    int64_t damaged_told; /* texts that did not open, as far as the trail knows */
    struct audit_request request;
    struct loop_item item;
    struct arena arena; /* of the request under way */
    bool under_way;
};

static void keep(char *to, size_t cap, struct str text)
{
    text = str_cut(text, cap - 1);
    snprintf(to, cap, STR_FMT, STR_ARG(text));
}

static void describe(struct refusal *refusal, const struct api_call *call)
{
    const struct principal *principal = call->principal;
    BUF_AUTO struct buf label = BUF_INIT(AUDIT_TEXT_BYTES_MAX);

    *refusal = (struct refusal){.code = call->err.code, .count = 1,
                                .address = *http_peer_address(call->exchange)};
    if (principal)
        principal_write_label(&label, principal);
    keep(refusal->principal, LABEL_BYTES, principal ? buf_view(&label) : STR("unknown"));
    keep(refusal->token_id, ID_BYTES, principal ? principal->id : STR_NONE);
    keep(refusal->namespace_name, NAME_BYTES,
         call->caller.namespace_name.data ? call->caller.namespace_name : STR("*"));
    keep(refusal->request_id, NAME_BYTES, call->request_id);
    if (call->route)
        snprintf(refusal->route, NAME_BYTES, "%s %s", router_method_word(call->request->method),
                 call->route->pattern);
}

static bool is_same(const struct refusal *a, const struct refusal *b, bool known)
{
    return a->code == b->code && strcmp(a->principal, b->principal) == 0 &&
           strcmp(a->route, b->route) == 0 && strcmp(a->namespace_name, b->namespace_name) == 0 &&
           (known || http_address_eq(&a->address, &b->address));
}

void refusals_note(struct refusals *refusals, const struct api_call *call)
{
    struct refusal refusal;

    describe(&refusal, call);
    for (uint32_t i = 0; i < refusals->count && i < REFUSALS_MAX; i++)
        if (is_same(&refusals->list[i], &refusal, call->principal != NULL)) {
            refusals->list[i].count++;
            return;
        }
    if (refusals->count < REFUSALS_MAX) {
        refusals->list[refusals->count++] = refusal;
        return;
    }
    if (refusals->count++ == REFUSALS_MAX) {
        refusals->list[REFUSALS_MAX] = (struct refusal){.code = refusal.code,
                                                        .principal = "others",
                                                        .namespace_name = "*"};
    }
    refusals->count = REFUSALS_MAX + 1;
    refusals->list[REFUSALS_MAX].count++;
}

/* ---- handing over ---- */

static struct str kept(struct arena *arena, const char *text)
{
    return text[0] ? arena_str(arena, str_of(text)) : STR_NONE;
}

static void write_entry(struct refusals *refusals, const struct refusal *refusal,
                        struct audit_entry *entry)
{
    struct arena *arena = &refusals->arena;

    *entry = (struct audit_entry){
        .namespace_name = kept(arena, refusal->namespace_name),
        .principal = kept(arena, refusal->principal),
        .token_id = kept(arena, refusal->token_id),
        .address = audit_address(refusal->address.bytes, arena),
        .request_id = kept(arena, refusal->request_id),
        .action = STR("access.refused"),
        .object_kind = STR("route"),
        .object_id = arena_str(arena, str_of(refusal->route)),
        .change = arena_format(arena, "{\"count\":%lld,\"code\":\"%s\"}", (long long)refusal->count,
                               err_word(refusal->code)),
        .outcome = STR(AUDIT_REFUSED)};
}

/* An encrypted text that was changed, or moved to another place, is refused, too (F-J3). Which one
 * it is the verifier finds. */
static int64_t damaged_texts(const struct refusals *refusals)
{
    struct keyring *keyring = sealed_keyring(refusals->server->store);

    return keyring ? keyring_counted(keyring, OPENED_DAMAGED) - refusals->damaged_told : 0;
}

static void write_damaged(struct refusals *refusals, int64_t count, struct audit_entry *entry)
{
    *entry = (struct audit_entry){
        .namespace_name = STR("*"),
        .principal = STR("program"),
        .action = STR("text.damaged"),
        .object_kind = STR("store"),
        .object_id = STR("texts"),
        .change = arena_format(&refusals->arena, "{\"count\":%lld}", (long long)count),
        .outcome = STR(AUDIT_REFUSED)};
    refusals->damaged_told += count;
    LOG(refusals->server->log, LOG_ERROR, "encryption.texts_damaged", KI("count", count));
}

static void came_back(struct loop_item *item)
{
    struct refusals *refusals =
        (struct refusals *)(void *)((char *)item - offsetof(struct refusals, item));

    if (refusals->request.base.err.code != ERR_NONE)
        LOG(refusals->server->log, LOG_WARN, "audit.refusals_lost",
            KI("entries", refusals->request.count),
            KC("reason", refusals->request.base.err.text));
    refusals->under_way = false;
    arena_reset(&refusals->arena);
    server_work_ended(refusals->server);
}

static void request_done(struct request *request)
{
    struct refusals *refusals = request->ctx;

    loop_post(refusals->server->loop, &refusals->item);
}

static void hand_over(struct refusals *refusals)
{
    int64_t damaged = damaged_texts(refusals);
    uint32_t count = refusals->count + (damaged > 0);
    struct audit_entry *entries;

    if (refusals->under_way || count == 0)
        return;
    entries = arena_alloc_array(&refusals->arena, count, sizeof *entries);
    if (!entries)
        return; /* with the next minute */
    for (uint32_t i = 0; i < refusals->count; i++)
        write_entry(refusals, &refusals->list[i], &entries[i]);
    if (damaged > 0)
        write_damaged(refusals, damaged, &entries[refusals->count]);
    refusals->request = (struct audit_request){
        .base = {.kind = REQUEST_AUDIT, .arena = &refusals->arena, .done = request_done,
                 .ctx = refusals},
        .entries = entries,
        .count = count};
    refusals->count = 0;
    refusals->under_way = true;
    refusals->item.run = came_back;
    refusals->server->calls_open++;
    engine_submit(refusals->server->engine, &refusals->request.base);
}

static void tick(void *ctx)
{
    struct refusals *refusals = ctx;

    hand_over(refusals);
    if (!refusals->server->stopping)
        loop_timer_set(refusals->timer, EVERY_US);
}

struct refusals *refusals_open(struct server *server, struct err *err)
{
    struct refusals *refusals = calloc(1, sizeof *refusals);

    if (refusals)
        refusals->timer = loop_timer_new(server->loop, tick, refusals);
    if (!refusals || !refusals->timer) {
        free(refusals);
        err_no_memory(err);
        return NULL;
    }
    refusals->server = server;
    refusals->arena = ARENA_INIT(0);
    loop_timer_set(refusals->timer, EVERY_US);
    return refusals;
}

void refusals_stop(struct refusals *refusals)
{
    hand_over(refusals);
}

void refusals_free(struct refusals *refusals)
{
    if (!refusals)
        return;
    loop_timer_free(refusals->timer);
    arena_deinit(&refusals->arena);
    free(refusals);
}
