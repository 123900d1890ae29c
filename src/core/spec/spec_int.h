/* What the files of core/spec share; no other file includes it. Pure, any thread. */
#ifndef CORE_SPEC_SPEC_INT_H
#define CORE_SPEC_SPEC_INT_H

#include "base/json.h"
#include "core/bounds.h"
#include "core/spec/spec.h"

#define SPEC_HASH_FIELDS_MAX 32 /* a key of more parts than this is the whole payload */

/* Text of one line: 1 to max bytes without control characters. */
int spec_check_text(struct str text, size_t max, const char *field, struct err *err);
/* The same for a queue's name, which is part of a path and so has no slash either. */
int spec_check_queue(struct str name, struct err *err);
/* Names that requests bring are no patterns; a store may have such names from before. */
int spec_check_no_pattern(struct str name, const char *field, struct err *err);
int spec_check_new_queue(struct str name, struct err *err);
/* ERR_TOO_LARGE when a JSON value is longer than max bytes. */
int spec_check_bytes(struct str json, size_t max, const char *field, struct err *err);
/* http or https, with a host and without user or password. */
int spec_check_url(struct str url, const char *field, struct err *err);

/* A string value, decoded; ERR_INVALID when it is another kind. */
int spec_read_string(struct str value, const char *field, struct arena *arena, struct str *text,
                     struct err *err);
/* A whole number from min to max. */
int spec_read_number(struct str value, const char *field, int64_t min, int64_t max, int64_t *to,
                     struct err *err);
/* RFC 3339, 1970 to 9999; never 0, which says that none was given. */
int spec_read_time(struct str value, const char *field, struct arena *arena, int64_t *to_us,
                   struct err *err);
int spec_read_bool(struct str value, const char *field, bool *to, struct err *err);
int spec_no_memory(struct err *err);

/* The members that are lists. */
int spec_read_tags(struct str value, struct arena *arena, struct task_input *input,
                   struct err *err);
int spec_read_encrypt_fields(struct str value, struct arena *arena, struct task_input *input,
                             struct err *err);
int spec_read_hash_fields(struct str value, struct arena *arena, struct task_input *input,
                          struct err *err);
int spec_read_depends_on(struct str value, struct arena *arena, struct task_input *input,
                         struct err *err);

/* Finds the element behind every ref; refuses refs given twice, unknown ones and cycles. */
int spec_link_refs(struct task_input *inputs, uint32_t count, struct arena *arena,
                   struct err *err);

#endif
