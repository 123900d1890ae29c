/* Entries of the recovery queue that failed for an unforeseen reason: what they did was rolled
 * back, so memory keeps a few of them. Each is skipped for a growing while, so that it does not
 * hold up those behind it; the attempt and its error are stored with the next look. After a restart
 * they are found again. Runs on the thread that has the turn. */
#include "engine/batch.h"
#include "engine/engine_state.h"
#include "engine/leases/recoveries.h"
#include "store/recovery_store.h"

static struct recovery_fault *find(struct engine *engine, const struct uuid *entry_id)
{
    for (uint32_t i = 0; i < engine->recoveries.faults_count; i++)
        if (uuid_eq(&engine->recoveries.faults[i].entry_id, entry_id))
            return &engine->recoveries.faults[i];
    return NULL;
}

/* A new one; in place of the one that comes next where there are too many. */
static struct recovery_fault *make(struct engine *engine, const struct uuid *entry_id)
{
    struct recovery_fault *fault = &engine->recoveries.faults[0];

    if (engine->recoveries.faults_count < RECOVERY_FAULTS_MAX)
        fault = &engine->recoveries.faults[engine->recoveries.faults_count++];
    else
        for (uint32_t i = 1; i < RECOVERY_FAULTS_MAX; i++)
            if (engine->recoveries.faults[i].until_us < fault->until_us)
                fault = &engine->recoveries.faults[i];
    *fault = (struct recovery_fault){.entry_id = *entry_id};
    return fault;
}

/* A store that is away, full or was changed by another node is not the entry's fault. */
void recovery_fault_note(struct batch *batch, const struct recovery_entry *entry,
                         const struct err *err)
{
    struct engine *engine = batch->engine;
    struct recovery_fault *fault;
    char id[UUID_TEXT_BYTES];

    if (err->code == ERR_UNAVAILABLE || err->code == ERR_STORAGE_FULL || err->code == ERR_MEMORY)
        return;
    fault = find(engine, &entry->id);
    if (!fault)
        fault = make(engine, &entry->id);
    fault->fails++;
    fault->told = false;
    fault->until_us = batch->now_us + recovery_delay_ms(fault->fails) * CLOCK_MS_US;
    snprintf(fault->text, sizeof fault->text, "it failed: %.200s", err->text);
    uuid_format(&entry->id, id);
    LOG(engine->log, LOG_WARN, "recovery.failed", KC("entry", id), KI("fails", fault->fails),
        KC("reason", err->text));
}

bool recovery_fault_holds(struct batch *batch, const struct recovery_entry *entry,
                          int64_t *next_us)
{
    const struct recovery_fault *fault = find(batch->engine, &entry->id);

    if (!fault || fault->until_us <= batch->now_us)
        return false;
    if (fault->until_us < *next_us)
        *next_us = fault->until_us;
    return true;
}

void recovery_fault_forget(struct engine *engine, const struct uuid *entry_id)
{
    struct recovery_fault *fault = find(engine, entry_id);

    if (fault)
        *fault = engine->recoveries.faults[--engine->recoveries.faults_count];
}

static int tell(struct batch *batch, const struct recovery_fault *fault, struct err *err)
{
    const struct recovery_verbs *verbs = batch->store->verbs->recovery;
    struct recovery_entry *entry;

    TRY(verbs->load(batch->store, &fault->entry_id, &batch->arena, &entry, err));
    if (!entry || entry->status == RECOVERY_COMPLETED || entry->status == RECOVERY_FAILED)
        return 0;
    entry->attempts = task_count_up(entry->attempts);
    entry->error_message = arena_str(&batch->arena, str_of(fault->text));
    entry->scheduled_for_us = fault->until_us;
    entry->processing_started_us = 0;
    entry->status = RECOVERY_PENDING;
    if (!recovery_tries_left(entry)) {
        entry->processing_started_us = entry->processing_completed_us = batch->now_us;
        entry->status = RECOVERY_FAILED;
    }
    batch->wrote = true;
    return verbs->save(batch->store, entry, err);
}

/* Once each: an entry that cannot be written either is only left out. */
int recovery_faults_tell(struct batch *batch, struct err *err)
{
    struct engine *engine = batch->engine;

    for (uint32_t i = 0; i < engine->recoveries.faults_count; i++) {
        if (engine->recoveries.faults[i].told)
            continue;
        engine->recoveries.faults[i].told = true;
        TRY(tell(batch, &engine->recoveries.faults[i], err));
    }
    return 0;
}
