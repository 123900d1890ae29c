/* Searching for tasks by words, as users type them: each must occur in its name, its type,
 * its queue, its tags or one of its ids, whatever the case of ASCII letters. Pure. */
#ifndef CORE_TASK_SEARCH_H
#define CORE_TASK_SEARCH_H

#include "base/err.h"
#include "base/str.h"

#define SEARCH_WORDS_MAX 16

struct task;

/* The words lie in the text they were parsed from. */
struct search {
    struct str words[SEARCH_WORDS_MAX];
    uint32_t count; /* 0 = everything fits */
};

/* Blanks separate words, but not between double quotes; false when there are too many. A part of a
 * word is found anyway, so a '*' at either end of one says nothing, unless it is quoted. */
bool search_parse(struct search *search, struct str text);
bool search_fits(const struct search *search, const struct task *task);

/* It begins or ends with '*', as people write patterns. */
bool search_is_pattern(struct str value);

/* A filter compares whole values. One that is written like a pattern would fit nothing: it is
 * refused, unless it stands in double quotes, which are taken off then. */
int search_read_exact(const char *field, struct str *value, struct err *err);

#endif
