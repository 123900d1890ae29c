/* Gathers writes of the log. SQLite writes a frame as 24 bytes and a page, so a commit of five
 * pages is ten system calls, and a sync after ten writes costs more than after one. Here they
 * become one write at the sync. Only for the log of the writing connection: all else passes through
 * to the previous default VFS. Requires synchronous=FULL, where no other connection sees a commit
 * before its sync. One thread, the writer's. */
#ifndef STORE_SQLITE_SQLITE_GATHER_H
#define STORE_SQLITE_SQLITE_GATHER_H

#include <sqlite3.h>
#include <stdbool.h>

struct gather_file;

struct gather {
    sqlite3_vfs vfs;
    sqlite3_vfs *below;
    struct gather_file *log; /* while it is open */
    char name[40]; /* each store registers its own */
    bool passes;   /* gathers nothing: where a write may damage its neighbours, SQLite pads the log
                    * to a whole sector after the sync of a commit */
};

int gather_install(struct gather *gather); /* an SQLite code */
void gather_remove(struct gather *gather); /* after the connection was closed */
/* After a rollback: drops what was gathered, which must never reach the file, where another process
 * may have written since. */
void gather_drop(struct gather *gather);

#endif
