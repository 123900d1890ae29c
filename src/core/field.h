/* Fields of stored structs, each described once: its name, its kind and where the value lies.
 * Tables of them feed the stores, copies, requests, JSON, the library and the command line, so that
 * a new field is a row here and not a line in each of those places. Pure data; any thread. */
#ifndef CORE_FIELD_H
#define CORE_FIELD_H

#include "base/str.h"
#include "base/uuid7.h"

#include <stddef.h>
#include <string.h>

#define FIELD_HASH_BYTES 65

enum field_kind {
    FIELD_INT,      /* int64_t */
    FIELD_TIME,     /* int64_t, microseconds since 1970; 0 = NULL */
    FIELD_BOOL,     /* bool */
    FIELD_TEXT,     /* struct str; absent = NULL */
    FIELD_JSON,     /* struct str that holds JSON; absent = NULL */
    FIELD_UUID,     /* struct uuid; nil = NULL */
    FIELD_WORD,     /* an enum that is stored as its word */
    FIELD_PRIORITY, /* int64_t, stored as the word of a level or as digits */
    FIELD_MARK,     /* bool, stored as one of two words */
    FIELD_ID_TEXT,  /* struct uuid, stored as its text; nil = an empty one */
    FIELD_HASH,     /* char[FIELD_HASH_BYTES] with a hash in hex */
};

enum field_flag {
    FIELD_ALWAYS = 1, /* never NULL: an unknown time is 0, an absent text `otherwise` */
    FIELD_EMPTY = 2,  /* INT, BOOL, WORD: `empty` is stored as NULL */
    FIELD_FILLED = 6, /* the same, but SQLite stores the 0 */
    FIELD_LONG = 8,   /* a text that may be long */
    FIELD_UNREAD = 16, /* SQLite leaves it out of what it loads */
    FIELD_LIST = 32,   /* TEXT: a JSON array, stored as it is written and shown as JSON */
};

struct field_words {
    const char *(*word)(int value); /* NULL = it has none, and is stored as NULL */
    int (*parse)(struct str word);  /* an unknown word gives the value of least effect */
};

/* The words of an enum that has NAME_word and NAME_parse; an unknown word gives `otherwise`. */
#define FIELD_WORDS(type, name, otherwise)                                                         \
    static const char *name##_of_value(int value)                                                  \
    {                                                                                              \
        return name##_word((enum type)value);                                                      \
    }                                                                                              \
    static int name##_of_word(struct str word)                                                     \
    {                                                                                              \
        enum type value = (otherwise);                                                             \
                                                                                                   \
        name##_parse(word, &value);                                                                \
        return (int)value;                                                                         \
    }                                                                                              \
    static const struct field_words name##_words = {name##_of_value, name##_of_word}

struct field {
    const char *name; /* the column, and the member in JSON */
    enum field_kind kind;
    unsigned flags;
    uint16_t offset;
    uint16_t has; /* of the bool that says whether there is a value; 0 = there always is */
    int64_t empty;
    const char *otherwise;
    const struct field_words *words;
};

/* The value of a field of the kinds INT, TIME, BOOL, MARK, WORD and PRIORITY. `at` is its place. */
static inline int64_t field_number(const struct field *field, const void *at)
{
    int word;

    switch (field->kind) {
    case FIELD_BOOL:
    case FIELD_MARK:
        return *(const bool *)at;
    case FIELD_WORD:
        memcpy(&word, at, sizeof word);
        return word;
    default:
        return *(const int64_t *)at;
    }
}

/* The fields of one stored struct. `alias` is the letter under which statements name its table. */
struct field_table {
    const char *name;
    const char *alias;
    const struct field *fields;
    uint32_t count;
    size_t bytes; /* of the struct */
};

/* A row of the lists from which tables are made: column, member, kind, flags, and what else the
 * field has by its name. */
#define FIELD_ROW(type, column, member, kind_name, flag_bits, ...)                                 \
    {.name = #column, .kind = FIELD_##kind_name, .flags = (flag_bits),                             \
     .offset = (uint16_t)offsetof(struct type, member), ##__VA_ARGS__}
#define FIELD_TABLE(type, word, letter, list)                                                      \
    {.name = (word), .alias = (letter), .fields = (list),                                          \
     .count = (uint32_t)(sizeof(list) / sizeof(list)[0]), .bytes = sizeof(struct type)}

#endif
