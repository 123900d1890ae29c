/* Crontabs, as cron reads them: variables, entries of the user's and of the system's form, % and
 * its escape, the forms with @. Turns the text of one into lines, each accepted, or refused with
 * the reason. The importer decides what to do with them. Pure, any thread. */
#ifndef CORE_PLAN_CRONTAB_H
#define CORE_PLAN_CRONTAB_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

#define CRONTAB_BYTES_MAX (1024 * 1024)
#define CRONTAB_LINES_MAX 10000   /* lines that say something */
#define CRONTAB_VARIABLES_MAX 256 /* settings in one file; each entry below sees them */
#define CRONTAB_EVERY_S_MAX (INT64_C(366) * 86400)

struct crontab_variable {
    struct str name;
    struct str value;
};

enum crontab_kind { CRONTAB_ENTRY, CRONTAB_VARIABLE, CRONTAB_REFUSED };

/* Texts point into the crontab or the arena; absent ones are STR_NONE. */
struct crontab_line {
    enum crontab_kind kind;
    uint32_t number; /* from 1 */
    struct str text; /* as written, without the white space around it */
    struct str reason; /* refused: why */

    struct str name;  /* variable */
    struct str value;

    struct str expression; /* entry: five fields with single blanks, or @daily */
    int64_t every_s;       /* of @every; then there is no expression */
    struct str user;       /* of the system's form */
    struct str command;    /* up to the first %, \% as % */
    struct str input;      /* what follows it, % as line ends, and one at its end */
    const struct crontab_variable *variables; /* in force: set above it, the last one holds */
    uint32_t variables_count;
};

struct crontab {
    struct crontab_line *lines; /* without comments and empty ones */
    uint32_t count;
};

/* ERR_TOO_LARGE or ERR_MEMORY; whatever stands in a line refuses only that line. */
int crontab_parse(struct str text, bool system_form, struct arena *arena, struct crontab *crontab,
                  struct err *err);

/* The value of a variable in force for an entry, or STR_NONE. */
struct str crontab_variable_get(const struct crontab_line *entry, const char *name);

/* By where it lies: /etc/crontab and what is in a folder cron.d have the system's form; a file
 * below spool/cron belongs to the user of its name (else STR_NONE). path is absolute. */
bool crontab_path_is_system(struct str path);
struct str crontab_path_user(struct str path);

/* "@every 5m", "@every 1h30m": whole seconds, up to a year. */
int crontab_every_parse(struct str text, int64_t *every_s, struct err *err);

#endif
