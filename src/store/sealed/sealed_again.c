/* Encrypting again: what data keys from before a moment encrypted is written under new ones, a few
 * tasks per transaction, by key. A text that another writer saved in between is left to the next
 * pass; the last pass finds nothing. How far it is lies in the store, so that it continues after a
 * kill. Log lines keep their keys, because chains are over what is stored; callbacks keep theirs
 * until they were sent. Writer's thread. */
#include "store/sealed/sealed_int.h"

#include "base/fault.h"
#include "base/json.h"
#include "core/task/checkpoint.h"
#include "core/task/recovery_fields.h"

#include <stdio.h>

#define STATE_FACT "data_rotation"
#define SINCE_FACT "data_keys_since" /* keys.sql compares with it, too */
#define PAGE_TASKS 8                 /* read at once: their texts may be large */
#define STEP_TASKS 200
#define STEP_BYTES (512 * 1024) /* about 5 ms of one commit */

/* A text in its place; of place 0 the task itself, of a checkpoint its seq alone. */
struct again_row {
    int64_t place;
    int64_t task_key;
    int64_t number; /* of an execution, an event, a checkpoint */
    struct uuid id; /* of the task, or of the row where that has one of its own */
    struct str text;
};

#define ROW(...) FIELD_ROW(again_row, __VA_ARGS__)
static const struct field again_fields[] = {ROW(place, place, INT, 0), ROW(task, task_key, INT, 0),
                                            ROW(number, number, INT, 0), ROW(id, id, UUID, 0),
                                            ROW(text, text, TEXT, 0)};
static const struct field_table again_table = FIELD_TABLE(again_row, "again_row", "a",
                                                          again_fields);

enum row_kind { ROW_OF_TASK, ROW_OF_KEY, ROW_OF_NUMBER, ROW_OF_EVENT, ROW_OF_ID };

/* In the order of again_texts in keys.sql. */
static const struct again_place {
    const char *table;
    const char *column;
    bool json;
    bool body;          /* of it only some members may be encrypted */
    enum row_kind row;  /* how its row is named in what is authenticated ... */
    enum row_kind find; /* ... and found by the statement */
    enum rows_statement put;
} places[] = {
    {0},
    {"tasks", "payload", true, true, ROW_OF_TASK, ROW_OF_KEY, ROWS_again_payload},
    {"tasks", "data", true, true, ROW_OF_TASK, ROW_OF_KEY, ROWS_again_data},
    {"tasks", "error", false, false, ROW_OF_TASK, ROW_OF_KEY, ROWS_again_error},
    {"tasks", "last_error", false, false, ROW_OF_TASK, ROW_OF_KEY, ROWS_again_last_error},
    {"tasks", "error_details", true, false, ROW_OF_TASK, ROW_OF_KEY, ROWS_again_details},
    {"tasks", "checkpoint_data", true, false, ROW_OF_TASK, ROW_OF_KEY, ROWS_again_resume},
    {"task_results", "payload", true, true, ROW_OF_KEY, ROW_OF_ID, ROWS_again_result},
    {"task_results", "payload", true, true, ROW_OF_KEY, ROW_OF_NUMBER, ROWS_again_outcome},
    {"executions", "error_data", true, false, ROW_OF_NUMBER, ROW_OF_NUMBER, ROWS_again_failure},
    {"task_events", "detail", true, false, ROW_OF_EVENT, ROW_OF_EVENT, ROWS_again_detail},
    {"recovery_queue", "error_message", false, false, ROW_OF_ID, ROW_OF_ID,
     ROWS_again_recovery_error},
    {"recovery_queue", "recovery_result", true, false, ROW_OF_ID, ROW_OF_ID,
     ROWS_again_recovery_result},
};
#define PLACE_CHECKPOINT ((int64_t)(sizeof places / sizeof places[0]))

struct again {
    struct sealed *sealed;
    struct store *store;
    struct seal_rotation *state;
    struct arena *arena; /* of the page */
    struct opener opener;
    struct uuid known; /* the data key that was looked at last, and whether it is an old one */
    bool known_old;
    int64_t bytes;
    struct err *err;
};

/* ---- state ---- */

static int64_t member(struct str state, const char *name)
{
    int64_t number = 0;

    json_int64(json_get(state, str_of(name)), &number);
    return number;
}

int seal_rotation_read(struct store *store, struct arena *arena, struct seal_rotation *state,
                       struct err *err)
{
    struct str text;

    *state = (struct seal_rotation){.done = true};
    TRY(store->verbs->info_get(store, STATE_FACT, arena, &text, err));
    if (!text.data)
        return 0;
    *state = (struct seal_rotation){.since_us = member(text, "since"),
                                    .task_key = member(text, "task"),
                                    .last_key = member(text, "last"),
                                    .texts = member(text, "texts"),
                                    .closed = member(text, "closed"),
                                    .settled = member(text, "settled"),
                                    .changed = member(text, "changed"),
                                    .done = member(text, "done")};
    return 0;
}

