/* The database of a PostgreSQL store: its place, schema and timeline, and the checks of the whole
 * store. */
#ifndef STORE_POSTGRES_PG_CHECK_H
#define STORE_POSTGRES_PG_CHECK_H

#include "store/postgres/pg_int.h"

/* pg_timeline.c */
int timeline_follow(struct pg_store *store, struct err *err);
/* pg_verify.c */
extern const struct check_verbs pg_check_verbs;
int pg_verify(struct store *, void (*)(void *, const char *), void *, int64_t *, struct err *);
int pg_backup(struct store_reader *, const char *, void (*)(void *, int64_t, int64_t), void *,
              struct err *);
/* pg_check.c */
int pg_check(struct store *, struct err *);
int pg_check_indexes(struct pg_store *store, bool of_logs,
                     void (*tell)(void *ctx, const char *line), void *ctx, struct err *err);
/* pg_schema.c: refuses a schema that differs from ours (ERR_CONFLICT, field "schema"). The check
 * inside transactions returns ERR_STORAGE instead. */
int pg_schema_check(struct pg_store *store, struct err *err);
/* Names of parts of the schema that our migrations did not make, and of tables elsewhere that refer
 * to ours. */
int pg_schema_others(struct pg_store *store, struct arena *arena, struct str **names,
                     uint32_t *count, struct err *err);
int pg_schema_follow(struct pg_store *store, struct err *err);
/* pg_share.c: gives access.sql_role what it lacks. *shared: it got something. */
int pg_share(struct pg_store *store, bool *shared, struct err *err);
/* pg_doctor.c */
int pg_inspect(struct store *, store_tell *, void *, struct err *);
/* pg_place.c */
#define PG_SCHEMA_BYTES 64
/* The URL for libpq, which the caller frees, and the schema, which is empty where the URL's options
 * or the role set it. */
int pg_place(struct str where, bool pooler, char **place, char schema[PG_SCHEMA_BYTES],
             struct err *err);
int pg_place_make(struct pg_conn *conn, const char *schema, struct err *err);
/* Refuses a search path on which there is no store, while there is one in the usual place. */
int pg_place_found(struct pg_conn *conn, struct err *err);
/* pg_migrate.c */
int pg_migrate_hold(struct pg_conn *conn, struct err *err); /* keeps others from migrating down */
#define PG_USE_KEY "72981703, hashtext(current_schema())" /* all that use the store share it */
/* pg_copy.c */
void pg_copy_texts_free(struct pg_copy_texts *texts);

#endif
