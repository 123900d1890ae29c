/* Looks through the names of the zones of this machine for the one that was meant. Names are
 * compared without regard to case, with '_' for spaces, and by their last part alone where only
 * that was typed ("paris"). The server may know other zones: this is a hint, never a decision.
 * One thread. */
#include "cli/plans/zone_hint.h"

#include <ctype.h>
#include <dirent.h>
#include <stdlib.h>

#include "calendar/zone.h"
#include "cli/frame/suggest.h"

#define NAMES_MAX 5000 /* there are about 600 */
#define DEPTH_MAX 3    /* America/Argentina/Salta */
#define PATH_BYTES 4096
#define ENTRY_BYTES 256 /* of one name in a folder */
#define PART_BYTES_MIN 5 /* shorter words are near to too many places: CEST and Australia/West */

struct search {
    char typed[ZONE_NAME_BYTES_MAX + 1];
    bool has_folder; /* a slash was typed */
    struct suggest suggest;
    char best[ZONE_NAME_BYTES_MAX + 1];
    uint32_t names;
};

static void lower_copy(char *to, struct str from)
{
    for (size_t i = 0; i < from.len; i++)
        to[i] = from.data[i] == ' ' ? '_' : (char)tolower((unsigned char)from.data[i]);
    to[from.len] = '\0';
}

static void offer(struct search *search, const char *name)
{
    uint32_t before = search->suggest.distance;
    char lower[ZONE_NAME_BYTES_MAX + 1];
    const char *word = lower;
    const char *slash;

    if (strlen(name) > ZONE_NAME_BYTES_MAX || ++search->names > NAMES_MAX)
        return;
    lower_copy(lower, str_of(name));
    slash = strrchr(lower, '/');
    if (slash && !search->has_folder)
        word = slash + 1;
    if (word != lower && strlen(search->typed) < PART_BYTES_MIN && strcmp(word, search->typed) != 0)
        return;
    suggest_offer(&search->suggest, word);
    if (search->suggest.distance < before)
        snprintf(search->best, sizeof search->best, "%s", name);
}

/* Names of zones begin with a capital; posixrules, tzdata.zi, right/… are something else. */
static int is_zone(const struct dirent *entry)
{
    return isupper((unsigned char)entry->d_name[0]) && !strchr(entry->d_name, '.') &&
           strlen(entry->d_name) < ENTRY_BYTES;
}

/* In the order of their names, so that the hint is the same everywhere. */
static void walk(struct search *search, const char *folder, const char *before, int depth)
{
    struct dirent **entries;
    int count = scandir(folder, &entries, is_zone, alphasort);

    for (int i = 0; i < count; i++) {
        char path[PATH_BYTES];
        char name[ENTRY_BYTES * DEPTH_MAX];
        int path_len = snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
        int name_len = snprintf(name, sizeof name, "%s%s", before, entries[i]->d_name);

        if (entries[i]->d_type == DT_DIR && depth < DEPTH_MAX && path_len < PATH_BYTES - 1 &&
            name_len < (int)sizeof name - 1) {
            name[name_len] = '/';
            name[name_len + 1] = '\0';
            walk(search, path, name, depth + 1);
        } else if (entries[i]->d_type != DT_DIR) {
            offer(search, name);
        }
        free(entries[i]);
    }
    if (count >= 0)
        free(entries);
}

/* What stands between quotes behind the words with which the calendar refuses a zone. */
static bool find_typed(const struct err *err, struct search *search)
{
    static const char words[] = "there is no time zone \"";
    const char *from = strstr(err->text, words);
    const char *end;
    struct str typed;

    if (!from)
        return false;
    from += sizeof words - 1;
    end = strchr(from, '"');
    if (!end || end == from || end - from > ZONE_NAME_BYTES_MAX)
        return false;
    typed = str_span(from, (size_t)(end - from));
    lower_copy(search->typed, typed);
    search->has_folder = memchr(typed.data, '/', typed.len) != NULL;
    return strpbrk(search->typed, "0123456789+") == NULL; /* "UTC+3" means none of them */
}

void zone_hint_add(struct err *err)
{
    struct search search = {.names = 0};
    char folder[PATH_BYTES];
    size_t len;

    if (!find_typed(err, &search) || !zone_file_path(NULL, STR("UTC"), folder, sizeof folder))
        return;
    *strrchr(folder, '/') = '\0';
    suggest_init(&search.suggest, str_of(search.typed));
    walk(&search, folder, "", 1);
    len = strlen(err->text);
    if (search.best[0])
        snprintf(err->text + len, sizeof err->text - len, "; did you mean '%s'?", search.best);
}
