/* JSON objects as tables and records for people: which members are shown, and how, is a table of
 * columns. Absent and null members stay empty. One thread. */
#ifndef CLI_FRAME_VIEW_H
#define CLI_FRAME_VIEW_H

#include "cli/frame/command.h"

enum view_kind {
    VIEW_TEXT,     /* strings without quotes, everything else as JSON; may be cut */
    VIEW_ID,       /* the same, never cut */
    VIEW_NUMBER,
    VIEW_STATUS,   /* in its colour */
    VIEW_EXECUTION, /* the same of an execution: one whose worker gave it back is released */
    VIEW_AGE,      /* a time as how long ago: 5m 03s */
    VIEW_TIME,
    VIEW_DURATION, /* milliseconds */
    VIEW_SECONDS,
    VIEW_WHEN,     /* text as it is, a number as every so many seconds */
    VIEW_PERCENT,
    VIEW_LIST,     /* strings joined by commas */
    VIEW_PATTERNS, /* the same; no list is *, which matches all, an empty one is - */
    VIEW_RATE,
    VIEW_LIMIT,    /* a number or a rate; 0 and null as no limit */
    VIEW_OFF,      /* milliseconds; 0 and null as off */
    VIEW_COUNT,    /* a number; 0 as nothing */
    VIEW_SETTER,   /* who set another value: a word of value_from */
    VIEW_YES,      /* true as yes, false as nothing */
    VIEW_ACTIVE,   /* the same, and deleted for the time of that */
    VIEW_BOOL,     /* yes or no */
    VIEW_KINDS = 255
};

/* Added to a kind: on a terminal left out where it is empty or there is no room, greater ones
 * first. */
#define VIEW_SPARE(rank) ((unsigned)(rank) << 8)

struct view_column {
    const char *title;
    const char *pointer; /* JSON pointer into the object; of "/a|/b" the first that is there */
    unsigned kind; /* enum view_kind, with VIEW_SPARE */
};

#define COUNT(array) (uint32_t)(sizeof(array) / sizeof(array)[0])
#define COLUMNS(array) (array), COUNT(array)

/* One row per element of items (an array of objects). */
void view_table(struct call *call, struct str items, const struct view_column *columns,
                uint32_t columns_count);
/* A further page: without titles, except on a terminal, where it may have other columns. */
void view_table_page(struct call *call, struct str items, const struct view_column *columns,
                     uint32_t columns_count);
/* One line per member that is there. */
void view_record(struct call *call, struct str object, const struct view_column *columns,
                 uint32_t columns_count);
/* Every leaf of a value as "path  value". */
void view_leaves(struct call *call, struct str value);

/* A string member of an object, decoded; STR_NONE when absent or of another kind. */
struct str view_member(struct call *call, struct str object, const char *key);
/* The array behind "items", or an empty one. */
struct str view_items(struct str reply);
enum colour view_status_colour(struct str status);

#endif
