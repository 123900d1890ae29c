/* The conformance suite on the SQLite store. */
#include "conformance.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void make(char *where, size_t cap)
{
    char folder[] = "/tmp/perdura-conformance-XXXXXX";

    assert_non_null(mkdtemp(folder));
    snprintf(where, cap, "%s/p.db", folder);
}

static void drop(const char *where)
{
    static const char *const beside[] = {"", "-wal", "-shm", "-lock", "-ballast", ".tmp"};
    char name[WHERE_BYTES + 16];

    for (size_t i = 0; i < sizeof beside / sizeof beside[0]; i++) {
        snprintf(name, sizeof name, "%s%s", where, beside[i]);
        unlink(name);
    }
    snprintf(name, sizeof name, "%s", where);
    *strrchr(name, '/') = '\0';
    rmdir(name);
}

static void harm(const char *where)
{
    sqlite3 *db = NULL;

    assert_int_equal(sqlite3_open(where, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "DELETE FROM task_specs WHERE task = "
                                      "(SELECT min(task) FROM task_specs)", NULL, NULL, NULL),
                     SQLITE_OK);
    sqlite3_close(db);
}

int main(void)
{
    static const struct conformance_kind sqlite = {"sqlite", make, drop, harm, true, false};
    static const struct conformance_kind sealed = {"sqlite, encrypted", make, drop, harm, true,
                                                   true};

    return conformance_run(&sqlite) + conformance_run(&sealed);
}
