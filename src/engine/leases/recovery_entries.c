/* Entries of the recovery queue (B4) as rows: makes, delays, hurries and ends them. recoveries.c
 * judges whether a task may be recovered. */
#include "engine/leases/recovery_entries.h"

#include "base/fault.h"
#include "base/json.h"
#include "engine/engine_state.h"
#include "store/recovery_store.h"

struct recovery_entry entry_new(struct batch *batch, const struct task *task,
                                enum recovery_method method)
{
    return (struct recovery_entry){.id = uuid7_new(&batch->engine->ids, batch->now_us),
                                   .namespace_name = task->spec.namespace_name,
                                   .task_id = task->id,
                                   .method = method,
                                   .priority = task->spec.recovery_priority,
                                   .scheduled_for_us = batch->now_us,
                                   .max_attempts = RECOVERY_MAX_ATTEMPTS,
                                   .created_at_us = batch->now_us};
}

int entry_add(struct batch *batch, const struct recovery_entry *entry, struct err *err)
{
    TRY_MEMORY(BATCH_GROW(batch, batch->recoveries.made));
    batch->recoveries.made.items[batch->recoveries.made.count++] = *entry;
    if (entry->status != RECOVERY_PENDING)
        return 0;
    batch->recoveries.wait = true;
    chore_soon(batch->engine, CHORE_RECOVERY, entry->scheduled_for_us); /* of the first writer */
    return 0;
}

void entry_end(struct batch *batch, struct recovery_entry *entry, enum recovery_status status,
               struct str error)
{
    if (!entry->processing_started_us) {
        entry->processing_started_us = batch->now_us;
        entry->attempts = task_count_up(entry->attempts);
    }
    entry->processing_completed_us = batch->now_us;
    entry->status = status;
    entry->error_message = error;
}

void entry_note(struct batch *batch, struct task *task, const struct recovery_entry *entry,
                struct str reason)
{
    char id[UUID_TEXT_BYTES], at[CLOCK_TEXT_BYTES];

    uuid_format(&entry->id, id);
    clock_format(batch->now_us, at);
    task->resume.metadata =
        batch_text(batch,
                   "{\"entry_id\":\"%s\",\"method\":\"%s\",\"reason\":\"" STR_FMT "\","
                   "\"recovered_at\":\"%s\"}",
                   id, recovery_method_word(entry->method), STR_ARG(reason), at);
}

int entry_save(struct batch *batch, const struct recovery_entry *entry, struct err *err)
{
    batch->wrote = true;
    FAULT_POINT("recovery.save");
    return batch->store->verbs->recovery->save(batch->store, entry, err);
}

/* Of a task that was taken from a worker that lives and has not stopped it: when the sweep has let
 * it go at the latest. */
static int64_t stopped_by_us(const struct batch *batch, const struct task *task)
{
    int64_t over_us = task->lease.until_us > batch->now_us ? task->lease.until_us : batch->now_us;

    return over_us + batch->engine->settings->lease_ms * CLOCK_MS_US / 2;
}

struct str entry_lost_json(struct batch *batch, const struct task *task, struct str reason)
{
    bool dead = task->status == STATUS_DEAD_LETTER;

    return batch_text(batch,
                      "{\"valid\":%s,\"reason\":\"" STR_FMT "\",\"detail\":{\"status\":"
                      "\"%s\",\"crash_count\":%lld}}",
                      dead ? "false" : "true", STR_ARG(dead ? STR("attempts_exhausted") : reason),
                      status_word(task->status), (long long)task->counts.crashes);
}

int entry_note_lost(struct batch *batch, struct task *task, const char *reason, struct err *err)
{
    bool resumes = task->resume.checkpoint.data != NULL;
    struct recovery_entry entry =
        entry_new(batch, task, resumes ? RECOVERY_RESUME_CHECKPOINT : RECOVERY_RESTART_CLEAN);
    bool dead = task->status == STATUS_DEAD_LETTER;

    entry_note(batch, task, &entry, str_of(reason));
    entry_end(batch, &entry, dead ? RECOVERY_FAILED : RECOVERY_COMPLETED,
              dead ? STR("attempts_exhausted: it was lost too often") : STR_NONE);
    entry.result = entry_lost_json(batch, task, str_of(reason));
    batch->engine->figures.stats.totals[TOTAL_RECOVERED] += !dead;
    return entry_add(batch, &entry, err);
}

int entry_wait(struct batch *batch, struct task *task, struct err *err)
{
    struct recovery_entry entry = entry_new(
        batch, task,
        task->resume.checkpoint.data ? RECOVERY_RESUME_CHECKPOINT : RECOVERY_RESTART_CLEAN);

    entry.max_attempts = 0;
    if (task->lease.held)
        entry.scheduled_for_us = stopped_by_us(batch, task);
    entry_note(batch, task, &entry, task->fault.last);
    return entry_add(batch, &entry, err);
}

/* It counts as no attempt. The task names the entry that waits for it. */
int entry_put_off(struct batch *batch, struct task *task, struct recovery_entry *entry,
                  struct err *err)
{
    entry->status = RECOVERY_PENDING;
    entry->processing_started_us = 0;
    entry->attempts -= entry->attempts > 0;
    entry->result = STR_NONE;
    entry->error_message = STR("its worker has not stopped it yet");
    entry->scheduled_for_us = stopped_by_us(batch, task);
    entry_note(batch, task, entry, STR("stalled"));
    return batch_owe(batch, task, err);
}

int entry_hurry(struct batch *batch, struct task *task, struct err *err)
{
    struct str text = json_get(task->resume.metadata, STR("entry_id"));
    struct recovery_entry *entry;
    struct uuid id;

    if (!text.data || !uuid_parse(json_string(text, &batch->arena), &id))
        return 0;
    TRY(batch_flush(batch, err));
    TRY(batch->store->verbs->recovery->load(batch->store, &id, &batch->arena, &entry, err));
    if (!entry || !uuid_eq(&entry->task_id, &task->id) || entry->status != RECOVERY_PENDING ||
        entry->scheduled_for_us <= batch->now_us)
        return 0;
    entry->scheduled_for_us = batch->now_us;
    batch->recoveries.wait = true;
    chore_soon(batch->engine, CHORE_RECOVERY, batch->now_us);
    return entry_save(batch, entry, err);
}
