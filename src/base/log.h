/* Structured logs: a constant event name and pairs. Text on a terminal, JSON lines otherwise,
 * to stderr in one write per line. Never payloads, tokens or personal data. Any thread. */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include "base/str.h"

#include <stdatomic.h>

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };

struct log {
    _Atomic(enum log_level) level; /* may be set at any time */
    bool json;
    bool colour;
    int fd;
};

struct log_pair {
    const char *key;
    struct str text; /* used when is_text */
    int64_t number;
    bool is_text;
};

/* A text that is absent leaves its pair out. */
#define KS(key, value) ((struct log_pair){(key), (value), 0, true})
#define KC(key, value) ((struct log_pair){(key), str_of(value), 0, true})
#define KI(key, value) ((struct log_pair){(key), STR_NONE, (int64_t)(value), false})
#define LOG(log, level, event, ...)                                                         \
    log_write((log), (level), (event),                                                      \
              (const struct log_pair[]){__VA_ARGS__ __VA_OPT__(, ) KI(NULL, 0)})

/* debug, info, warn, error; anything else is info. */
enum log_level log_level_of(struct str word);

/* format: text, json, or auto, which is text on a terminal and JSON otherwise. Colours only on a
 * terminal, and not where NO_COLOR is set. */
void log_init(struct log *log, enum log_level level, struct str format, int fd);
/* pairs end with a NULL key. log may be NULL: nothing is written. */
void log_write(const struct log *log, enum log_level level, const char *event,
               const struct log_pair *pairs);

#endif
