/* Opens the file: lock, pragmas, migrations, verbs, transactions. One process owns the file
 * (PATH-lock), and one connection writes and checkpoints: SQLite before 3.51.3 has a race when two
 * do. */
#include "base/clock.h"
#include "base/fault.h"
#include "base/hash.h"
#include "store/migrate.h"
#include "store/sqlite/sqlite_cursor.h"
#include "store/sqlite/sqlite_read.h"
#include "store/sqlite/sqlite_file.h"
#include "store/sqlite/sqlite_tasks.h"
#include "store/sqlite/sqlite_int.h"
#include "store/sqlite/sqlite_store.h"
#include "store/rows/rows_verbs.h"
#include "store/store_copy.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define LOCK_WAIT_US (5 * CLOCK_SECOND_US)
#define LOCK_PAUSE_US 5000
#define BUSY_TIMEOUT_MS 5000       /* a foreign reader holds a lock; then 503 */
#define WAL_PAGES_IDLE 1000        /* checkpoint from the idle loop above this */
#define WAL_PAGES_FORCED 16384     /* 64 MiB: checkpoint even under load */
#define PATH_BYTES_MAX 4096

static void task_key_function(sqlite3_context *context, int count, sqlite3_value **values)
{
    struct uuid id;

    (void)count;
    if (sqlite3_value_bytes(values[0]) != 16) {
        sqlite3_result_null(context);
        return;
    }
    memcpy(id.bytes, sqlite3_value_blob(values[0]), 16);
    sqlite3_result_int64(context, uuid7_key(&id));
}

static int run_text(sqlite3 *db, const char *text, struct err *err)
{
    return sqlite3_exec(db, text, NULL, NULL, NULL) == SQLITE_OK ? 0 : sql_fail(db, text, err);
}

/* Creates a new file for its owner only, because it holds payloads, results and the secret of
 * callbacks; SQLite gives the WAL the same rights. An existing file keeps its rights. If the file
 * cannot be created, the open that follows reports why. */
static void make_private(const char *path)
{
    int fd = open(path, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);

    if (fd >= 0)
        close(fd);
}

static bool has_log(const char *path)
{
    char name[PATH_BYTES_MAX + 8];
    struct stat info;

    snprintf(name, sizeof name, "%s-wal", path);
    return stat(name, &info) == 0 && info.st_size > 0;
}

