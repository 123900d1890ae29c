#include "store/migration_list.h"

#include <stdio.h>

#define ID_LEN 4

/* 0001_name.up.sql below the folder; NULL for any other file. */
static const char *name_below(const char *folder, const struct embedded *file)
{
    const char *name = file->name + strlen(folder);

    if (strncmp(file->name, folder, strlen(folder)) != 0 || !strstr(name, ".up.sql") ||
        strspn(name, "0123456789") != ID_LEN || name[ID_LEN] != '_')
        return NULL;
    return name;
}

static void fill(const char *folder, const struct embedded *file, struct migration *migration)
{
    const char *name = name_below(folder, file);
    int len = (int)(strstr(name, ".up.sql") - name);
    char down[160];

    migration->up = file;
    migration->checksum = file->sha256;
    snprintf(migration->id, sizeof migration->id, "%.*s", ID_LEN, name);
    snprintf(migration->description, sizeof migration->description, "%.*s", len - ID_LEN - 1,
             name + ID_LEN + 1);
    for (char *at = migration->description; *at; at++)
        *at = *at == '_' ? ' ' : *at;
    snprintf(down, sizeof down, "%s%.*s.down.sql", folder, len, name);
    migration->down = embedded_find(down);
}

/* The known migration after (or, with -1, before) the one whose id is given; embedded files may
 * come in any order. */
bool migration_neighbour(const char *folder, const char *id, int direction,
                         struct migration *found)
{
    const struct embedded *best = NULL;
    const char *best_name = NULL;

    for (const struct embedded *file = embedded_files; file->name; file++) {
        const char *name = name_below(folder, file);

        if (!name || strncmp(name, id, ID_LEN) * direction <= 0 ||
            (best && strncmp(name, best_name, ID_LEN) * direction >= 0))
            continue;
        best = file;
        best_name = name;
    }
    if (best)
        fill(folder, best, found);
    return best != NULL;
}

bool migration_find(const char *folder, struct str id, struct migration *found)
{
    for (const struct embedded *file = embedded_files; file->name; file++) {
        const char *name = name_below(folder, file);

        if (name && str_eq(id, str_span(name, ID_LEN))) {
            fill(folder, file, found);
            return true;
        }
    }
    return false;
}

int migration_rows(const char *folder, const struct migration_row *applied, uint32_t applied_count,
                   struct arena *arena, struct migration_row **rows, uint32_t *count,
                   struct err *err)
{
    struct migration known = {.id = ""};
    uint32_t at = 0;
    bool more;

    *count = 0;
    *rows = arena_alloc_array(arena, 2 * MIGRATIONS_MAX, sizeof **rows);
    if (!*rows || arena->failed)
        return err_set(err, ERR_MEMORY, "out of memory for the list of migrations");
    more = migration_neighbour(folder, "", 1, &known);
    while (more || at < applied_count) {
        int order = !more ? 1 : at == applied_count ? -1 : str_compare(str_of(known.id),
                                                                       applied[at].id);
        struct migration_row *row = &(*rows)[(*count)++];

        *row = order >= 0 ? applied[at++] : (struct migration_row){0};
        row->differs = order > 0 || (order == 0 && !str_is(row->checksum, known.checksum));
        if (order <= 0) {
            row->id = arena_str(arena, str_of(known.id));
            row->description = arena_str(arena, str_of(known.description));
            row->checksum = arena_str(arena, str_of(known.checksum));
            if (!row->checksum.data)
                return err_set(err, ERR_MEMORY, "out of memory for the list of migrations");
            more = migration_neighbour(folder, known.id, 1, &known);
        }
    }
    return 0;
}

int migration_check(const char *folder, const struct migration_row *rows, uint32_t count,
                    struct err *err)
{
    struct migration last = {.id = "0000"};

    migration_neighbour(folder, "~", -1, &last);
    for (uint32_t i = count; i > 0; i--) {
        const struct migration_row *row = &rows[i - 1];
        struct migration known;

        if (!row->differs)
            continue;
        if (str_compare(row->id, str_of(last.id)) > 0)
            return err_set(err, ERR_CONFLICT, "the store has schema version " STR_FMT ", this "
                           "program knows up to %s: use a newer perdura", STR_ARG(row->id),
                           last.id);
        if (!migration_find(folder, row->id, &known))
            return err_set(err, ERR_CONFLICT, "the store has migration " STR_FMT " (" STR_FMT
                           "), which this program does not know: use the perdura that made it",
                           STR_ARG(row->id), STR_ARG(row->description));
        return err_set(err, ERR_CONFLICT, "migration " STR_FMT " was applied to the store with "
                       "another content than this program has: use the perdura that made it, or "
                       "restore a backup", STR_ARG(row->id));
    }
    return 0;
}

bool migration_next(const char *folder, const struct migration_row *rows, uint32_t count, bool up,
                    struct migration *migration)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct migration_row *row = &rows[up ? i : count - 1 - i];

        if ((row->executed_at_us == 0) == up)
            return migration_find(folder, row->id, migration);
    }
    return false;
}
