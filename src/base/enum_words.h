/* Enums and their words: a table of words per enum, indexed by its values. Any thread. */
#ifndef BASE_ENUM_WORDS_H
#define BASE_ENUM_WORDS_H

#include "base/str.h"

/* The place of the text among the words, or -1. */
static inline int enum_words_find(struct str text, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (str_is(text, words[i]))
            return (int)i;
    return -1;
}

/* NAME_word and NAME_parse of `enum NAME`. An unknown word leaves *value as it is. */
#define ENUM_WORDS(name, words)                                                                    \
    const char *name##_word(enum name value)                                                       \
    {                                                                                              \
        return (words)[value];                                                                     \
    }                                                                                              \
    bool name##_parse(struct str word, enum name *value)                                           \
    {                                                                                              \
        int found = enum_words_find(word, (words), sizeof(words) / sizeof(words)[0]);              \
                                                                                                   \
        if (found >= 0)                                                                            \
            *value = (enum name)found;                                                             \
        return found >= 0;                                                                         \
    }                                                                                              \
    _Static_assert(sizeof(words) > 0, "ends with a semicolon")

#endif