/* busy_timeout comes first: changing the journal mode already takes locks. */
int sqlite_db_open(const char *path, bool write, const char *vfs, sqlite3 **db, struct err *err)
{
    int flags = SQLITE_OPEN_NOMUTEX |
                (write ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READWRITE);

    if (write)
        make_private(path);
    if (sqlite3_open_v2(path, db, flags, vfs) != SQLITE_OK) {
        err_set(err, ERR_IO, "cannot open the store '%s': %s; check the path and its rights", path,
                *db ? sqlite3_errmsg(*db) : "out of memory");
        sqlite3_close(*db);
        *db = NULL;
        return -(int)ERR_IO;
    }
    sqlite3_busy_timeout(*db, BUSY_TIMEOUT_MS);
    if (!write && has_log(path)) /* a reader leaves it to the owner, even as the last to close */
        sqlite3_db_config(*db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    sqlite3_db_config(*db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(*db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    sqlite_add_bodies(*db);
    sqlite3_create_function(*db, "task_key", 1,
                            SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS, NULL,
                            task_key_function, NULL, NULL);
    if (run_text(*db, write ? "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"
                              "PRAGMA wal_autocheckpoint=0; PRAGMA foreign_keys=ON;"
                              "PRAGMA temp_store=MEMORY; PRAGMA cache_size=-8192;"
                            : "PRAGMA query_only=ON; PRAGMA temp_store=MEMORY;"
                              "PRAGMA cache_size=-2048;",
                 err) == 0)
        return 0;
    sqlite3_close(*db);
    *db = NULL;
    return -(int)err->code;
}

static long read_holder(int fd)
{
    char text[32] = "";
    ssize_t len = pread(fd, text, sizeof text - 1, 0);

    return len > 0 ? strtol(text, NULL, 10) : 0;
}

/* If a server was killed while it started a handler, the new process holds the lock for a moment,
 * until it closes everything it inherited. This waits for that. */
static bool take_lock(int fd)
{
    int64_t until_us = clock_boot_us() + LOCK_WAIT_US;

    while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        long pid = read_holder(fd);
        bool died = pid > 0 && kill((pid_t)pid, 0) < 0 && errno == ESRCH;

        if (!died || clock_boot_us() > until_us)
            return false;
        usleep(LOCK_PAUSE_US);
    }
    return true;
}

int sqlite_file_lock(const char *path, int *lock_fd, struct err *err)
{
    char name[PATH_BYTES_MAX];
    char text[32];
    int len;
    int fd;

    snprintf(name, sizeof name, "%s-lock", path);
    fd = open(name, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_set(err, ERR_IO, "cannot lock the store '%s': %s", path, strerror(errno));
    if (!take_lock(fd)) {
        err_set(err, ERR_UNAVAILABLE, "the store '%s' is in use by process %ld; stop it first",
                path, read_holder(fd));
        close(fd);
        return -(int)ERR_UNAVAILABLE;
    }
    len = snprintf(text, sizeof text, "%ld\n", (long)getpid());
    if (ftruncate(fd, 0) < 0 || pwrite(fd, text, (size_t)len, 0) != len) {
        err_set(err, ERR_IO, "cannot write the lock of '%s': %s", path, strerror(errno));
        close(fd);
        return -(int)ERR_IO;
    }
    *lock_fd = fd;
    return 0;
}

void sqlite_file_unlock(int lock_fd)
{
    if (lock_fd >= 0)
        close(lock_fd); /* keep the file: removing it would race with the next owner */
}

/* On these file systems, locks and shared memory are not reliable enough for a WAL. */
static int refuse_network_fs(const char *path, struct err *err)
{
    static const struct {
        long type;
        const char *name;
    } unsafe[] = {{0x6969, "NFS"}, {0xFF534D42, "CIFS"}, {0xFE534D42, "SMB"}, {0x01021997, "9p"},
                  {0x517B, "SMB"}, {0x0BD00BD0, "Lustre"}, {0x00C36400, "Ceph"}};
    char folder[PATH_BYTES_MAX];
    struct statfs info;
    char *slash;

    snprintf(folder, sizeof folder, "%s", path);
    slash = strrchr(folder, '/');
    if (slash)
        *(slash == folder ? slash + 1 : slash) = '\0';
    if (statfs(slash ? folder : ".", &info) < 0)
        return err_set(err, ERR_IO, "the folder of the store '%s' cannot be used: %s", path,
                       strerror(errno));
    for (size_t i = 0; i < sizeof unsafe / sizeof unsafe[0]; i++)
        if ((info.f_type & 0xFFFFFFFF) == unsafe[i].type)
            return err_set(err, ERR_IO, "the store '%s' lies on a network file system (%s), which "
                           "cannot keep it safe; use a local disk, or allow it (allow_network_fs, "
                           "--allow-network-fs)", path, unsafe[i].name);
    return 0;
}

/* Reads the lines again after hand-written SQL beside the running server, or after a rollback that
 * left them unread: memory no longer matches the file. */
static int follow_others(struct sqlite_store *store, struct err *err)
{
    sqlite3_stmt *stmt = sql_get(&store->sql, SQL_tx_data_version, err);
    int rc = stmt ? sql_step(&store->sql, stmt, err) : -(int)err->code;
    int64_t version;

    if (rc <= 0)
        return rc;
    version = sqlite3_column_int64(stmt, 0);
    sqlite3_reset(stmt);
    if (version == store->data_version)
        return 0;
    held_forget(&store->held);
    rc = sqlite_schema_follow(store, &store->sql, err);
    if (rc < 0 && err->code == ERR_CONFLICT)
        err->code = ERR_STORAGE; /* never write through a schema that is not ours */
    if (rc == 0)
        rc = lines_load(store, err);
    if (rc == 0)
        store->data_version = version;
    return rc < 0 ? -(int)err->code : 0;
}

static int sqlite_begin(struct store *base, struct err *err)
{
    struct sqlite_store *store = sqlite_of(base);
    sqlite3_stmt *stmt = sql_get(&store->sql, SQL_tx_begin, err);

    if (!stmt || sql_run(&store->sql, stmt, NULL, err) < 0)
        return -(int)err->code;
    store->in_tx = true;
    return follow_others(store, err);
}

static int on_wal(void *ctx, sqlite3 *db, const char *name, int pages)
{
    (void)db;
    (void)name;
    ((struct sqlite_store *)ctx)->wal_pages = pages;
    ((struct sqlite_store *)ctx)->base.log_pages = pages;
    return SQLITE_OK;
}

/* A failed checkpoint only leaves a longer WAL (F-D2). */
static void checkpoint(struct sqlite_store *store)
{
    int log_pages = 0;
    int done_pages = 0;

    FAULT_POINT("before.checkpoint");
    if (sqlite3_wal_checkpoint_v2(store->sql.db, NULL, SQLITE_CHECKPOINT_PASSIVE, &log_pages,
                                  &done_pages) != SQLITE_OK)
        LOG(store->log, LOG_WARN, "store.checkpoint_failed",
            KC("reason", sqlite3_errmsg(store->sql.db)), KI("wal_pages", store->wal_pages));
    store->wal_pages = log_pages - done_pages;
    store->base.log_pages = store->wal_pages;
    FAULT_POINT("after.checkpoint");
}

/* The system refused a whole write of the log (F-D9): none of the commit is on the disk, so it is
 * treated like a full disk. Only the log knows why its last call failed. */
static bool log_was_refused(sqlite3 *db)
{
    sqlite3_file *log = NULL;
    int number = 0;

    return sqlite3_extended_errcode(db) == SQLITE_IOERR_WRITE &&
           sqlite3_file_control(db, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log) == SQLITE_OK &&
           log && log->pMethods &&
           log->pMethods->xFileControl(log, SQLITE_FCNTL_LAST_ERRNO, &number) == SQLITE_OK &&
           (number == EROFS || number == EDQUOT);
}

static int sqlite_commit(struct store *base, struct err *err)
{
    struct sqlite_store *store = sqlite_of(base);
    sqlite3_stmt *stmt;
    int rc = lines_flush(store, err);

    if (rc < 0)
        return rc;
    stmt = sql_get(&store->sql, SQL_tx_commit, err);
    if (!stmt)
        return -(int)err->code;
    rc = sql_run(&store->sql, stmt, NULL, err);
    if (rc < 0) {
        /* A full disk leaves the transaction open and whole: after a rollback nothing is lost. Any
         * other failure here may have written part of it, so the process must exit. An I/O error of
         * a commit does not update the system's error number, so that number says nothing. */
        if (log_was_refused(store->sql.db))
            err_set(err, ERR_STORAGE_FULL, "the store cannot be written: its file system is "
                    "read-only or its quota used up; the server continues by itself when that "
                    "ends");
        else if ((sqlite3_errcode(store->sql.db) & 0xFF) == SQLITE_IOERR ||
                 (err->code != ERR_STORAGE_FULL && err->code != ERR_UNAVAILABLE))
            err->code = ERR_STORAGE;
        return -(int)err->code;
    }
    store->in_tx = false;
    if (store->wal_pages > WAL_PAGES_FORCED)
        checkpoint(store);
    return 0;
}

static enum store_outcome sqlite_rollback(struct store *base)
{
    struct sqlite_store *store = sqlite_of(base);
    struct err err = {0};

    if (store->in_tx && !sqlite3_get_autocommit(store->sql.db)) {
        sqlite3_stmt *stmt = sql_get(&store->sql, SQL_tx_rollback, &err);

        if (stmt)
            sql_run(&store->sql, stmt, NULL, &err);
    }
    gather_drop(&store->gather);
    store->in_tx = false;
    held_forget(&store->held);
    if (lines_load(store, &err) < 0) {
        LOG(store->log, LOG_ERROR, "store.lines_not_loaded", KC("reason", err.text));
        store->data_version = 0;
    }
    return STORE_UNDONE;
}

static void sqlite_idle(struct store *base)
{
    struct sqlite_store *store = sqlite_of(base);

    if (store->wal_pages > WAL_PAGES_IDLE)
        checkpoint(store);
    if (!store->has_ballast)
        sqlite_ballast_take(store);
}

static void sqlite_release_space(struct store *base)
{
    sqlite_ballast_release(sqlite_of(base));
}

static const char *const log_suffixes[] = {"-wal", "-shm"};

/* 0 = there is none. */
static ino_t log_inode(const struct sqlite_store *store, int which)
{
    char path[4096];
    struct stat info;

    snprintf(path, sizeof path, "%s%s", store->path, log_suffixes[which]);
    return stat(path, &info) == 0 ? info.st_ino : 0;
}

/* Other processes must open the same file as we do, or they and we would see two stores. */
static int sqlite_check(struct store *base, struct err *err)
{
    struct sqlite_store *store = sqlite_of(base);
    struct stat info;

    for (int i = 0; i < 2; i++)
        if (store->log_inodes[i] && log_inode(store, i) != store->log_inodes[i])
            return err_set(err, ERR_STORAGE, "the file '%s%s' was deleted or replaced while in use",
                           store->path, log_suffixes[i]);

    if (stat(store->path, &info) < 0 || info.st_dev != store->device ||
        info.st_ino != store->inode)
        return err_set(err, ERR_STORAGE, "the store '%s' was deleted or replaced while in use",
                       store->path);
    return 0;
}

static void sqlite_close(struct store *base)
{
    struct sqlite_store *store = sqlite_of(base);

    if (store->sql.db && store->lock_fd >= 0)
        sqlite3_wal_checkpoint_v2(store->sql.db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
    FAULT_POINT("store.close");
    sql_close(&store->sql);
    gather_remove(&store->gather);
    lines_deinit(&store->lines);
    held_forget(&store->held);
    sqlite_file_unlock(store->lock_fd);
    free(store->path);
    free(store);
}

static int64_t sqlite_task_key_next(struct store *base)
{
    return sqlite_of(base)->next_task_key++;
}

static int64_t sqlite_execution_key_next(struct store *base, int64_t above)
{
    (void)above; /* the next key is above all others */
    return sqlite_of(base)->next_execution_key++;
}

static const struct catalog_verbs catalog_verbs = {
    ROWS_CATALOG_VERBS
    .read_execution_logs = sqlite_read_execution_logs,
};

static const struct store_verbs verbs = {
    ROWS_STORE_VERBS,
    .begin = sqlite_begin,
    .commit = sqlite_commit,
    .rollback = sqlite_rollback,
    .close = sqlite_close,
    .release_space = sqlite_release_space,
    .idle = sqlite_idle,
    .check = sqlite_check,
    .task_key_next = sqlite_task_key_next,
    .execution_key_next = sqlite_execution_key_next,
    .tasks_load = sqlite_tasks_load,
    .tasks_insert = sqlite_tasks_insert,
    .tasks_save = sqlite_tasks_save,
    .tasks_delete = sqlite_tasks_delete,
    .uniques_reserve = sqlite_uniques_reserve,
    .ready_take = sqlite_ready_take,
    .ready_count = sqlite_ready_count,
    .ready_reorder = sqlite_ready_reorder,
    .held_find = sqlite_held_find,
    .status_find = sqlite_status_find,
    .events_insert = sqlite_events_insert,
    .executions_insert = sqlite_executions_insert,
    .executions_save = sqlite_executions_save,
    .result_put = sqlite_result_put,
    .checkpoint_insert = sqlite_checkpoint_insert,
    .logs_insert = sqlite_logs_insert,
    .outbox_insert = rows_outbox_insert,
    .history_prune = sqlite_history_prune,
    .reader_open = sqlite_reader_open,
    .reader_close = sqlite_reader_close,
    .read_task = sqlite_read_task,
    .read_tasks = sqlite_read_tasks,
    .read_logs = sqlite_read_logs,
    .verify = sqlite_verify,
    .backup = sqlite_backup,
    .checks = &sqlite_check_verbs,
    .copy = &sqlite_copy_verbs,
    .catalog = &catalog_verbs,
    .logs = &sqlite_log_verbs,
};

static int read_last(struct sqlite_store *store, struct err *err)
{
    sqlite3_stmt *stmt = sql_get(&store->sql, SQL_last_keys, err);
    int rc;

    if (!stmt || (rc = sql_step(&store->sql, stmt, err)) < 0)
        return -(int)err->code;
    store->next_task_key = rc > 0 ? sqlite3_column_int64(stmt, 0) + 1 : 1;
    store->next_execution_key = rc > 0 ? sqlite3_column_int64(stmt, 1) + 1 : 1;
    sqlite3_reset(stmt);
    stmt = sql_get(&store->sql, SQL_last_time, err);
    if (!stmt || (rc = sql_step(&store->sql, stmt, err)) < 0)
        return -(int)err->code;
    if (rc > 0)
        store->base.last_time_us = sqlite3_column_int64(stmt, 0);
    sqlite3_reset(stmt);
    stmt = sql_get(&store->sql, SQL_any_dependency, err);
    if (!stmt || (rc = sql_step(&store->sql, stmt, err)) < 0)
        return -(int)err->code;
    store->base.has_dependencies = rc > 0;
    sqlite3_reset(stmt);
    return 0;
}

/* Runs before anything is migrated, reserved or made. */
static int admit(struct sqlite_store *store, const struct store_options *options,
                 struct err *err)
{
    bool has_facts = false;

    TRY(sqlite_has_table(store->sql.db, "store_info", &has_facts, err));
    return store_admit(&store->base, has_facts, options, err);
}

static int open_database(struct sqlite_store *store, const struct store_options *options,
                         struct err *err)
{
    struct stat info;
    uint32_t applied = 0;
    bool write = !options->no_lock;

    TRY(sqlite_log_check(store->path, write, err));
    if (write && gather_install(&store->gather) != SQLITE_OK)
        return err_set(err, ERR_MEMORY, "out of memory while opening the store");
    TRY(sqlite_db_open(store->path, write, write ? store->gather.name : NULL, &store->sql.db, err));
    TRY(admit(store, options, err));
    if (write && !options->no_migrate)
        TRY(migrate_up(&sqlite_migrations, store->sql.db, 0, &applied, err));
    else
        TRY(migrate_check(&sqlite_migrations, store->sql.db, err));
    if (applied > 0)
        LOG(store->log, LOG_INFO, "store.migrated", KI("migrations", applied));
    TRY(sqlite_schema_follow(store, &store->sql, err));
    if (stat(store->path, &info) < 0)
        return err_set(err, ERR_IO, "cannot look at the store '%s': %s", store->path,
                       strerror(errno));
    store->device = info.st_dev;
    store->inode = info.st_ino;
    for (int i = 0; write && i < 2; i++)
        store->log_inodes[i] = log_inode(store, i);
    sqlite3_wal_hook(store->sql.db, on_wal, store);
    if (write)
        sqlite_ballast_take(store);
    return read_last(store, err) < 0 ? -(int)err->code : lines_load(store, err);
}

/* With these statistics on, every allocation takes a lock: 6 % of a task's instructions. */
void sqlite_store_own_process(void)
{
    sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
}

/* The file must exist: this call never creates it. */
static int require_file(const char *path, struct err *err)
{
    if (access(path, F_OK) == 0 || errno != ENOENT)
        return 0;
    return err_set(err, ERR_NOT_FOUND, "there is no store '%s'; check the path", path);
}

/* A command that wants to serve the store is pointed to the running server; others cannot use
 * it. */
static int lock_file(struct sqlite_store *store, const struct store_options *options,
                     struct err *err)
{
    int rc = sqlite_file_lock(store->path, &store->lock_fd, err);

    if (rc < 0 && err->code == ERR_UNAVAILABLE && options->serves) {
        struct err why = *err;

        err_set(err, ERR_UNAVAILABLE, "%.400s, or be its client: name its http://host:port and not "
                "the file", why.text);
    }
    return rc;
}

int sqlite_store_open(struct store **out, struct str path, const struct store_options *options,
                      struct err *err)
{
    struct sqlite_store *store = calloc(1, sizeof *store);
    int rc = -(int)ERR_MEMORY;

    if (!store || !(store->path = strndup(path.data, path.len))) {
        free(store);
        return err_set(err, ERR_MEMORY, "out of memory while opening the store");
    }
    store->base.verbs = &verbs;
    store->base.namespaces = &rows_namespace_verbs;
    store->rows.driver = &sqlite_rows_driver;
    store->base.rows = &store->rows;
    store->base.kind = "sqlite";
    store->base.path = store->path;
    store->log = options->log;
    store->lock_fd = -1;
    store->any_schema = options->any_schema;
    if (!options->allow_network_fs && (rc = refuse_network_fs(store->path, err)) < 0)
        goto out;
    if ((options->no_lock || options->resumes) && (rc = require_file(store->path, err)) < 0)
        goto out;
    if (!options->no_lock && (rc = lock_file(store, options, err)) < 0)
        goto out;
    rc = open_database(store, options, err);
out:
    if (rc < 0) {
        sqlite_close(&store->base);
        return rc;
    }
    *out = &store->base;
    return 0;
}
