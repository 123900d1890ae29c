/* What programs said with SQL, in transactions of their own. Tasks that they enqueued are rows of
 * the store that become tasks here, by the rules of every request. A report of a task that a
 * program holds has locked and marked the task's row; whichever batch needs the task next applies
 * the report first, so the effects of the program and the outcome are one. What programs ask for
 * (cancel, retry, delete) locks nothing and is applied as if it had come over HTTP. A hint comes
 * with the commit of the program; a poll twice a second finds what no hint announced. Any node
 * takes rows in, and each once: it locks them, and removes them in the transaction that does what
 * they say.
 *
 * What a request would be refused for ends as a failed task that says why, because its id is known
 * already. A bound of its namespace that would pass only puts it off. */
#include "engine/intake/intake.h"

#include "base/fault.h"
#include "base/json.h"
#include "core/bounds.h"
#include "engine/audit/trail.h"
#include "engine/batch.h"
#include "engine/engine_state.h"
#include "engine/namespaces/namespaces.h"
#include "engine/tasks/control.h"
#include "engine/tasks/enqueue.h"
#include "engine/tasks/reports.h"
#include "store/intake_store.h"

#define ROWS_MAX 1000                     /* of one commit: 20 ms */
#define BYTES_MAX (INT64_C(16) << 20)     /* of what they hold */
#define DEPTH_MAX 16                      /* of tasks that depend on others: the stack is small */
#define PAUSE_US CLOCK_SECOND_US          /* of what was put off */

/* What each verb does: a report of a worker, or, with a hint for who is refused, a request. */
static const struct act {
    const char *hint;
    enum control_op control;
    enum report_op report;
} acts[INTAKE_VERB_COUNT] = {
    [INTAKE_COMPLETE] = {.report = REPORT_COMPLETE},
    [INTAKE_FAIL] = {.report = REPORT_FAIL},
    [INTAKE_CHECKPOINT] = {.report = REPORT_CHECKPOINT},
    [INTAKE_CANCEL] = {.hint = "It has ended: nothing is left to stop.", .control = CONTROL_CANCEL},
    [INTAKE_RETRY] = {.hint = "status() tells how it stands; cancel() ends one that runs.",
                      .control = CONTROL_RETRY},
    [INTAKE_DELETE] = {.hint = "A task is deleted when it has ended.", .control = CONTROL_DELETE},
};

static const struct intake_verbs *verbs_of(const struct batch *batch)
{
    return batch->store->intake;
}

/* ---- what SQL must know ---- */

static void write_texts(struct buf *out, const char *name, const struct str *texts,
                        uint32_t count)
{
    if (!texts)
        return;
    buf_format(out, ",\"%s\":[", name);
    for (uint32_t i = 0; i < count; i++) {
        json_comma(out);
        json_write_string(out, texts[i]);
    }
    buf_byte(out, ']');
}

/* A namespace, or an object where a role may not do all. */
static struct str roles_json(const struct settings *settings, struct arena *arena)
{
    BUF_AUTO struct buf text = BUF_INIT(1024 * 1024);

    buf_byte(&text, '{');
    for (uint32_t i = 0; i < settings->access.sql_roles_count; i++) {
        const struct sql_role_rule *rule = &settings->access.sql_roles[i];
        bool narrow = rule->verbs || rule->types;

        json_comma(&text);
        json_write_string(&text, rule->role);
        buf_text(&text, narrow ? ":{\"namespace\":" : ":");
        json_write_string(&text, rule->namespace_name);
        write_texts(&text, "verbs", rule->verbs, rule->verbs_count);
        write_texts(&text, "types", rule->types, rule->types_count);
        buf_text(&text, narrow ? "}" : "");
    }
    buf_byte(&text, '}');
    return text.failed ? STR_NONE : arena_str(arena, buf_view(&text));
}

/* In which statuses a request is refused, held by a worker or not, and with which words: rules are
 * not written again in SQL. */