static int write_state(struct store *store, const struct seal_rotation *state, struct err *err)
{
    char text[256];

    snprintf(text, sizeof text,
             "{\"since\":%lld,\"task\":%lld,\"last\":%lld,\"texts\":%lld,\"closed\":%lld,"
             "\"settled\":%d,\"changed\":%d,\"done\":%d}",
             (long long)state->since_us, (long long)state->task_key, (long long)state->last_key,
             (long long)state->texts, (long long)state->closed, state->settled, state->changed,
             state->done);
    return store->verbs->info_put(store, STATE_FACT, str_of(text), err);
}

/* New data keys are made from here on. Clocks of nodes differ: a key that is there is older. */
static int begin(struct sealed *sealed, struct store *store, struct arena *arena,
                 struct seal_rotation *state, struct err *err)
{
    struct data_key_sum *sums;
    uint32_t count;
    char text[24];

    *state = (struct seal_rotation){.since_us = clock_wall_us()};
    TRY(keys_sums(rows_of(store), arena, &sums, &count, err));
    for (uint32_t i = 0; i < count; i++)
        if (sums[i].newest_us >= state->since_us)
            state->since_us = sums[i].newest_us + 1;
    state->settled = !store->shared;
    snprintf(text, sizeof text, "%lld", (long long)state->since_us);
    TRY(store->verbs->info_put(store, SINCE_FACT, str_of(text), err));
    sealed_forget(sealed);
    return 0;
}

/* ---- one text ---- */

static int is_old_key(struct again *again, const struct uuid *id, bool *old)
{
    struct data_key_row *row;

    if (!uuid_eq(&again->known, id)) {
        TRY(keys_load(rows_of(again->store), id, again->arena, &row, again->err));
        again->known = *id;
        again->known_old = row && !row->destroyed_at_us &&
                           row->created_at_us < again->state->since_us;
    }
    *old = again->known_old;
    return 0;
}

/* Is any stored form in it under an old key? A text may as well only look like one. */
static int is_old(struct again *again, struct str text, bool *old)
{
    struct uuid id;

    *old = false;
    for (struct str rest = text; !*old && seal_next_key(&rest, &id);)
        TRY(is_old_key(again, &id, old));
    return 0;
}

static struct str name_row(const struct again_row *row, enum row_kind kind,
                           char space[SEAL_ROW_BYTES])
{
    return kind == ROW_OF_KEY      ? seal_row_number(row->task_key, space)
           : kind == ROW_OF_NUMBER ? seal_row_number(row->number, space)
           : kind == ROW_OF_EVENT  ? seal_row_event(row->task_key, row->number, space)
                                   : seal_row_id(&row->id, space);
}

/* Opens the text and encrypts it again; absent: it cannot be opened here. */
static int seal_again(struct again *again, const struct sealed_ctx *ctx, const struct seal_at *at,
                      bool body, struct str *text)
{
    enum opened opened;

    TRY(body ? open_body(&again->opener, &ctx->seal, ctx->namespace_name, at, text, &opened)
             : open_text(&again->opener, ctx->namespace_name, at, text, &opened));
    if (opened != OPENED_WELL) {
        again->state->closed++;
        *text = STR_NONE;
        return 0;
    }
    return body ? sealed_body(again->sealed, ctx, at, text, again->err)
                : sealed_text(again->sealed, ctx, at, text, again->err);
}

static void count_text(struct again *again, struct str text)
{
    again->state->texts++;
    again->state->changed = true;
    again->bytes += (int64_t)text.len;
}

static int put_text(struct again *again, const struct again_row *row,
                    const struct again_place *place, struct str text)
{
    struct rows_value key = place->find == ROW_OF_KEY  ? value_int(row->task_key)
                            : place->find == ROW_OF_ID ? value_uuid(&row->id)
                                                       : value_int(row->number);
    struct rows *rows = rows_of(again->store);
    int64_t changes = 0;

    TRY(place->find == ROW_OF_EVENT
            ? rows_run(rows,
                       ROWS_QUERY(place->put, value_int(row->task_key), value_int(row->number),
                                  value_text(row->text), value_text(text)),
                       &changes, again->err)
            : rows_run(rows,
                       ROWS_QUERY(place->put, key, value_text(row->text), value_text(text)),
                       &changes, again->err));
    FAULT_POINT("keys.again");
    again->state->changed = true; /* one that was saved meanwhile is looked at once more */
    if (changes > 0)
        count_text(again, text);
    return 0;
}

static int text_again(struct again *again, const struct again_row *row)
{
    const struct again_place *place = &places[row->place];
    char space[SEAL_ROW_BYTES];
    const struct seal_at at = {.table = place->table, .column = place->column, .json = place->json,
                               .row = name_row(row, place->row, space)};
    struct str text = row->text;
    struct sealed_ctx *ctx;
    bool old;

    TRY(is_old(again, row->text, &old));
    if (!old)
        return 0;
    TRY(sealed_ctx_of(again->sealed, row->task_key, &ctx, again->err));
    TRY(seal_again(again, ctx, &at, place->body, &text));
    return text.data ? put_text(again, row, place, text) : 0;
}

/* ---- checkpoints ---- */

