/* Parameters of one statement in PostgreSQL's binary format: single values, and arrays for
 * statements over many rows (unnest). The bytes of a call lie in one buffer, which the next call
 * uses again. Appending never returns an error: check bytes.failed once before sending. */
#ifndef STORE_POSTGRES_PG_PARAMS_H
#define STORE_POSTGRES_PG_PARAMS_H

#include "base/buf.h"
#include "base/uuid7.h"

#include <libpq-fe.h>

#define PG_PARAMS_MAX 64
#define PG_EPOCH_US INT64_C(946684800000000) /* 2000-01-01, where timestamptz begins */

/* Object ids of the types we use; they are part of the protocol and never change. */
enum {
    PG_OID_BOOL = 16,
    PG_OID_INT8 = 20,
    PG_OID_TEXT = 25,
    PG_OID_TIME = 1184,
    PG_OID_UUID = 2950
};

struct pg_params {
    struct buf bytes;
    size_t starts[PG_PARAMS_MAX];
    int lens[PG_PARAMS_MAX]; /* -1 = NULL */
    Oid types[PG_PARAMS_MAX];
    int count;
    size_t array_at;  /* the open array: offset of its header */
    uint32_t elements;
    bool any_null;
};

void params_init(struct pg_params *params);
void params_deinit(struct pg_params *params);
void params_reset(struct pg_params *params); /* for the next call */

void param_int(struct pg_params *params, int64_t value);
void param_bool(struct pg_params *params, bool value);
void param_null(struct pg_params *params, Oid type);
void param_time(struct pg_params *params, int64_t us); /* 0 = NULL */
void param_moment(struct pg_params *params, int64_t us); /* 0 is 1970 */
void param_text(struct pg_params *params, struct str text); /* absent = NULL */
void param_uuid(struct pg_params *params, const struct uuid *id); /* nil = NULL */

/* An array: begin, one element after the other, end. */
void array_begin(struct pg_params *params, Oid element_type);
void array_null(struct pg_params *params);
void array_int(struct pg_params *params, int64_t value);
void array_bool(struct pg_params *params, bool value);
void array_time(struct pg_params *params, int64_t us);
void array_text(struct pg_params *params, struct str text);
void array_uuid(struct pg_params *params, const struct uuid *id); /* nil = NULL */
void array_any_uuid(struct pg_params *params, const struct uuid *id); /* nil is itself */
void array_end(struct pg_params *params);

#endif
