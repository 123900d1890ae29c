/* The archive of removed tasks: JSON lines in a folder, one file per day, as zstd frames. A task is
 * in the archive, synced, before its removal commits. Engine's thread. */
#ifndef ENGINE_HISTORY_ARCHIVE_H
#define ENGINE_HISTORY_ARCHIVE_H

#include "store/store.h"

/* Appends the tasks with their results and events and syncs. *checked is false before the first
 * call, which cuts off what a kill left half written at the end of the file. */
int archive_write(struct store *store, struct store_reader *reader, struct str folder,
                  struct task *const *tasks, uint32_t count, int64_t now_us, bool *checked,
                  struct err *err);

#endif