static struct str verbs_json(struct arena *arena)
{
    BUF_AUTO struct buf text = BUF_INIT(64 * 1024);

    for (enum intake_verb verb = 0; verb < INTAKE_VERB_COUNT; verb++) {
        const struct act *act = &acts[verb];

        if (!act->hint)
            continue;
        buf_format(&text, "%c\"%s\":{\"as\":\"%s\",\"hint\":\"%s\"", text.len ? ',' : '{',
                   intake_verb_word(verb), control_done_word(act->control), act->hint);
        for (int held = 0; held < 2; held++) {
            buf_text(&text, held ? ",\"held\":{" : ",\"free\":{");
            for (enum status status = STATUS_NONE + 1; status < STATUS_COUNT; status++) {
                const char *advice = control_advice(act->control, status, held);

                if (!advice)
                    continue;
                json_comma(&text);
                buf_format(&text, "\"%s\":\"%s\"", status_word(status), advice);
            }
            buf_byte(&text, '}');
        }
        buf_byte(&text, '}');
    }
    buf_byte(&text, '}');
    return text.failed ? STR_NONE : arena_str(arena, buf_view(&text));
}

/* Types whose tasks are stored encrypted, as patterns. */
static struct str sealed_json(const struct settings *settings, struct arena *arena)
{
    BUF_AUTO struct buf text = BUF_INIT(1024 * 1024);

    buf_byte(&text, '[');
    if (settings->encryption.all)
        json_write_string(&text, STR("*"));
    for (uint32_t i = 0; i < settings->handlers_count && !settings->encryption.all; i++) {
        const struct handler_rule *rule = &settings->handlers[i];

        if (!rule->encrypt && !rule->encrypt_fields_count)
            continue;
        json_comma(&text);
        json_write_string(&text, rule->type);
    }
    buf_byte(&text, ']');
    return text.failed ? STR_NONE : arena_str(arena, buf_view(&text));
}

static int publish_one(struct batch *batch, const char *name, struct str value, bool *known,
                       struct err *err)
{
    const struct store_verbs *verbs = batch->store->verbs;
    struct str stored;

    TRY_MEMORY(value.data);
    TRY(verbs->info_get(batch->store, name, &batch->arena, &stored, err));
    if (stored.data && str_eq(stored, value))
        return 0;
    *known = false;
    batch->wrote = true;
    return verbs->info_put(batch->store, name, value, err);
}

/* The functions look at what the configuration of the last node that read one says. */
static int publish(struct batch *batch, struct err *err)
{
    const struct settings *settings = batch->engine->settings;

    bool known = true;

    if (batch->engine->nodes.intake.published == settings)
        return 0;
    TRY(publish_one(batch, "sql_roles", roles_json(settings, &batch->arena), &known, err));
    TRY(publish_one(batch, "sql_verbs", verbs_json(&batch->arena), &known, err));
    TRY(publish_one(batch, "sealed_types", sealed_json(settings, &batch->arena), &known, err));
    if (known) /* else it looks again after this commit */
        batch->engine->nodes.intake.published = settings;
    return 0;
}

/* ---- one row ---- */

bool intake_is_failure(enum err_code code)
{
    return err_http_status(code) >= 500 && code != ERR_LOCKED;
}

static struct str refusal_json(struct batch *batch, const struct err *why)
{
    BUF_AUTO struct buf text = BUF_INIT(4096);

    buf_format(&text, "{\"reason\":\"refused\",\"code\":\"%s\"", err_word(why->code));
    if (why->field[0])
        json_write_member_string(&text, "field", str_of(why->field));
    buf_byte(&text, '}');
    return arena_str(&batch->arena, buf_view(&text));
}

/* Its key and outside id, which it reserved with SQL, are free again. */
static int free_uniques(struct batch *batch, const struct intake_row *row, struct err *err)
{
    struct task task = {.key = row->key, .has_spec = true};

    task.spec.namespace_name = row->namespace_name;
    task.spec.type = row->type;
    task.spec.idempotency_key = intake_option(row, "idempotency_key", &batch->arena);
    task.spec.external_id = intake_option(row, "external_id", &batch->arena);
    return batch->store->verbs->uniques_drop(batch->store, &task, true, err);
}

