#include "store/migration_list.h"

#include <stdio.h>

static bool migration_of(const char *folder, const struct embedded *file,
                         struct migration *migration)
{
    const size_t folder_len = strlen(folder);
    const char *name = file->name + folder_len;
    const char *end;
    char down[160];

    if (strncmp(file->name, folder, folder_len) != 0)
        return false;
    end = strstr(name, ".up.sql");
    if (!end || strspn(name, "0123456789") != 4 || name[4] != '_')
        return false;
    migration->up = file;
    snprintf(migration->id, sizeof migration->id, "%.4s", name);
    snprintf(migration->description, sizeof migration->description, "%.*s",
             (int)(end - name - 5), name + 5);
    for (char *at = migration->description; *at; at++)
        *at = *at == '_' ? ' ' : *at;
    snprintf(down, sizeof down, "%s%.*s.down.sql", folder, (int)(end - name), name);
    migration->down = embedded_find(down);
    return true;
}

/* Only of the one that was looked for: hashes of all are most of what a start costs otherwise. */
static void add_checksum(struct migration *migration)
{
    uint8_t hash[HASH_BYTES];

    migration->checksum[0] = '\0';
    if (hash_sha256(str_span(migration->up->data, migration->up->len), hash) == 0)
        hash_hex(hash, sizeof hash, migration->checksum);
}

/* The known migration after (or, with -1, before) the one whose id is given; embedded files may
 * come in any order. */
bool migration_neighbour(const char *folder, const char *id, int direction,
                         struct migration *found)
{
    bool any = false;

    for (const struct embedded *file = embedded_files; file->name; file++) {
        struct migration one;

        if (!migration_of(folder, file, &one) || strcmp(one.id, id) * direction <= 0)
            continue;
        if (!any || strcmp(one.id, found->id) * direction < 0)
            *found = one;
        any = true;
    }
    if (any)
        add_checksum(found);
    return any;
}

bool migration_find(const char *folder, struct str id, struct migration *found)
{
    for (const struct embedded *file = embedded_files; file->name; file++)
        if (migration_of(folder, file, found) && str_is(id, found->id)) {
            add_checksum(found);
            return true;
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

        if (order <= 0 && !known.checksum[0])
            return err_set(err, ERR_MEMORY, "out of memory for the list of migrations");
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

    migration_neighbour(folder, "9999~", -1, &last);
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
