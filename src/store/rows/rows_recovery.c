/* The recovery queue, discovery and checkpoints, once for every store. The first half belongs to
 * the writer's thread, the second to readers. */
#include "store/rows/rows_verbs.h"

#include "core/bounds.h"
#include "core/task/recovery_fields.h"

static int recovery_put(struct store *store, const struct recovery_entry *entries, uint32_t count,
                        struct err *err)
{
    return rows_save_all(rows_of(store), ROWS_PLAIN(ROWS_recovery_put), &recovery_table, entries,
                         count, NULL, err);
}

static int recovery_save(struct store *store, const struct recovery_entry *entry, struct err *err)
{
    return rows_run(rows_of(store),
                    ROWS_QUERY(ROWS_recovery_save, value_uuid(&entry->id),
                               value_moment(entry->scheduled_for_us),
                               value_time(entry->processing_started_us),
                               value_time(entry->processing_completed_us),
                               value_word(recovery_status_word(entry->status)),
                               value_int(entry->attempts), value_text(entry->result),
                               value_text(entry->error_message)),
                    NULL, err);
}

static int recovery_load(struct store *store, const struct uuid *id, struct arena *arena,
                         struct recovery_entry **entry, struct err *err)
{
    return rows_one(rows_of(store), ROWS_QUERY(ROWS_recovery_by_id, value_uuid(id)),
                    &recovery_table, arena, ROWS_INTO(entry), err);
}

/* Two columns: the next pending entry, and since when the first processing entry has been
 * processing. */
static int next_time(struct store *store, int64_t now_us, int64_t lease_us, int64_t *next_us,
                     struct err *err)
{
    int64_t times_us[2] = {INT64_MAX, INT64_MAX - lease_us};

    TRY(rows_numbers(rows_of(store),
                     ROWS_QUERY(ROWS_recovery_next, value_moment(now_us),
                                value_moment(now_us - lease_us)),
                     times_us, 2, err));
    *next_us = times_us[0] < times_us[1] + lease_us ? times_us[0] : times_us[1] + lease_us;
    return 0;
}

static int recovery_due(struct store *store, int64_t now_us, int64_t lease_us, uint32_t limit,
                        struct arena *arena, struct recovery_entry **entries, uint32_t *count,
                        int64_t *next_us, struct err *err)
{
    *next_us = INT64_MAX;
    TRY(rows_take(rows_of(store),
                  ROWS_QUERY(ROWS_recovery_due, value_moment(now_us),
                             value_moment(now_us - lease_us), value_int(limit)),
                  &recovery_table, arena, ROWS_INTO(entries), count, err));
    return next_time(store, now_us, lease_us, next_us, err);
}

static int recovery_remove(struct store *store, const struct uuid *id, struct err *err)
{
    return rows_run(rows_of(store), ROWS_QUERY(ROWS_recovery_remove, value_uuid(id)), NULL, err);
}

static int recovery_prune(struct store *store, int64_t before_us, uint32_t limit,
                          uint32_t *removed, struct err *err)
{
    int64_t changes = 0;

    *removed = 0;
    TRY(rows_run(rows_of(store),
                 ROWS_QUERY(ROWS_recovery_prune, value_time(before_us), value_int(limit)),
                 &changes, err));
    *removed = (uint32_t)changes;
    return 0;
}

static int checkpoint_before(struct store *store, const struct uuid *task_id, int64_t before_seq,
                             struct arena *arena, struct checkpoint **checkpoint, struct err *err)
{
    TRY(rows_one(rows_of(store),
                 ROWS_QUERY(ROWS_checkpoint_before, value_uuid(task_id),
                            value_int(before_seq ? before_seq : INT64_MAX)),
                 &checkpoint_table, arena, ROWS_INTO(checkpoint), err));
    if (*checkpoint)
        (*checkpoint)->task_key = uuid7_key(task_id);
    return 0;
}

int rows_checkpoint_newest(struct store *store, const struct uuid *task_id, struct arena *arena,
                           struct checkpoint **checkpoint, struct err *err)
{
    return checkpoint_before(store, task_id, 0, arena, checkpoint, err);
}

