/* The thread that appends to the anchor file: it alone touches the file while the server runs, so
 * that one on a file system that hangs (a network mount) delays no request. It gets whole lines in
 * order, up to a bound. It forgets lines that it could not write and asks for them again, from the
 * end that the file then has: the store is the truth. One thread at a time hands lines in. */
#ifndef ENGINE_LOGS_ANCHOR_WRITER_H
#define ENGINE_LOGS_ANCHOR_WRITER_H

#include "base/log.h"
#include "engine/logs/anchor_file.h"

struct anchor_writer;

/* end: where the file ends; NULL = it could not be read, and the thread tries again. */
struct anchor_writer *anchor_writer_start(const char *path, const struct anchor_file_end *end,
                                          const struct log *log, struct err *err);
/* Can it take more? *after: the last record that it was given or that is in the file. False while
 * it does not know where the file ends. */
bool anchor_writer_has_room(struct anchor_writer *writer, int64_t *after);
/* Copies the lines behind `after`; none if it has started over meanwhile. serial: of the last. */
void anchor_writer_give(struct anchor_writer *writer, int64_t after, struct str lines,
                        int64_t serial);
bool anchor_writer_is_done(struct anchor_writer *writer); /* all that was given is in the file */
bool anchor_writer_is_well(struct anchor_writer *writer); /* the last write succeeded */
/* Waits until every line is in the file or has failed; false if that takes longer. */
bool anchor_writer_wait(struct anchor_writer *writer, int64_t until_boot_us);
/* Ends the thread; does not wait for one that hangs. NULL does nothing. */
void anchor_writer_stop(struct anchor_writer *writer);

#endif
