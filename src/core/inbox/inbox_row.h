/* A row of an inbox: a table in another database, whose rows become tasks
 * (node/inboxes). Which rows are read, what became of them, and the note that our store keeps of
 * the last ones: whatever crashes between our commit and the mark in the row, the note says that
 * the row is a task. Pure; any thread. */
#ifndef CORE_INBOX_INBOX_ROW_H
#define CORE_INBOX_INBOX_ROW_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/uuid7.h"

#define INBOX_ROWS_MAX 500                       /* of one look, and so of one commit */
#define INBOX_BYTES_MAX (INT64_C(16) << 20)      /* of what they hold */
#define INBOX_OPTIONS_BYTES (INT64_C(2) << 20)   /* of a row: as for what is enqueued with SQL */
#define INBOX_TYPE_BYTES 1024                    /* more is no type */
#define INBOX_ERROR_BYTES 400

enum inbox_verdict {
    INBOX_WAITS,  /* a bound of its namespace puts it off, with all behind it */
    INBOX_TAKEN,  /* it is a task */
    INBOX_DAMAGED /* it cannot be one; error says why */
};

struct inbox_row {
    int64_t id;
    struct str created_at; /* RFC 3339; with the id it names the row, also in a copy of its table */
    struct str type;       /* absent where it is NULL, as the next two */
    struct str payload;
    struct str options;
    bool too_large;        /* it was not read */
    enum inbox_verdict verdict; /* out, as all below */
    struct uuid task_id;
    struct str error;
};

/* What is known of a row before it is read; 0 bytes where it is NULL. */
struct inbox_size {
    int64_t id;
    int64_t type_bytes, payload_bytes, options_bytes;
};

/* How many of the first rows one look reads: always one, and no more than fit. */
uint32_t inbox_fit(const struct inbox_size *sizes, uint32_t count);
/* Why a row is not read at all; NULL = it is. */
const char *inbox_size_fault(const struct inbox_size *size);

/* As a row keeps it: printable ASCII, whatever the text and the encoding of its database are. */
struct str inbox_error_text(const char *text, struct arena *arena);

/* The note in our store: the session that took the rows, and those that became tasks. A session is
 * one turn of one node at the inbox; only the latest takes rows. */
void inbox_note_write(struct buf *out, int64_t session, const struct inbox_row *rows,
                      uint32_t count);
/* An absent note is session 0 without rows. */
int inbox_note_read(struct str note, struct arena *arena, int64_t *session,
                    struct inbox_row **rows, uint32_t *count, struct err *err);

/* A name, or two with a point between; each of letters, digits and '_'. */
bool inbox_table_valid(struct str table, bool schema);

#endif