static int end_refused(struct batch *batch, const struct intake_row *row, const struct err *why,
                       struct err *err)
{
    struct task_input *input = TRY_MEMORY(arena_alloc(&batch->arena, sizeof *input));
    struct str said = arena_str(&batch->arena, str_of(why->text));
    struct str detail = refusal_json(batch, why);

    TRY_MEMORY(said.data && detail.data);
    TRY(free_uniques(batch, row, err));
    intake_keep(row, input);
    if (why->code == ERR_LOCKED) /* it must not be kept in clear text */
        input->spec.payload = STR_NONE;
    return enqueue_ended(batch, input, STATUS_FAILED, said, detail, err);
}

/* An input hash is known only here; a key is reserved with SQL. */
static int end_duplicate(struct batch *batch, const struct intake_row *row,
                         const struct task *owner, struct err *err)
{
    struct task_input *input = TRY_MEMORY(arena_alloc(&batch->arena, sizeof *input));
    char id[UUID_TEXT_BYTES];
    struct str said, detail;

    uuid_format(&owner->id, id);
    said = batch_text(batch, "task %s has the same input; this one does not run", id);
    detail = batch_text(batch, "{\"reason\":\"duplicate\",\"task_id\":\"%s\"}", id);
    TRY(free_uniques(batch, row, err));
    intake_keep(row, input);
    return enqueue_ended(batch, input, STATUS_CANCELLED, said, detail, err);
}

int intake_make(struct batch *batch, const struct intake_row *row, const struct principal *maker,
                bool *duplicate, struct task **task, struct err *err)
{
    struct task_input *input = TRY_MEMORY(arena_alloc(&batch->arena, sizeof *input));
    bool differs;

    TRY(namespaces_enter_named(batch, row->namespace_name, err));
    TRY(intake_parse(row, batch->engine->settings, &batch->arena, input, err));
    input->maker = maker;
    return enqueue_tasks(batch, input, 1, ACTOR_API, NULL, &batch->arena, task, duplicate,
                         &differs, err);
}

static bool namespace_goes(struct batch *batch, const struct intake_row *row)
{
    struct err err = {0};

    return namespaces_enter_named(batch, row->namespace_name, &err) < 0 &&
           (err.code == ERR_NOT_FOUND || err.code == ERR_CONFLICT);
}

/* *done: the row has become a task, and goes. */
static int take(struct batch *batch, const struct intake_row *row, bool *done, struct err *err)
{
    struct err why = {0};
    struct task *task = NULL;
    bool duplicate = false;
    int rc;

    *done = false;
    if (map_get(&batch->tasks, uuid_bytes(&row->id)))
        return 0; /* another one depends on it, which came first */
    batch->wrote = true;
    rc = intake_make(batch, row, NULL, &duplicate, &task, &why);
    FAULT_POINT("intake.row");
    if (rc < 0 && intake_is_failure(why.code)) {
        *err = why;
        return rc;
    }
    if (rc < 0 && why.code == ERR_RATE)
        return verbs_of(batch)->put_off(batch->store, row->key, batch->now_us + PAUSE_US, err);
    *done = true;
    if (rc < 0 && namespace_goes(batch, row))
        return free_uniques(batch, row, err); /* with all that is in it */
    if (rc < 0)
        return end_refused(batch, row, &why, err);
    return duplicate ? end_duplicate(batch, row, task, err) : 0;
}

/* ---- reports ---- */

/* Decided by the program's commit: whatever happened meanwhile, the task is as it was. Read from
 * the table, because what this node remembers of it is older. */
static int unmark(struct batch *batch, const struct intake_report *rows, uint32_t count,
                  struct err *err)
{
    struct uuid *ids = TRY_MEMORY(arena_alloc_array(&batch->arena, count, sizeof *ids));
    struct task *task;

