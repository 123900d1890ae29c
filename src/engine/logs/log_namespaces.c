/* What the row of a namespace decides about logs: how long they stay, and whether the namespace
 * goes with all of them. An attacker who writes to the store can set such a row, so a note by the
 * log key says what a request had put there (F-J8). Without it the namespace is not deleted and its
 * windows shorten nothing. Runs on the thread that has the turn. */
#include "engine/logs/log_namespaces.h"

#include "core/queue_name.h"
#include "engine/batch.h"
#include "engine/engine_state.h"
#include "engine/logs/log_ages.h"
#include "engine/logs/log_heads.h"
#include "store/log_store.h"
#include "store/namespace_store.h"

#define PURPOSE "perdura namespace"
#define TEXT_BYTES 128

static int note_id(struct str name, struct uuid *id)
{
    char text[sizeof PURPOSE + NAMESPACE_BYTES_MAX + 1];
    uint8_t hash[HASH_BYTES];
    int len = snprintf(text, sizeof text, PURPOSE " " STR_FMT, STR_ARG(name));

    if (hash_sha256(str_span(text, (size_t)len < sizeof text ? (size_t)len : sizeof text - 1),
                    hash) < 0)
        return -ERR_MEMORY;
    memcpy(id->bytes, hash, sizeof id->bytes);
    return 0;
}

static int make_note(const struct namespace_row *row, struct log_note *note)
{
    char text[TEXT_BYTES];
    int len = snprintf(text, sizeof text, "%lld %lld %lld", (long long)row->completed_ms,
                       (long long)row->failed_ms, (long long)row->deleting_at_us);

    *note = (struct log_note){.part.head = {.seq = 1, .hashed = true},
                              .task_type = row->name,
                              .logged_at_us = row->created_at_us,
                              .closed = STR(LOG_NOTE_NAMESPACE)};
    if (note_id(row->name, &note->part.head.execution_id) < 0)
        return -ERR_MEMORY;
    return hash_sha256(str_span(text, (size_t)len), note->part.head.hash);
}

static bool says_something(const struct namespace_row *row)
{
    return row->completed_ms != NAMESPACE_AS_SETTINGS || row->failed_ms != NAMESPACE_AS_SETTINGS ||
           row->deleting_at_us != 0;
}

int log_namespace_forget(struct batch *batch, struct str name, struct err *err)
{
    struct log_note all = {.part.head.seq = INT64_MAX};

    if (!batch->store->verbs->logs)
        return 0;
    TRY_MEMORY(note_id(name, &all.part.head.execution_id) == 0);
    return batch->store->verbs->logs->heads_forget(batch->store, &all, 1, err);
}

static int put_note(struct batch *batch, const struct namespace_row *row, struct err *err)
{
    struct log_note note;

    TRY(log_namespace_forget(batch, row->name, err));
    if (!batch->store->log_mac || !says_something(row))
        return 0;
    TRY_MEMORY(make_note(row, &note) == 0);
    return batch->store->verbs->logs->heads_put(batch->store, &note, 1, err);
}

int log_namespace_put(struct batch *batch, const struct namespace_row *row, struct err *err)
{
    if (!batch->store->verbs->logs)
        return 0;
    if (says_something(row))
        TRY(log_heads_ready(batch, err));
    return put_note(batch, row, err);
}

/* A key that begins takes them as it finds them. */
int log_namespaces_adopt(struct batch *batch, struct err *err)
{
    struct namespace_row *rows;
    uint32_t count;

    TRY(batch->store->namespaces->load(batch->store, &batch->arena, &rows, &count, err));
    for (uint32_t i = 0; i < count; i++)
        TRY(put_note(batch, &rows[i], err));
    return 0;
}

/* ---- is it as a request put it there? ---- */

struct looking {
    struct log_mac *mac;
    struct log_note meant;
    bool found;
};

static void on_note(void *ctx, const struct log_note *note)
{
    struct looking *looking = ctx;
    const struct log_note *meant = &looking->meant;

    looking->found |= str_is(note->closed, LOG_NOTE_NAMESPACE) &&
                      str_eq(note->task_type, meant->task_type) &&
                      note->logged_at_us == meant->logged_at_us && note->part.head.hashed &&
                      memcmp(note->part.head.hash, meant->part.head.hash, HASH_BYTES) == 0 &&
                      logmac_good(looking->mac, note);
}

static void on_line(void *ctx, const struct log_line *line, struct str chain_hash)
{
    (void)ctx;
    (void)line;
    (void)chain_hash;
}

int log_namespace_proven(struct batch *batch, const struct namespace_row *row, bool *proven,
                         struct err *err)
{
    struct looking looking = {.mac = batch->store->log_mac};
    struct log_walk walk = {.note = on_note, .line = on_line, .ctx = &looking};
    struct log_range range = {.to_seq = 0};

    *proven = true;
    if (!batch->store->verbs->logs)
        return 0;
    TRY(log_ages_ready(batch, err));
    looking.mac = batch->store->log_mac;
    if (!looking.mac)
        return 0;
    TRY_MEMORY(make_note(row, &looking.meant) == 0);
    range.execution_id = looking.meant.part.head.execution_id;
    TRY(batch->store->verbs->logs->chains_read(batch->store, &range, 1, 1, &walk, err));
    *proven = looking.found;
    return 0;
}

int log_namespace_windows(struct batch *batch, struct str name, int64_t *completed_ms,
                          int64_t *failed_ms, struct err *err)
{
    struct namespace_state *state =
        map_get(&batch->engine->limits.namespaces.by_name, name);
    bool proven;

    *completed_ms = batch->engine->settings->retention.completed_ms;
    *failed_ms = batch->engine->settings->retention.failed_ms;
    if (!state || !says_something(&state->row))
        return 0;
    if (state->proven_in != batch->number) {
        TRY(log_namespace_proven(batch, &state->row, &proven, err));
        state->proven = proven;
        state->proven_in = batch->number;
    }
    if (state->proven && state->row.completed_ms != NAMESPACE_AS_SETTINGS)
        *completed_ms = state->row.completed_ms;
    if (state->proven && state->row.failed_ms != NAMESPACE_AS_SETTINGS)
        *failed_ms = state->row.failed_ms;
    return 0;
}
