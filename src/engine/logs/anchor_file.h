/* The anchor file: signed records about logs as JSON lines, appended only. Kept where
 * the store's administrator cannot write, it shows every later change (F-J6, F-J7). */
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

/* Refused when the folder of the file is not there: the thread that appends cannot make it. */
int anchor_file_check_folder(const char *path, struct err *err);
/* A file that is not there has no records. */
int anchor_file_end(const char *path, struct anchor_file_end *end, struct err *err);
/* Makes it if it is not there; what a crash left of a last line is cut off or ended. */
int anchor_file_append(const char *path, struct str lines, bool torn, struct err *err);
int anchor_file_read(const char *path, void (*line)(void *ctx, struct str line), void *ctx,
                     struct err *err);

/* Has the file (its end) a record that the store lacks or has otherwise? anchor_export.c */
struct store;
int log_anchor_compare(struct store *store, const struct anchor_file_end *end, bool *ahead,
                       struct err *err);

#endif
