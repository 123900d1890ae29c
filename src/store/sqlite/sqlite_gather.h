/* Writes of the log gathered: SQLite writes a frame as 24 bytes and a page, so a commit of five
 * pages is ten system calls, and the sync after them costs more than after one. Here they become
 * one write, at the sync. Only the log of the one writing connection: everything else goes to the
 * VFS that was the default before. Needs synchronous=FULL, where no commit is seen by others before
 * its sync. One thread, the writer's. */
#ifndef STORE_SQLITE_SQLITE_GATHER_H
#define STORE_SQLITE_SQLITE_GATHER_H

#include <sqlite3.h>
#include <stdbool.h>

struct gather_file;

struct gather {
    sqlite3_vfs vfs;
    sqlite3_vfs *below;
    struct gather_file *log; /* while it is open */
    char name[40]; /* every store registers its own */
    bool passes;   /* nothing is gathered: where a write may harm its neighbours, SQLite fills the
                    * log up to a whole sector behind the sync of a commit */
};

int gather_install(struct gather *gather); /* an SQLite code */
void gather_remove(struct gather *gather); /* after the connection was closed */
/* After a rollback: what was gathered of it must never reach the file, where others may have
 * written since. */
void gather_drop(struct gather *gather);

#endif
