/* The readers of GET /v1/stream, which follow changes of tasks. Loop thread, but for stream_notes
 * (the engine's). */
#ifndef SERVER_STREAM_H
#define SERVER_STREAM_H

#include "server/server_int.h"

struct stream *stream_open(struct server *server, struct err *err);
/* Ends those whose token has ended by then, with an event that says why. */
void stream_end_credentials(struct stream *stream, int64_t now_us);
void stream_stop(struct stream *stream); /* ends all readers */
void stream_free(struct stream *stream);
void stream_notes(struct stream *stream, const struct task_note *notes, uint32_t count);
uint32_t stream_readers(const struct stream *stream);
bool stream_wants_stats(const struct stream *stream); /* some reader asked for it */
void stream_stats(struct stream *stream); /* this second's event to all who asked */

#endif
