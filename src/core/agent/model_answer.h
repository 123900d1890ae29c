/* The answer of an OpenAI-compatible chat API, whole (one JSON object) or as a stream of
 * server-sent events. Nothing of it is trusted. Pure; texts live in the arena of the reader. */
#ifndef CORE_AGENT_MODEL_ANSWER_H
#define CORE_AGENT_MODEL_ANSWER_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

#define MODEL_ANSWER_BYTES_MAX (4 * 1024 * 1024) /* of the body, and of all texts of a stream */
#define MODEL_CALLS_MAX 256                      /* tool calls of one answer; more is refused */

struct tool_call {
    struct str id;
    struct str name;
    struct str arguments; /* as the model wrote them: perhaps no JSON */
};

struct model_answer {
    struct str content;   /* text; absent = none */
    struct tool_call *calls;
    uint32_t calls_count;
    int64_t input_tokens, output_tokens; /* as the API says, 0 = it does not */
};

/* -ERR_INVALID: the sentence says what is wrong with it, without its words. */
int model_answer_parse(struct str body, struct arena *arena, struct model_answer *answer,
                       struct err *err);
/* What the API says of an error, at most 300 bytes; absent = nothing. */
struct str model_error_text(struct str body, struct arena *arena);

struct model_stream_call {
    struct str id, name;
    struct buf arguments;
};

struct model_stream {
    struct arena *arena;
    struct buf line;
    struct buf content;
    struct model_stream_call *calls;
    uint32_t calls_count;
    int64_t input_tokens, output_tokens;
    size_t bytes;
    bool has_content, has_choice;
    bool over; /* [DONE], or a reason to finish */
    struct err err; /* code ERR_NONE = fine so far */
};

void model_stream_init(struct model_stream *stream, struct arena *arena);
void model_stream_deinit(struct model_stream *stream);
/* Returns 0 or what is wrong; later bytes are ignored then. */
int model_stream_feed(struct model_stream *stream, struct str bytes);
/* At the end of the body. A stream that was cut is no answer. */
int model_stream_answer(struct model_stream *stream, struct model_answer *answer,
                        struct err *err);

enum model_end {
    MODEL_ANSWERED,
    MODEL_WAIT,   /* called again when the API said, or later and later; no retry is used up */
    MODEL_AGAIN,  /* called again soon, a few times */
    MODEL_REFUSED /* failed for good */
};
enum model_end model_judge_status(int status, bool asks_wait);
/* How long the n-th wait (0, 1, …) for a limit of the API is. retry_after_s 0 = not said. */
int64_t model_wait_ms(int64_t retry_after_s, uint32_t waits);

#endif
