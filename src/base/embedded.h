/* Files built into the program (SQL, OpenAPI, man texts), by their path below src/. */
#ifndef BASE_EMBEDDED_H
#define BASE_EMBEDDED_H

#include "base/str.h"

struct embedded {
    const char *name;
    const char *data; /* NUL-terminated behind len */
    size_t len;
    const char *sha256; /* of the file, in hex */
};

extern const struct embedded embedded_files[]; /* ends with a NULL name, sorted by path */

const struct embedded *embedded_find(const char *name); /* NULL when there is none */
/* The text after "-- name: NAME" up to the next such line, in any file of the folder. */
struct str embedded_statement(const char *folder, const char *name);

#endif