    for (uint32_t i = 0; i < count; i++)
        ids[i] = rows[i].report.task_id;
    TRY(batch_prefetch(batch, ids, count, err));
    for (uint32_t i = 0; i < count; i++) {
        if (acts[rows[i].verb].hint) /* a request marks nothing */
            continue;
        TRY(batch_task(batch, &ids[i], &task, err));
        if (!task || task->lease.outcome_token >= 0)
            continue;
        task->lease.outcome_token = 0;
        TRY(batch_owe(batch, task, err));
    }
    return 0;
}

/* ---- requests ---- */

/* *done: applied, or refused, which the audit trail says, because the program has its answer; else
 * a bound of the namespace puts it off. */
static int apply_ask(struct batch *batch, const struct intake_report *row, bool *done,
                     struct err *err)
{
    struct principal asks = {.kind = PRINCIPAL_SQL,
                             .name = row->asked_by,
                             .scopes = SCOPE_BIT(SCOPE_ADMIN)};
    struct caller caller = {.principal = &asks};
    struct control_request request = {
        .base = {.kind = REQUEST_CONTROL, .arena = &batch->arena, .caller = &caller},
        .task_id = row->report.task_id, .op = acts[row->verb].control, .actor = ACTOR_API,
        .if_version = -1};
    struct err *why = &request.base.err;
    struct task *task = NULL;
    int rc = batch_task(batch, &row->report.task_id, &task, why);

    FAULT_POINT("intake.ask");
    if (rc == 0 && !task)
        return 0; /* deleted meanwhile */
    if (rc == 0) {
        caller.namespace_name = asks.namespace_name = task->spec.namespace_name;
        rc = control_apply(batch, &request.base);
    }
    if (rc == 0)
        return 0;
    if (intake_is_failure(why->code)) {
        *err = *why;
        return rc;
    }
    *done = why->code != ERR_RATE;
    if (!*done)
        return verbs_of(batch)->reports_put_off(batch->store, uuid7_key(&row->report.task_id),
                                                batch->now_us + PAUSE_US, err);
    return task ? trail_note_refused(batch, &request.base, control_action(request.op),
                                     &request.task_id, why, err) : 0;
}

static int apply_reports(struct batch *batch, const struct intake_report *rows, uint32_t count,
                         struct err *err)
{
    struct report_request request = {.base = {.kind = REQUEST_REPORT, .arena = &batch->arena},
                                     .is_completion = true,
                                     .count = count};
    int rc;

    request.reports = TRY_MEMORY(arena_alloc_array(&batch->arena, count, sizeof(struct report)));
    request.results =
        TRY_MEMORY(arena_alloc_array(&batch->arena, count, sizeof(struct report_result)));
    for (uint32_t i = 0; i < count; i++) {
        request.reports[i] = rows[i].report;
        request.reports[i].op = acts[rows[i].verb].report;
        request.reports[i].delay_ms = -1;
        request.reports[i].by_sql = true;
    }
    FAULT_POINT("intake.report");
    rc = report_apply(batch, &request.base);
    *err = request.base.err;
    for (uint32_t i = 0; rc == 0 && i < count; i++)
        if (request.results[i].code != ERR_NONE)
            LOG(batch->engine->log, LOG_WARN, "intake.report_refused",
                KI("task_key", uuid7_key(&rows[i].report.task_id)),
                KC("reason", request.results[i].message));
    return rc;
}

/* In their order. *done of them are first in rows afterwards; the others are put off. */
static int apply_all(struct batch *batch, struct intake_report *rows, uint32_t count,
                     uint32_t *done, struct err *err)
{
    *done = 0;
    for (uint32_t at = 0; at < count;) {
        uint32_t first = at;
        bool goes = true;

        while (at < count && !acts[rows[at].verb].hint)
            at++;
        if (at > first)
            TRY(apply_reports(batch, rows + first, at - first, err));
        else
            TRY(apply_ask(batch, &rows[at++], &goes, err));
        for (; goes && first < at; first++)
            rows[(*done)++] = rows[first];
    }
    return 0;
}

