/* What a mock model answers: a list of lines in JSON, of which the first one that fits and is not
 * used up counts. Pure but for how often a line was used, which the caller guards with a lock. */
#ifndef CLI_MOCK_MOCK_SCRIPT_H
#define CLI_MOCK_MOCK_SCRIPT_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

struct mock_line {
    struct str json;
    struct str when;     /* text in the last message; absent = any */
    int64_t turn;        /* answers of the model before; -1 = any */
    int64_t times;       /* how often it may be used; 0 = any number */
    int64_t used;
    int64_t status;
    int64_t retry_after;
    int64_t delay_ms;    /* before the answer; in a stream before each piece too */
    bool cut, stall;     /* after the first half */
    bool stream;         /* false: it answers as a whole, also where a stream was asked for */
};

struct mock_script {
    struct arena arena;
    struct mock_line *lines;
    uint32_t count;
    struct str key; /* the API key that it wants; absent = none */
};

int mock_script_read(struct mock_script *script, struct str text, struct err *err);
void mock_script_deinit(struct mock_script *script);

/* The line for a request, counted as used; NULL = none fits. messages: JSON array. */
struct mock_line *mock_script_match(struct mock_script *script, struct str messages, int64_t *turn,
                                    struct arena *arena);

/* The body of an answer, as a whole or as a stream of events. */
void mock_answer_write(const struct mock_line *line, int64_t turn, bool stream, struct arena *arena,
                       struct buf *out);

#endif
