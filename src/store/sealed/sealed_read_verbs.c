/* The readers' verbs: what they give is opened. Each reader belongs to one thread and reads keys on
 * its own connection. */
#include "store/sealed/sealed_int.h"

#define BELOW(reader) sealed_of_reader(reader)->below
#define OPENER(reader) \
    struct opener opener; \
    int rc = 0; \
    \
    opener_begin(&opener, sealed_of_reader(reader), rows_of_reader(reader), arena, err)

static int finish(struct opener *opener, int rc)
{
    opener_end(opener);
    if (rc == 0 && opener->arena->failed)
        return err_set(opener->err, ERR_TOO_LARGE, "the answer is too large; ask for fewer at a "
                                                   "time");
    return rc;
}

static int read_task(struct store_reader *reader, const struct uuid *id, struct arena *arena,
                     struct task **task, struct err *err)
{
    OPENER(reader);
    rc = BELOW(reader)->read_task(reader, id, arena, task, err);
    if (rc == 0 && *task)
        rc = open_task(&opener, *task);
    return finish(&opener, rc);
}

static int read_tasks(struct store_reader *reader, const struct task_filter *filter,
                      struct arena *arena, struct task **tasks, uint32_t *count, struct err *err)
{
    OPENER(reader);
    rc = BELOW(reader)->read_tasks(reader, filter, arena, tasks, count, err);
    for (uint32_t i = 0; rc == 0 && i < *count; i++)
        rc = open_task(&opener, &(*tasks)[i]);
    return finish(&opener, rc);
}

static int read_outputs(struct store_reader *reader, const struct uuid *task_id, bool children,
                        int64_t after_key, uint32_t limit, struct arena *arena,
                        struct output **outputs, uint32_t *count, struct err *err)
{
    OPENER(reader);
    rc = BELOW(reader)->read_outputs(reader, task_id, children, after_key, limit, arena, outputs,
                                     count, err);
    for (uint32_t i = 0; rc == 0 && i < *count; i++)
        rc = open_result(&opener, uuid7_key(&(*outputs)[i].id), &(*outputs)[i].result);
    return finish(&opener, rc);
}

static int read_result(struct store_reader *reader, const struct uuid *id, struct arena *arena,
                       struct str *payload, int64_t *created_at_us, struct err *err)
{
    OPENER(reader);
    rc = BELOW(reader)->read_result(reader, id, arena, payload, created_at_us, err);
    if (rc == 0)
        rc = open_result(&opener, uuid7_key(id), payload);
    return finish(&opener, rc);
}

static int read_events(struct store_reader *reader, const struct uuid *id, int64_t before_seq,
                       uint32_t limit, struct arena *arena, struct task_event **events,
                       uint32_t *count, struct err *err)
{
    struct seal_at at = {.table = "task_events", .column = "detail", .json = true};

    OPENER(reader);
    rc = BELOW(reader)->read_events(reader, id, before_seq, limit, arena, events, count, err);
    for (uint32_t i = 0; rc == 0 && i < *count; i++) {
        struct task_event *event = &(*events)[i];
        char space[SEAL_ROW_BYTES];
        enum opened opened;

        at.row = seal_row_event(event->task_key, event->seq, space);
        rc = open_text(&opener, STR_NONE, &at, &event->detail, &opened);
    }
    return finish(&opener, rc);
}

static int open_execution(struct opener *opener, struct execution *execution)
{
    char space[SEAL_ROW_BYTES];
    const struct seal_at at = {.table = "executions", .column = "error_data", .json = true,
                               .row = seal_row_number(execution->key, space)};
    enum opened opened;

    TRY(open_text(opener, STR_NONE, &at, &execution->error_data, &opened));
    return open_result(opener, execution->task_key, &execution->result_data);
}

static int open_executions(struct opener *opener, struct execution *executions, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        TRY(open_execution(opener, &executions[i]));
    return 0;
}

static int read_executions(struct store_reader *reader, const struct uuid *id, int64_t before_key,
                           uint32_t limit, struct arena *arena, struct execution **executions,
                           uint32_t *count, struct err *err)
{
    OPENER(reader);
    rc = BELOW(reader)->read_executions(reader, id, before_key, limit, arena, executions, count,
                                        err);
    if (rc == 0)
        rc = open_executions(&opener, *executions, *count);
    return finish(&opener, rc);
}

static int read_execution_list(struct store_reader *reader, const struct execution_filter *filter,
                               struct arena *arena, struct execution **executions, uint32_t *count,
                               struct err *err)
{
    OPENER(reader);
    rc = BELOW(reader)->catalog->read_execution_list(reader, filter, arena, executions, count,
                                                     err);
    if (rc == 0)
        rc = open_executions(&opener, *executions, *count);
    return finish(&opener, rc);
}

