/* The ready lines in memory: for every lane (namespace, queue, type, category) a bounded window of
 * its first pending tasks, refilled from the index, and the counts per status. The window saves the
 * claim a query. The index stays the truth, and after a rollback everything here is read again.
 *
 * Every ready task of a lane at or before its `boundary` is in the window; later ones are only in
 * the index. Writer's thread only. */
#ifndef STORE_SQLITE_SQLITE_LINES_H
#define STORE_SQLITE_SQLITE_LINES_H

#include "base/err.h"
#include "base/map.h"
#include "core/task/status.h"
#include "core/task/task.h"

#define LINE_REFILL 256     /* one refill query per 256 claims */
#define LINE_WINDOW_MAX 1024 /* 16 kB per busy lane */
#define LINE_PARKED STATUS_NONE /* the slot of counts[] that counts parked tasks */

struct sqlite_store;

struct line_entry {
    int64_t order_key;
    int64_t task_key;
};

struct line {
    int64_t lane;
    struct str namespace_name; /* the texts live in one allocation behind the struct */
    struct str queue;
    struct str type;
    struct uuid category_id;   /* nil = none */
    struct str name;           /* queue \x1f type, and \x1f category where there is one: the key in
                                * the map */
    struct line *next_in_queue;
    int64_t counts[STATUS_COUNT];
    int64_t deltas[STATUS_COUNT]; /* of this transaction, not yet written */
    bool touched;
    struct line *next_touched;
    struct line_entry *window; /* sorted; entries first ... filled - 1 */
    uint32_t first;
    uint32_t filled;
    uint32_t cap;
    struct line_entry boundary;
};

struct line_queue {
    struct str name; /* the full one */
    struct line *lines;
    struct line_queue *next;
    uint64_t claim; /* the last claim that looked at it */
};

struct lines {
    struct map by_name; /* struct line */
    struct map queues;  /* struct line_queue */
    struct line **by_lane;
    int64_t lanes_cap;
    struct line *touched;
    uint64_t claims; /* so far */
};

static inline int64_t line_ready(const struct line *line)
{
    return line->counts[STATUS_PENDING] - line->counts[LINE_PARKED];
}

/* Reads lanes and counts; forgets all windows. */
int lines_load(struct sqlite_store *store, struct err *err);
void lines_deinit(struct lines *lines);

/* The line of what a task asks for, made (also as a row) on first use. NULL on failure. */
struct line *lines_get(struct sqlite_store *store, const struct task_spec *spec, struct err *err);
struct line *lines_by_lane(struct lines *lines, int64_t lane);
struct line_queue *lines_queue(struct lines *lines, struct str queue);

/* Updates windows and counts after a task was inserted, saved or deleted (status NONE). */
int lines_note(struct sqlite_store *store, struct line *line, const struct task *task,
               struct err *err);

/* First entry of the line, refilled from the index when needed; NULL when the line is empty. */
int lines_head(struct sqlite_store *store, struct line *line, struct line_entry **head,
               struct err *err);
void lines_pop(struct line *line); /* drops the head, whose task is about to change */

/* Forgets the window: the next head is read from the index. */
void lines_forget(struct line *line);

/* Writes the counts that changed; before every commit. */
int lines_flush(struct sqlite_store *store, struct err *err);

#endif
