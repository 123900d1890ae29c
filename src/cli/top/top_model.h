/* What `perdura top` shows: replies of the API turned into rows of texts. Pure: no terminal, no
 * network, no clock. Texts are as the server sent them; the code that draws them cleans them. */
#ifndef CLI_TOP_TOP_MODEL_H
#define CLI_TOP_TOP_MODEL_H

#include "cli/frame/terminal.h"

#define TOP_CELLS_MAX 8
#define TOP_ROWS_MAX 500  /* of one pane; more than a person scrolls through */
#define TOP_KNOWN_MAX 512 /* tasks whose type and queue are remembered from frame to frame */
#define TOP_ID_BYTES 37

enum top_pane {
    TOP_QUEUES,
    TOP_WORKERS,
    TOP_RUNNING,
    TOP_FAILURES,
    TOP_NEXT,
    TOP_ALERTS,
    TOP_PANES_COUNT
};

struct top_row {
    struct str key;   /* what enter looks at: a queue's name, a worker's id, a task's id */
    struct str cells[TOP_CELLS_MAX];
    int64_t order;    /* rows are sorted by it where a pane has an order of its own */
    enum colour colour;
    bool paused;      /* of a queue */
    bool recurring;   /* of what is planned: by a pattern, not by a schedule */
};

/* Tasks are asked for once: their type and queue never change. */
struct top_known {
    char id[TOP_ID_BYTES];
    char type[201];
    char queue[201];
};

struct top_memory {
    struct top_known tasks[TOP_KNOWN_MAX];
    uint32_t next;       /* the oldest is overwritten */
    int64_t at_us;       /* of the totals below; 0 = there was no frame yet */
    int64_t completed, failed, enqueued;
};

/* Checked JSON, each absent where the server did not answer (or does not know the path). */
struct top_replies {
    struct str stats;
    struct str history;
    struct str workers;
    struct str failed;   /* executions that failed, ... */
    struct str timeout;  /* ... and that took too long */
    struct str forecast;
};

struct top_snapshot {
    bool known;          /* the server has told; otherwise all below is empty */
    struct str version, store, leader;
    int64_t uptime_ms;
    int64_t waiting, running, workers, claims;
    int64_t done_milli, failed_milli, enqueued_milli; /* per second, in thousandths; -1 unknown */
    struct top_row *rows[TOP_PANES_COUNT];
    uint32_t counts[TOP_PANES_COUNT];
    bool critical;       /* one of the alerts is */
};

/* Fills all of it; memory keeps what the next frame needs. -1 without memory in the arena. */
int top_model_fill(const struct top_replies *replies, struct top_memory *memory, int64_t now_us,
                   struct arena *arena, struct top_snapshot *snapshot);

/* Ids of tasks in these replies that memory does not know yet, at most max. */
uint32_t top_model_unknown(const struct top_replies *replies, const struct top_memory *memory,
                           struct arena *arena, struct str *ids, uint32_t max);
/* Remembers a task of GET /v1/tasks/{id}; STR_NONE: it is gone, and not asked for again soon. */
void top_model_learn(struct top_memory *memory, struct str id, struct str task,
                     struct arena *arena);

/* Figures for people: 12, 3.4, 0.05, 1.2k, 34k; "-" below 0. */
struct str top_rate_text(int64_t milli, struct arena *arena);

/* Lines of what enter shows. task, why, events and logs are replies; any may be absent. */
struct top_lines {
    struct str *lines;
    uint32_t count, cap;
    struct arena *arena;
};
void top_lines_add(struct top_lines *lines, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void top_lines_object(struct top_lines *lines, struct str object); /* its members, one each */
void top_lines_task(struct top_lines *lines, struct str task, struct str why, struct str events,
                    struct str logs);

#endif