static int read_execution(struct store_reader *reader, const struct uuid *id, struct arena *arena,
                          struct execution **execution, struct err *err)
{
    OPENER(reader);
    rc = BELOW(reader)->catalog->read_execution(reader, id, arena, execution, err);
    if (rc == 0 && *execution)
        rc = open_execution(&opener, *execution);
    return finish(&opener, rc);
}

static int read_checkpoints(struct store_reader *reader, const struct uuid *id, int64_t before_seq,
                            uint32_t limit, struct arena *arena, struct checkpoint **checkpoints,
                            uint32_t *count, struct err *err)
{
    enum opened opened;

    OPENER(reader);
    rc = BELOW(reader)->read_checkpoints(reader, id, before_seq, limit, arena, checkpoints, count,
                                         err);
    for (uint32_t i = 0; rc == 0 && i < *count; i++)
        rc = open_checkpoint(&opener, id, &(*checkpoints)[i], &opened);
    return finish(&opener, rc);
}

static int open_logs(struct opener *opener, struct log_entry *entries, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        char space[SEAL_ROW_BYTES];
        struct seal_at at = {.table = "execution_logs", .row = seal_row_id(&entries[i].id, space)};
        enum opened opened;

        at.column = "message";
        TRY(open_text(opener, STR_NONE, &at, &entries[i].message, &opened));
        at.column = "context";
        at.json = true;
        TRY(open_text(opener, STR_NONE, &at, &entries[i].context, &opened));
    }
    return 0;
}

static int read_logs(struct store_reader *reader, const struct uuid *id,
                     const struct log_filter *filter, struct arena *arena,
                     struct log_entry **entries, uint32_t *count, struct err *err)
{
    OPENER(reader);
    rc = BELOW(reader)->read_logs(reader, id, filter, arena, entries, count, err);
    if (rc == 0)
        rc = open_logs(&opener, *entries, *count);
    return finish(&opener, rc);
}

static int read_execution_logs(struct store_reader *reader, const struct uuid *execution_id,
                               const struct log_filter *filter, struct arena *arena,
                               struct log_entry **entries, uint32_t *count, struct err *err)
{
    OPENER(reader);
    rc = BELOW(reader)->catalog->read_execution_logs(reader, execution_id, filter, arena, entries,
                                                     count, err);
    if (rc == 0)
        rc = open_logs(&opener, *entries, *count);
    return finish(&opener, rc);
}

static int read_entries(struct store_reader *reader, const struct recovery_filter *filter,
                        struct arena *arena, struct recovery_entry **entries, uint32_t *count,
                        struct err *err)
{
    OPENER(reader);
    rc = BELOW(reader)->recovery->read_entries(reader, filter, arena, entries, count, err);
    for (uint32_t i = 0; rc == 0 && i < *count; i++)
        rc = open_recovery(&opener, &(*entries)[i]);
    return finish(&opener, rc);
}

static int read_entry(struct store_reader *reader, const struct uuid *id, struct arena *arena,
                      struct recovery_entry **entry, struct err *err)
{
    OPENER(reader);
    rc = BELOW(reader)->recovery->read_entry(reader, id, arena, entry, err);
    if (rc == 0 && *entry)
        rc = open_recovery(&opener, *entry);
    return finish(&opener, rc);
}

static int read_candidates(struct store_reader *reader, const struct candidate_filter *filter,
                           struct arena *arena, struct recovery_candidate **candidates,
                           uint32_t *count, struct err *err)
{
    OPENER(reader);
    rc = BELOW(reader)->recovery->read_candidates(reader, filter, arena, candidates, count, err);
    for (uint32_t i = 0; rc == 0 && i < *count; i++)
        rc = open_task(&opener, (*candidates)[i].task);
    return finish(&opener, rc);
}

void sealed_set_reads(struct sealed *sealed)
{
    struct store_verbs *verbs = &sealed->verbs;

    verbs->read_task = read_task;
    verbs->read_tasks = read_tasks;
    verbs->read_outputs = read_outputs;
    verbs->read_result = read_result;
    verbs->read_events = read_events;
    verbs->read_executions = read_executions;
    verbs->read_checkpoints = read_checkpoints;
    verbs->read_logs = read_logs;
    sealed->catalog.read_execution_list = read_execution_list;
    sealed->catalog.read_execution = read_execution;
    sealed->catalog.read_execution_logs = read_execution_logs;
    sealed->recovery.read_entries = read_entries;
    sealed->recovery.read_entry = read_entry;
    sealed->recovery.read_candidates = read_candidates;
}