int rows_checkpoint_invalidate(struct store *store, const struct uuid *task_id, int64_t seq,
                               struct err *err)
{
    return rows_run(rows_of(store),
                    ROWS_QUERY(ROWS_checkpoint_invalidate, value_uuid(task_id), value_int(seq)),
                    NULL, err);
}

static int checkpoints_retire(struct store *store, const struct uuid *task_id, struct err *err)
{
    return rows_run(rows_of(store), ROWS_QUERY(ROWS_checkpoints_retire, value_uuid(task_id)), NULL,
                    err);
}

/* ---- readers ---- */

static int read_entries(struct store_reader *reader, const struct recovery_filter *filter,
                        struct arena *arena, struct recovery_entry **entries, uint32_t *count,
                        struct err *err)
{
    const char *status = filter->status < 0
                             ? NULL
                             : recovery_status_word((enum recovery_status)filter->status);
    const char *method = filter->method < 0
                             ? NULL
                             : recovery_method_word((enum recovery_method)filter->method);

    return rows_take(rows_of_reader(reader),
                     ROWS_QUERY(ROWS_list_recoveries, value_text(filter->namespace_name),
                                value_uuid(&filter->task_id), value_word(status),
                                value_word(method), value_uuid(&filter->before_id),
                                value_int(rows_limit(filter->limit))),
                     &recovery_table, arena, ROWS_INTO(entries), count, err);
}

static int read_entry(struct store_reader *reader, const struct uuid *id, struct arena *arena,
                      struct recovery_entry **entry, struct err *err)
{
    return rows_one(rows_of_reader(reader), ROWS_QUERY(ROWS_recovery_by_id, value_uuid(id)),
                    &recovery_table, arena, ROWS_INTO(entry), err);
}

static int read_candidates(struct store_reader *reader, const struct candidate_filter *filter,
                           struct arena *arena, struct recovery_candidate **candidates,
                           uint32_t *count, struct err *err)
{
    struct task **tasks;

    TRY(rows_tasks(rows_of_reader(reader),
                   ROWS_QUERY(ROWS_recovery_candidates, value_moment(filter->now_us),
                              value_int(filter->stall_after_ms), value_int(filter->auto_recovery),
                              value_bool(filter->goes_on), value_int(filter->after_priority),
                              value_time(filter->after_updated_us), value_uuid(&filter->after_id),
                              value_int(rows_limit(filter->limit)),
                              value_text(filter->namespace_name)),
                   arena, &tasks, count, err));
    *candidates = TRY_MEMORY(arena_alloc_array(arena, *count + 1, sizeof **candidates));
    for (uint32_t i = 0; i < *count; i++)
        (*candidates)[i] = (struct recovery_candidate){tasks[i],
                                                       recovery_candidate_reason(tasks[i])};
    return 0;
}

int rows_read_checkpoints(struct store_reader *reader, const struct uuid *id, int64_t before_seq,
                          uint32_t limit, struct arena *arena, struct checkpoint **checkpoints,
                          uint32_t *count, struct err *err)
{
    TRY(rows_take(rows_of_reader(reader),
                  ROWS_QUERY(ROWS_read_checkpoints, value_uuid(id),
                             value_int(before_seq > 0 ? before_seq : INT64_MAX),
                             value_int(rows_page(limit)), value_int(rows_room(arena))),
                  &checkpoint_table, arena, ROWS_INTO(checkpoints), count, err));
    for (uint32_t i = 0; i < *count; i++)
        (*checkpoints)[i].task_key = uuid7_key(id);
    return 0;
}

const struct recovery_verbs rows_recovery_verbs = {
    .put = recovery_put,
    .save = recovery_save,
    .load = recovery_load,
    .due = recovery_due,
    .remove = recovery_remove,
    .prune = recovery_prune,
    .checkpoint_before = checkpoint_before,
    .checkpoints_retire = checkpoints_retire,
    .read_entries = read_entries,
    .read_entry = read_entry,
    .read_candidates = read_candidates,
};