static int seal_checkpoint(struct again *again, const struct sealed_ctx *ctx,
                           struct checkpoint *checkpoint, bool *changed)
{
    struct str *const texts[] = {&checkpoint->data, &checkpoint->database_state,
                                 &checkpoint->file_state};
    static const char *const columns[] = {"recoverable_data", "database_state", "file_state"};
    char space[SEAL_ROW_BYTES];
    struct seal_at at = {.table = "task_checkpoints", .json = true,
                         .row = seal_row_id(&checkpoint->id, space)};

    *changed = false;
    for (int i = 0; i < 3; i++) {
        struct str text = *texts[i];
        bool old = false;

        if (text.data)
            TRY(is_old(again, text, &old));
        if (!old)
            continue;
        at.column = columns[i];
        TRY(seal_again(again, ctx, &at, false, &text));
        if (!text.data)
            continue;
        *texts[i] = text;
        *changed = true;
        count_text(again, text);
    }
    return 0;
}

/* Its hash is over what is stored. One that is damaged stays as it is. */
static int checkpoint_again(struct again *again, const struct again_row *row)
{
    struct rows *rows = rows_of(again->store);
    struct checkpoint *checkpoint;
    struct sealed_ctx *ctx;
    bool changed;

    TRY(rows_one(rows, ROWS_QUERY(ROWS_again_checkpoint, value_uuid(&row->id),
                                  value_int(row->number)),
                 &checkpoint_table, again->arena, ROWS_INTO(&checkpoint), again->err));
    if (!checkpoint || !checkpoint_intact(&row->id, checkpoint))
        return 0;
    TRY(sealed_ctx_of(again->sealed, row->task_key, &ctx, again->err));
    TRY(seal_checkpoint(again, ctx, checkpoint, &changed));
    if (!changed)
        return 0;
    if (checkpoint_hash(&row->id, checkpoint, checkpoint->hash) < 0)
        return err_no_memory(again->err);
    TRY(rows_run(rows,
                 ROWS_QUERY(ROWS_again_checkpoint_put, value_uuid(&row->id), value_int(row->number),
                            value_text(checkpoint->data), value_text(checkpoint->database_state),
                            value_text(checkpoint->file_state),
                            value_text(str_of(checkpoint->hash))),
                 NULL, again->err));
    FAULT_POINT("keys.again");
    return 0;
}

/* ---- pages ---- */

static int page_again(struct again *again, uint32_t *tasks)
{
    struct again_row *rows;
    uint32_t count;
    int rc = 0;

    *tasks = 0;
    TRY(rows_take(rows_of(again->store),
                  ROWS_QUERY(ROWS_again_texts, value_int(again->state->task_key),
                             value_int(PAGE_TASKS)),
                  &again_table, again->arena, ROWS_INTO(&rows), &count, again->err));
    opener_begin(&again->opener, again->sealed, rows_of(again->store), again->arena, again->err);
    for (uint32_t i = 0; rc == 0 && i < count; i++) {
        if (rows[i].place == 0) {
            ++*tasks;
            if (rows[i].task_key > again->state->task_key)
                again->state->task_key = rows[i].task_key;
        } else if (rows[i].place == PLACE_CHECKPOINT) {
            rc = checkpoint_again(again, &rows[i]);
        } else {
            rc = text_again(again, &rows[i]);
        }
    }
    opener_end(&again->opener);
    return rc;
}

/* Another node may use an old key for as long as it trusts what it read. */
static void end_pass(const struct store *store, struct seal_rotation *state)
{
    state->done = !state->changed && state->settled;
    if (state->done)
        return;
    state->settled = !store->shared ||
                     clock_wall_us() - state->since_us > 2 * KEYRING_TRUST_US;
    state->task_key = 0;
    state->closed = 0;
    state->changed = false;
}

static int step(struct sealed *sealed, struct store *store, struct seal_rotation *state,
                struct err *err)
{
    struct again again = {.sealed = sealed, .store = store, .state = state, .err = err};

    for (uint32_t looked = 0; looked < STEP_TASKS && again.bytes < STEP_BYTES;) {
        ARENA_AUTO struct arena arena = ARENA_INIT(0);
        uint32_t tasks;

        again.arena = &arena;
        TRY(page_again(&again, &tasks));
        looked += tasks;
        if (tasks == PAGE_TASKS)
            continue;
        end_pass(store, state);
        return 0;
    }
    return 0;
}

int seal_rotation_step(struct store *store, int64_t since_us, struct arena *arena,
                       struct seal_rotation *state, struct err *err)
{
    struct sealed *sealed = store->sealed;
    int64_t last = 0;

    if (!keyring_ready(sealed->keyring))
        return err_set(err, ERR_LOCKED, "encryption.current names no key that is here; there is "
                                        "nothing to encrypt with");
    TRY(seal_rotation_read(store, arena, state, err));
    if (state->done && (!since_us || since_us > state->since_us))
        TRY(begin(sealed, store, arena, state, err));
    else if (state->done)
        return 0;
    TRY(rows_numbers(rows_of(store), ROWS_PLAIN(ROWS_again_last), &last, 1, err));
    state->last_key = last;
    TRY(step(sealed, store, state, err));
    return write_state(store, state, err);
}
