/* Entries of the recovery queue as rows (recovery_entries.c). Belongs to the thread that has the
 * turn (inbox.c). */
#ifndef ENGINE_LEASES_RECOVERY_ENTRIES_H
#define ENGINE_LEASES_RECOVERY_ENTRIES_H

#include "core/task/recovery.h"

struct batch;
struct err;

struct recovery_entry entry_new(struct batch *batch, const struct task *task,
                                enum recovery_method method);
int entry_add(struct batch *batch, const struct recovery_entry *entry, struct err *err);
int entry_save(struct batch *batch, const struct recovery_entry *entry, struct err *err);
void entry_end(struct batch *batch, struct recovery_entry *entry, enum recovery_status status,
               struct str error);
/* The task's recovery_metadata names the entry. */
void entry_note(struct batch *batch, struct task *task, const struct recovery_entry *entry,
                struct str reason);
struct str entry_lost_json(struct batch *batch, const struct task *task, struct str reason);
/* Writes an ended entry for a task that the engine itself took back or gave up. */
int entry_note_lost(struct batch *batch, struct task *task, const char *reason, struct err *err);
/* The lost task waits: its validator must answer, or its holder must stop it, before it is put
 * back. */
int entry_wait(struct batch *batch, struct task *task, struct err *err);
int entry_put_off(struct batch *batch, struct task *task, struct recovery_entry *entry,
                  struct err *err);
/* The holder has stopped the task: the entry need not wait any longer. */
int entry_hurry(struct batch *batch, struct task *task, struct err *err);

#endif
