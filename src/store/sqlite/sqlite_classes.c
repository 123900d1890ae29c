#include "store/sqlite/sqlite_classes.h"

#include "core/seal/envelope.h"
#include "store/sqlite/sqlite_row.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct statement_classes {
    sqlite3_stmt *stmt;
    int count;
    struct {
        uint8_t class;  /* SQLITE_INTEGER …; 0 = any */
        uint8_t behind; /* so many columns are NULL where this one is */
    } columns[];
};

/* 0 for computed columns, and for REAL, which also accepts whole numbers. */
static uint8_t class_of(const char *declared)
{
    static const struct {
        const char *word;
        uint8_t class;
    } words[] = {{"INTEGER", SQLITE_INTEGER}, {"TEXT", SQLITE_TEXT}, {"BLOB", SQLITE_BLOB}};

    for (size_t i = 0; declared && i < sizeof words / sizeof words[0]; i++)
        if (strcasecmp(declared, words[i].word) == 0)
            return words[i].class;
    return 0;
}

static bool follow(sqlite3_stmt *stmt, int at, const struct field *fields, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const char *name = sqlite3_column_name(stmt, at + 1 + (int)i); /* NULL behind the last */

        if (!name || strcmp(name, fields[i].name) != 0)
            return false;
    }
    return true;
}

/* The key of a rare row stands before the columns of that row. Most tasks have none: then the join
 * brings only NULL, and half of the columns of a task need no look. */
static uint8_t columns_behind(sqlite3_stmt *stmt, int at)
{
    const char *name = sqlite3_column_name(stmt, at);

    if (name && strcmp(name, "details") == 0 && follow(stmt, at, SQLITE_DETAILS))
        return TASK_STATES_DETAILS;
    if (name && strcmp(name, "options") == 0 && follow(stmt, at, SQLITE_OPTIONS))
        return TASK_SPECS_OPTIONS;
    return 0;
}

static size_t slot_of(const sqlite3_stmt *stmt)
{
    return (size_t)((uintptr_t)stmt >> 4) * 2654435761u % CLASSES_SLOTS;
}

static struct statement_classes *classes_new(sqlite3_stmt *stmt, bool judges, struct err *err)
{
    int count = judges ? 0 : sqlite3_column_count(stmt);
    struct statement_classes *made = malloc(sizeof *made + (size_t)count * sizeof *made->columns);

    if (!made) {
        err_set(err, ERR_MEMORY, "out of memory for a statement");
        return NULL;
    }
    made->stmt = stmt;
    made->count = count;
    for (int i = 0; i < count; i++) {
        made->columns[i].class = class_of(sqlite3_column_decltype(stmt, i));
        made->columns[i].behind = columns_behind(stmt, i);
    }
    return made;
}

int classes_add(struct sqlite_classes *classes, sqlite3_stmt *stmt, bool judges, struct err *err)
{
    struct statement_classes *added = classes_new(stmt, judges, err);
    size_t slot = slot_of(stmt), tries = 0;

    if (!added)
        return -(int)err->code;
    while (classes->slots[slot]) {
        slot = (slot + 1) % CLASSES_SLOTS;
        ASSERT(++tries < CLASSES_SLOTS);
    }
    classes->slots[slot] = added;
    return 0;
}

void classes_forget(struct sqlite_classes *classes)
{
    free(classes->passing);
    classes->passing = NULL;
}

/* NULL: out of memory. */
static const struct statement_classes *find(struct sqlite_classes *classes, sqlite3_stmt *stmt,
                                            struct err *err)
{
    size_t slot = slot_of(stmt);

    for (; classes->slots[slot]; slot = (slot + 1) % CLASSES_SLOTS)
        if (classes->slots[slot]->stmt == stmt)
            return classes->slots[slot];
    if (!classes->passing || classes->passing->stmt != stmt) {
        classes_forget(classes);
        classes->passing = classes_new(stmt, false, err);
    }
    return classes->passing;
}

/* As bind_body keeps encrypted texts; with one changed byte it is for the layer that opens them to
 * say that it is damaged. */
static bool is_packed(sqlite3_stmt *stmt, int at)
{
    const char *bytes = sqlite3_column_blob(stmt, at);
    size_t same = 0;

    if ((size_t)sqlite3_column_bytes(stmt, at) < sizeof ENVELOPE_MARK)
        return false;
    for (size_t i = 0; i + 1 < sizeof ENVELOPE_MARK; i++)
        same += bytes[i] == ENVELOPE_MARK[i];
    return same + 2 >= sizeof ENVELOPE_MARK;
}

int classes_check(struct sqlite_classes *classes, sqlite3_stmt *stmt, struct err *err)
{
    const struct statement_classes *found = find(classes, stmt, err);

    if (!found)
        return -(int)err->code;
    for (int i = 0; i < found->count; i++) {
        int wanted = found->columns[i].class;
        int class = wanted ? sqlite3_column_type(stmt, i) : SQLITE_NULL;

        if (class == SQLITE_NULL && wanted)
            i += found->columns[i].behind;
        else if (class == SQLITE_BLOB && wanted == SQLITE_TEXT && is_packed(stmt, i))
            continue;
        else if (class != SQLITE_NULL && class != wanted)
            return err_set(err, ERR_STORAGE_READ, "a value of the store is not of the class of its "
                           "column (%.60s, which is %s); run 'perdura verify' and look who writes "
                           "to the store", sqlite3_column_name(stmt, i),
                           sqlite3_column_decltype(stmt, i));
    }
    return 0;
}

void classes_deinit(struct sqlite_classes *classes)
{
    for (size_t i = 0; i < CLASSES_SLOTS; i++) {
        free(classes->slots[i]);
        classes->slots[i] = NULL;
    }
    classes_forget(classes);
}
