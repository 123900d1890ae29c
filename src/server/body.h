/* Members of a request body by a table of names: what is unknown is refused with its name, null
 * counts as absent. Values are slices of the body and live as long as it does, unless a function
 * says that it copies. Pure, any thread. */
#ifndef SERVER_BODY_H
#define SERVER_BODY_H

#include "base/arena.h"
#include "base/err.h"
#include "base/json.h"

struct body_field {
    const char *name;
    struct str value; /* its JSON, or absent */
    bool is_null;     /* it was there, and null */
};

/* object was accepted by json_check. -ERR_INVALID when it is no object or has unknown members. */
int body_parse(struct str object, struct body_field *fields, size_t count, struct err *err);

/* Each leaves *out as it is when the field is absent. */
int body_text(const struct body_field *field, size_t bytes_max, struct arena *arena,
              struct str *out, struct err *err);
int body_int(const struct body_field *field, int64_t min, int64_t max, int64_t *out,
             struct err *err);
int body_bool(const struct body_field *field, bool *out, struct err *err);
/* An array of texts; they are copied when `copy`, so that the body may go. */
int body_texts(const struct body_field *field, uint32_t count_max, size_t bytes_max, bool copy,
               struct arena *arena, const struct str **out, uint32_t *count, struct err *err);
/* Text that is not empty, no longer than bytes_max and without control characters. */
int body_check_name(const char *field, struct str text, size_t bytes_max, struct err *err);

#endif
