/* What can go wrong, in one table: code, HTTP status, exit code of the command line, wire word.
 * A function that fails returns a negative code and fills `struct err` once, where it happened. */
#ifndef BASE_ERR_H
#define BASE_ERR_H

#include <stdio.h>
#include <stdlib.h>

#define ERR_TABLE(X)                                                \
    X(ERR_MALFORMED, 400, 1, "malformed")                           \
    X(ERR_UNAUTHORIZED, 401, 1, "unauthorized")                     \
    X(ERR_FORBIDDEN, 403, 1, "forbidden")                           \
    X(ERR_NOT_FOUND, 404, 3, "not_found")                           \
    X(ERR_METHOD, 405, 1, "method_not_allowed")                     \
    X(ERR_REQUEST_TIMEOUT, 408, 1, "request_timeout")               \
    X(ERR_CONFLICT, 409, 1, "conflict")                             \
    X(ERR_STALE_LEASE, 409, 1, "stale_lease")                       \
    X(ERR_VERSION, 409, 1, "version_mismatch")                      \
    X(ERR_TRANSITION, 409, 1, "invalid_transition")                 \
    X(ERR_PRECONDITION, 412, 1, "precondition_failed")              \
    X(ERR_TOO_LARGE, 413, 1, "too_large")                           \
    X(ERR_MEDIA_TYPE, 415, 1, "unsupported_media_type")             \
    X(ERR_INVALID, 422, 1, "invalid")                               \
    X(ERR_RATE, 429, 1, "rate_limited")                             \
    X(ERR_HEADERS_TOO_LARGE, 431, 1, "headers_too_large")           \
    X(ERR_INTERNAL, 500, 1, "internal")                             \
    X(ERR_MEMORY, 503, 1, "out_of_memory")                          \
    X(ERR_STORAGE, 500, 1, "storage_failed")                        \
    X(ERR_STORAGE_READ, 500, 1, "storage_error")                    \
    X(ERR_UNAVAILABLE, 503, 1, "unavailable")                       \
    X(ERR_LOCKED, 503, 1, "locked")                                 \
    X(ERR_STORAGE_FULL, 507, 1, "storage_full")                     \
    X(ERR_USAGE, 400, 2, "usage")                                   \
    X(ERR_IO, 500, 1, "io")

enum err_code {
    ERR_NONE = 0,
#define X(name, http, exit_code, word) name,
    ERR_TABLE(X)
#undef X
        ERR_COUNT
};

struct err {
    enum err_code code;
    char field[80];  /* the request field at fault, or "" */
    char text[512];  /* one sentence that says what to do next */
};

/* Fills err (which may be NULL) and gives the negative code, so that `return err_set(...)`. Macros,
 * so that compilers and analysers see that what comes back is an error. */
#define err_set(err, code, ...)                                  \
    ({                                                           \
        err_record((err), (code), "", __VA_ARGS__);              \
        -(int)(code);                                            \
    })
#define err_set_field(err, code, field, ...)                     \
    ({                                                           \
        err_record((err), (code), (field), __VA_ARGS__);         \
        -(int)(code);                                            \
    })
void err_record(struct err *err, enum err_code code, const char *field, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Goes back to the caller with the negative code of a call that failed and has filled an err. */
#define TRY(call)                      \
    do {                               \
        int failed_with = (call);      \
                                       \
        if (failed_with < 0)           \
            return failed_with;        \
    } while (0)

/* The one sentence about memory that is used up. */
#define err_no_memory(err) \
    err_set((err), ERR_MEMORY, "there is not enough memory; try again")

/* What a call that needs memory gives: a pointer, or whether it went well. Goes back to the caller
 * with ERR_MEMORY when there is none. `err` is the name that every function here has for it. */
#define TRY_MEMORY(call)                      \
    ({                                        \
        __auto_type memory_given = (call);    \
                                              \
        if (!memory_given)                    \
            return err_no_memory(err);        \
        memory_given;                         \
    })

/* Zeroed memory, or NULL and ERR_MEMORY: for functions that give a pointer. */
static inline void *err_calloc(size_t bytes, struct err *err)
{
    void *memory = calloc(1, bytes);

    if (!memory)
        err_no_memory(err);
    return memory;
}

int err_http_status(enum err_code code);
int err_exit_code(enum err_code code);
const char *err_word(enum err_code code);
enum err_code err_from_word(const char *word); /* ERR_INTERNAL when unknown */

/* A bug in the program: always on, also in release builds. */
#define ASSERT(condition)                                                                  \
    do {                                                                                   \
        if (!(condition)) {                                                                \
            fprintf(stderr, "%s:%d: assertion failed: %s\n", __FILE__, __LINE__, #condition); \
            abort();                                                                       \
        }                                                                                  \
    } while (0)

#endif
