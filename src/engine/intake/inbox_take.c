/* Rows of another party's table become tasks, each once. The transaction that makes the tasks also
 * notes which rows they came from; the rows are marked after its commit. A row is therefore one of
 * three: not taken, taken and noted, or marked. The note is about the last rows of the inbox only:
 * before the next ones are taken, those are marked. A thread that begins a session, after a crash
 * or on another node, gets the note and marks them first. A session of before takes no more: what
 * it has read may be taken and marked since. */
#include "engine/intake/inbox_take.h"

#include "base/fault.h"
#include "base/json.h"
#include "core/access/principal.h"
#include "engine/batch.h"
#include "engine/engine_state.h"
#include "engine/intake/intake.h"
#include "engine/namespaces/namespaces.h"

#define NOTE_BYTES_MAX (1024 * 1024)

static const char *note_name(struct batch *batch, const struct inbox_rule *rule)
{
    return arena_format(&batch->arena, "inbox:" STR_FMT, STR_ARG(rule->name)).data;
}

static int write_note(struct batch *batch, const struct inbox_request *request, struct err *err)
{
    BUF_AUTO struct buf note = BUF_INIT(NOTE_BYTES_MAX);
    const char *name = TRY_MEMORY(note_name(batch, request->rule));

    inbox_note_write(&note, request->session, request->rows, request->count);
    TRY_MEMORY(!note.failed);
    batch->wrote = true;
    return batch->store->verbs->info_put(batch->store, name, buf_view(&note), err);
}

/* Of nodes that share a store only one leads, and none begins to while this transaction runs. */
static int check_leads(struct batch *batch, struct err *err)
{
    const struct store_verbs *verbs = batch->store->verbs;

    if (!batch->store->shared)
        return 0;
    if (!verbs->leads(batch->store))
        return err_set(err, ERR_CONFLICT, "another node leads, and takes the rows");
    return verbs->lead_guard(batch->store, err);
}

static int read_note(struct batch *batch, const struct inbox_rule *rule, struct arena *arena,
                     int64_t *session, struct inbox_row **rows, uint32_t *count, struct err *err)
{
    const char *name = TRY_MEMORY(note_name(batch, rule));
    struct str note;

    TRY(batch->store->verbs->info_get(batch->store, name, arena, &note, err));
    return inbox_note_read(note, arena, session, rows, count, err);
}

static int open_session(struct batch *batch, struct inbox_request *request, struct err *err)
{
    TRY(namespaces_enter_named(batch, request->rule->namespace_name, err));
    TRY(read_note(batch, request->rule, request->base.arena, &request->session, &request->rows,
                  &request->count, err));
    request->session++;
    return write_note(batch, request, err);
}

static int check_session(struct batch *batch, const struct inbox_request *request,
                         struct err *err)
{
    struct inbox_row *rows;
    int64_t session;
    uint32_t count;

    TRY(read_note(batch, request->rule, &batch->arena, &session, &rows, &count, err));
    return session == request->session
               ? 0 : err_set(err, ERR_CONFLICT, "a later session takes the rows");
}

/* ---- one row ---- */

/* As a row that a program left in our own store. Texts of others are checked before they become
 * part of an object. */
static int describe(struct batch *batch, const struct inbox_rule *rule,
                    const struct inbox_row *row, struct intake_row *described, struct err *err)
{
    *described = (struct intake_row){
        .key = batch->store->verbs->task_key_next(batch->store),
        .namespace_name = rule->namespace_name,
        .type = row->type,
        .payload = row->payload,
        .options = row->options.data ? row->options : STR("{}"),
        .created_at_us = batch->now_us};
    described->id = uuid7_new_keyed(&batch->engine->ids, batch->now_us, described->key);
    if (!row->type.data)
        return err_set(err, ERR_INVALID, "the row has no type");
    if (!str_is_utf8(row->type))
        return err_set(err, ERR_INVALID, "the type is not valid UTF-8");
    if (row->payload.data && json_check(row->payload, &described->payload, err) < 0) {
        struct err why = *err;

        return err_set(err, ERR_INVALID, "the payload is no JSON: %s", why.text);
    }
    return 0;
}

static int make(struct batch *batch, const struct inbox_rule *rule, const struct inbox_row *row,
                struct task **task, struct err *err)
{
    struct principal *maker = TRY_MEMORY(arena_alloc(&batch->arena, sizeof *maker));
    struct intake_row described;
    bool duplicate;
    int rc;

    *maker = (struct principal){.namespace_name = rule->namespace_name,
                                .scopes = SCOPE_BIT(SCOPE_ADMIN),
                                .queues = {rule->queues, rule->queues_count},
                                .types = {rule->types, rule->types_count}};
    TRY(describe(batch, rule, row, &described, err));
    rc = intake_make(batch, &described, maker, &duplicate, task, err);
    if (err->code == ERR_FORBIDDEN && (rule->queues_count || rule->types_count) && err->field[0])
        return err_set(err, ERR_INVALID, "the configuration of this inbox lists other %ss",
                       strcmp(err->field, "type") == 0 ? "type" : "queue");
    return rc;
}

static int take_row(struct batch *batch, const struct inbox_rule *rule, struct inbox_row *row,
                    struct arena *arena, struct err *err)
{
    struct err why = {0};
    struct task *task = NULL;

    if (row->verdict == INBOX_DAMAGED) /* it was not read */
        return 0;
    if (make(batch, rule, row, &task, &why) == 0) {
        row->verdict = INBOX_TAKEN;
        row->task_id = task->id;
        return 0;
    }
    if (intake_is_failure(why.code)) {
        *err = why;
        return -(int)why.code;
    }
    row->verdict = why.code == ERR_RATE ? INBOX_WAITS : INBOX_DAMAGED;
    row->error = inbox_error_text(why.text, arena);
    return row->error.data ? 0 : err_no_memory(err);
}

/* In their order: what a bound of the namespace puts off keeps the rows behind it waiting, too. */
static int take(struct batch *batch, struct inbox_request *request, struct err *err)
{
    uint32_t at = 0;

    TRY(namespaces_enter_named(batch, request->rule->namespace_name, err));
    TRY(check_session(batch, request, err));
    for (uint32_t i = 0; i < request->count; i++) /* it may be the second try */
        request->rows[i].verdict = request->rows[i].too_large ? INBOX_DAMAGED : INBOX_WAITS;
    batch->wrote = true;
    for (; at < request->count; at++) {
        TRY(take_row(batch, request->rule, &request->rows[at], request->base.arena, err));
        FAULT_POINT("inbox.row");
        if (request->rows[at].verdict == INBOX_WAITS)
            break;
    }
    while (at < request->count)
        request->rows[at++].verdict = INBOX_WAITS;
    return write_note(batch, request, err);
}

int inbox_apply(struct batch *batch, struct request *base)
{
    struct inbox_request *request = (struct inbox_request *)base;

    TRY(check_leads(batch, &base->err));
    switch (request->op) {
    case INBOX_OPEN:
        return open_session(batch, request, &base->err);
    case INBOX_LOOK:
        return check_session(batch, request, &base->err);
    default:
        return take(batch, request, &base->err);
    }
}