static int take_reports(struct batch *batch, struct intake_report *rows, uint32_t count,
                        struct err *err)
{
    struct intake *intake = &batch->engine->nodes.intake;
    uint32_t done;
    int rc;

    if (count == 0)
        return 0;
    batch->wrote = true;
    intake->reporting = true;
    rc = unmark(batch, rows, count, err);
    if (rc == 0)
        rc = apply_all(batch, rows, count, &done, err);
    intake->reporting = false;
    return rc < 0 ? rc : verbs_of(batch)->reports_done(batch->store, rows, done, err);
}

/* If another node has just applied them, the write of the mark makes this one begin again. */
int intake_settle(struct batch *batch, struct task *task, struct err *err)
{
    struct intake_report *rows;
    uint32_t count;

    if (batch->engine->nodes.intake.reporting)
        return 0;
    task->lease.outcome_token = 0;
    TRY(batch_owe(batch, task, err));
    if (!batch->store->intake) /* a mark that no program of ours made */
        return 0;
    TRY(verbs_of(batch)->reports_of(batch->store, task->key, &batch->arena, &rows, &count, err));
    return take_reports(batch, rows, count, err);
}

/* ---- all that are due ---- */

int intake_run(struct batch *batch, int64_t *next_us, struct err *err)
{
    struct intake_row *rows;
    struct intake_report *reports;
    uint32_t count, done_count = 0, reports_count;

    *next_us = INT64_MAX;
    if (!batch->store->intake)
        return 0;
    TRY(publish(batch, err));
    if (batch->store->full)
        return 0;
    TRY(verbs_of(batch)->due(batch->store, batch->now_us, ROWS_MAX, BYTES_MAX, &batch->arena,
                             &rows, &count, err));
    for (uint32_t i = 0; i < count; i++) {
        bool done;

        TRY(take(batch, &rows[i], &done, err));
        if (done)
            rows[done_count++] = rows[i];
    }
    TRY(verbs_of(batch)->done(batch->store, rows, done_count, err));
    TRY(verbs_of(batch)->reports(batch->store, batch->now_us, ROWS_MAX, BYTES_MAX, &batch->arena,
                                 &reports, &reports_count, err));
    TRY(take_reports(batch, reports, reports_count, err));
    if (count + reports_count > 1) /* after a single one the keeper looks, which costs no commit */
        *next_us = batch->now_us;
    return 0;
}

/* ---- one that is asked for ---- */

int intake_take_key(struct batch *batch, int64_t key, struct err *err)
{
    struct intake *intake = &batch->engine->nodes.intake;
    struct intake_row *row;
    bool done;
    int rc;

    TRY(verbs_of(batch)->one(batch->store, key, &batch->arena, &row, err));
    if (!row)
        return 0;
    if (intake->depth == DEPTH_MAX)
        return err_set(err, ERR_RATE, "many tasks that were just enqueued depend on one another; "
                       "try again");
    intake->depth++;
    rc = take(batch, row, &done, err);
    intake->depth--;
    if (rc == 0 && done)
        rc = verbs_of(batch)->done(batch->store, row, 1, err);
    if (rc == 0 && !done)
        rc = err_set(err, ERR_RATE, "the task was enqueued with SQL and waits for a bound of its "
                     "namespace; try again");
    return rc;
}

int intake_find(struct batch *batch, const struct uuid *id, struct task **task, struct err *err)
{
    TRY(intake_take_key(batch, uuid7_key(id), err));
    *task = map_get(&batch->tasks, uuid_bytes(id));
    if (*task)
        return 0;
    TRY(batch->store->verbs->tasks_load(batch->store, id, 1, LOAD_SPEC, &batch->arena, task, err));
    return *task ? batch_adopt(batch, *task, err) : 0;
}
