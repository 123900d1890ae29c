/* The anchor file: signed records about logs as JSON lines, appended only. If the store's
 * administrator cannot write to it, it reveals every later change (F-J6, F-J7). */
#ifndef ENGINE_LOGS_ANCHOR_FILE_H
#define ENGINE_LOGS_ANCHOR_FILE_H

#include "core/log/loganchor.h"

struct anchor_file_end {
    int64_t serial; /* of its last record; 0 = there is none */
    uint8_t hash[HASH_BYTES];
    uint8_t key[SIGN_PUBLIC_BYTES]; /* that it names; zeros = it is not signed */
    int64_t at_us;
    bool torn;      /* the last line lacks its end */
};

/* Refuses a file whose folder does not exist, because the appending thread cannot make the
 * folder. */
int anchor_file_check_folder(const char *path, struct err *err);
/* A file that is not there has no records. */
int anchor_file_end(const char *path, struct anchor_file_end *end, struct err *err);
/* Makes the file if it does not exist; cuts off or ends the last line that a crash left. */
int anchor_file_append(const char *path, struct str lines, bool torn, struct err *err);
int anchor_file_read(const char *path, void (*line)(void *ctx, struct str line), void *ctx,
                     struct err *err);

/* Does the end of the file hold a record that the store lacks or has with other content?
 * anchor_export.c */
struct store;
int log_anchor_compare(struct store *store, const struct anchor_file_end *end, bool *ahead,
                       struct err *err);

#endif
