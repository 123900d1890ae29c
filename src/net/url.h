/* Percent-decoding of path segments and query parameters. Strict: a bad escape, NUL or bytes that
 * are not UTF-8 are refused (ERR_MALFORMED), never passed on. Results live in the arena, or in the
 * raw text where there was nothing to decode. Pure, any thread. */
#ifndef NET_URL_H
#define NET_URL_H

#include "base/arena.h"
#include "base/err.h"

#define URL_PARAMETERS_MAX 64 /* no route has more than 20 filters */

/* Decodes one path segment (`%2F` becomes a slash inside it, `+` stays a plus). */
int url_decode_segment(struct str raw, struct arena *arena, struct str *out, struct err *err);

/* Takes the next raw segment off *path ("/v1/tasks" gives "v1", then "tasks"); false at the end.
 * A slash at the end gives one last empty segment. */
bool url_next_segment(struct str *path, struct str *segment);

struct url_query {
    struct str rest;
    uint32_t seen_count;
};

static inline struct url_query url_query_of(struct str query)
{
    return (struct url_query){query, 0};
}

/* 1: name and value are set (a parameter without "=" has an absent value, data NULL);
 * 0: no more; negative: malformed or more than URL_PARAMETERS_MAX. Empty pieces are skipped. */
int url_query_next(struct url_query *query, struct arena *arena, struct str *name,
                   struct str *value, struct err *err);

#endif
