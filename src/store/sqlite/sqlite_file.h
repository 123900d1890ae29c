/* The file of an SQLite store: opening, locking, its schema, checks of the whole file, and
 * copies. */
#ifndef STORE_SQLITE_SQLITE_FILE_H
#define STORE_SQLITE_SQLITE_FILE_H

#include "store/sqlite/sqlite_int.h"

/* sqlite_open.c */
void sqlite_store_own_process(void);
int sqlite_store_open(struct store **store, struct str path, const struct store_options *options,
                      struct err *err);
/* vfs: NULL = the default */
int sqlite_db_open(const char *path, bool write, const char *vfs, sqlite3 **db, struct err *err);
int sqlite_file_lock(const char *path, int *lock_fd, struct err *err); /* who holds it, in err */
void sqlite_file_unlock(int lock_fd);
/* Names of tables, views and triggers in the file that our migrations did not make. */
int sqlite_schema_others(sqlite3 *db, struct arena *arena, struct str **names, uint32_t *count,
                         struct err *err);
/* Reports values whose class is not their column's, in all our tables, until `tell` returns that it
 * has enough. */
int sqlite_verify_classes(struct sqlite_sql *sql, bool (*tell)(void *ctx, const char *line),
                          void *ctx, struct err *err);
int sqlite_inspect(struct store *base, store_tell *tell, void *ctx, struct err *err);
/* sqlite_verify.c */
extern const struct check_verbs sqlite_check_verbs;
int sqlite_verify(struct store *, void (*)(void *, const char *), void *, int64_t *, struct err *);
/* sqlite_backup.c */
int sqlite_backup(struct store_reader *, const char *, void (*)(void *, int64_t, int64_t), void *,
                  struct err *);
/* sqlite_migrate.c */
int sqlite_has_table(sqlite3 *db, const char *name, bool *has, struct err *err);
/* sqlite_ballast.c: space set aside, so that running tasks can end on a full disk (F-D1) */
void sqlite_ballast_take(struct sqlite_store *store);    /* tries; success ends full mode */
void sqlite_ballast_release(struct sqlite_store *store);

#endif
