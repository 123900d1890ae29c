/* The limit below Perdura: a bare program that writes the whole audited life of a task (enqueue,
 * claim, complete) to SQLite in the plain layout: a wide task row under its uuid, three events, one
 * execution, one result; every batch of every step is one durable transaction. It decides nothing,
 * parses nothing and guards nothing. Usage: raw_sqlite FOLDER [TASKS]. One thread. */
#include <sqlite3.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PAYLOAD "{\"to\":\"user@example.com\",\"subject\":\"hello\",\"body\":\"some text that is " \
                "about as long as these are, or a bit\"}"

static const char schema[] =
    "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA cache_size=-8192;"
    "CREATE TABLE tasks (id BLOB PRIMARY KEY, type TEXT NOT NULL, name TEXT, queue TEXT NOT NULL,"
    " payload TEXT, data TEXT, metadata TEXT NOT NULL DEFAULT '{}', tags TEXT, user_id TEXT,"
    " external_id TEXT, context_key TEXT, correlation_id TEXT, status TEXT NOT NULL,"
    " previous_status TEXT, state TEXT NOT NULL, progress INTEGER NOT NULL, version INTEGER NOT NULL,"
    " priority INTEGER NOT NULL, scheduled_at INTEGER, idempotency_key TEXT, input_hash TEXT,"
    " attempts INTEGER NOT NULL, retry_count INTEGER NOT NULL, crash_count INTEGER NOT NULL,"
    " max_retries INTEGER NOT NULL, timeout_ms INTEGER NOT NULL, next_retry_at INTEGER,"
    " worker_id TEXT, lease_token INTEGER NOT NULL, lease_until INTEGER, claimed_at INTEGER,"
    " started_at INTEGER, completed_at INTEGER, error TEXT, last_error TEXT,"
    " created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL);"
    "CREATE INDEX tasks_claimable ON tasks (queue, priority DESC, created_at)"
    " WHERE status = 'pending';"
    "CREATE INDEX tasks_status ON tasks (status, updated_at);"
    "CREATE INDEX tasks_type ON tasks (type, status);"
    "CREATE INDEX tasks_worker ON tasks (worker_id) WHERE worker_id IS NOT NULL;"
    "CREATE TABLE task_events (id BLOB PRIMARY KEY, task_id BLOB NOT NULL, seq INTEGER NOT NULL,"
    " status TEXT NOT NULL, state TEXT, detail TEXT, actor TEXT NOT NULL,"
    " created_at INTEGER NOT NULL);"
    "CREATE INDEX task_events_task ON task_events (task_id, seq);"
    "CREATE TABLE executions (id BLOB PRIMARY KEY, task_id BLOB NOT NULL, status TEXT NOT NULL,"
    " attempt_number INTEGER NOT NULL, lease_token INTEGER NOT NULL, worker_id TEXT,"
    " started_at INTEGER, completed_at INTEGER, duration_ms INTEGER, result_data TEXT,"
    " created_at INTEGER NOT NULL);"
    "CREATE INDEX executions_task ON executions (task_id);"
    "CREATE TABLE task_results (task_id BLOB PRIMARY KEY, payload TEXT NOT NULL,"
    " created_at INTEGER NOT NULL);";

enum { INSERT_TASK, INSERT_EVENT, FIND, CLAIM, INSERT_EXECUTION, COMPLETE, END_EXECUTION,
       INSERT_RESULT, BEGIN, COMMIT, COUNT };

static const char *const texts[COUNT] = {
    "INSERT INTO tasks (id, type, queue, payload, status, state, progress, version, priority,"
    " attempts, retry_count, crash_count, max_retries, timeout_ms, lease_token, created_at,"
    " updated_at) VALUES (?1, 'bench', 'default', ?2, 'pending', 'Queued', 0, 1, 0, 0, 0, 0, 3,"
    " 300000, 0, ?3, ?3)",
    "INSERT INTO task_events (id, task_id, seq, status, state, detail, actor, created_at)"
    " VALUES (?1, ?2, ?3, ?4, ?4, NULL, 'WORKER', ?5)",
    "SELECT id FROM tasks WHERE queue = 'default' AND status = 'pending'"
    " ORDER BY priority DESC, created_at LIMIT ?1",
    "UPDATE tasks SET status = 'running', previous_status = 'pending', state = 'Running',"
    " version = version + 1, attempts = attempts + 1, worker_id = 'host-1-0123456789abcdef',"
    " lease_token = lease_token + 1, lease_until = ?2 + 30000000, claimed_at = ?2,"
    " started_at = ?2, updated_at = ?2 WHERE id = ?1 AND status = 'pending'",
    "INSERT INTO executions (id, task_id, status, attempt_number, lease_token, worker_id,"
    " started_at, created_at) VALUES (?1, ?2, 'running', 1, 1, 'host-1-0123456789abcdef', ?3, ?3)",
    "UPDATE tasks SET status = 'completed', previous_status = 'running', state = 'Completed',"
    " progress = 100, version = version + 1, worker_id = NULL, lease_until = NULL,"
    " completed_at = ?2, updated_at = ?2 WHERE id = ?1 AND lease_token = 1",
    "UPDATE executions SET status = 'completed', completed_at = ?2, duration_ms = 1"
    " WHERE id = ?1",
    "INSERT INTO task_results (task_id, payload, created_at) VALUES (?1, '{\"ok\":true}', ?2)",
    "BEGIN IMMEDIATE", "COMMIT"};

struct raw {
    sqlite3 *db;
    sqlite3_stmt *stmts[COUNT];
    uint64_t counter;
    unsigned char (*tasks)[16];
    unsigned char (*executions)[16];
};

static int64_t now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static void die(struct raw *raw, const char *what)
{
    fprintf(stderr, "raw_sqlite: %s: %s\n", what, sqlite3_errmsg(raw->db));
    exit(1);
}

/* Time-ordered like a UUIDv7: milliseconds, a counter, some fixed bits. */
static void make_id(struct raw *raw, unsigned char *id)
{
    uint64_t ms = (uint64_t)now_us() / 1000;
    uint64_t count = ++raw->counter;

    for (int i = 0; i < 6; i++)
        id[i] = (unsigned char)(ms >> (40 - 8 * i));
    for (int i = 0; i < 8; i++)
        id[6 + i] = (unsigned char)(count >> (56 - 8 * i));
    id[14] = (unsigned char)(count * 167);
    id[15] = (unsigned char)(count * 59);
}

static void run(struct raw *raw, int name)
{
    if (sqlite3_step(raw->stmts[name]) != SQLITE_DONE)
        die(raw, texts[name]);
    sqlite3_reset(raw->stmts[name]);
}

static void event(struct raw *raw, const unsigned char *task, int seq, const char *status,
                  int64_t now)
{
    sqlite3_stmt *stmt = raw->stmts[INSERT_EVENT];
    unsigned char id[16];

    make_id(raw, id);
    sqlite3_bind_blob(stmt, 1, id, 16, SQLITE_STATIC);
    sqlite3_bind_blob(stmt, 2, task, 16, SQLITE_STATIC);
    sqlite3_bind_int(stmt, 3, seq);
    sqlite3_bind_text(stmt, 4, status, -1, SQLITE_STATIC);
    sqlite3_bind_int64(stmt, 5, now);
    run(raw, INSERT_EVENT);
}

static void enqueue(struct raw *raw, int batch)
{
    sqlite3_stmt *stmt = raw->stmts[INSERT_TASK];
    int64_t now = now_us();

    run(raw, BEGIN);
    for (int i = 0; i < batch; i++) {
        make_id(raw, raw->tasks[i]);
        sqlite3_bind_blob(stmt, 1, raw->tasks[i], 16, SQLITE_STATIC);
        sqlite3_bind_text(stmt, 2, PAYLOAD, sizeof PAYLOAD - 1, SQLITE_STATIC);
        sqlite3_bind_int64(stmt, 3, now);
        run(raw, INSERT_TASK);
        event(raw, raw->tasks[i], 1, "pending", now);
    }
    run(raw, COMMIT);
}

static int claim(struct raw *raw, int batch)
{
    int64_t now = now_us();
    int count = 0;

    run(raw, BEGIN);
    sqlite3_bind_int(raw->stmts[FIND], 1, batch);
    while (sqlite3_step(raw->stmts[FIND]) == SQLITE_ROW)
        memcpy(raw->tasks[count++], sqlite3_column_blob(raw->stmts[FIND], 0), 16);
    sqlite3_reset(raw->stmts[FIND]);
    for (int i = 0; i < count; i++) {
        make_id(raw, raw->executions[i]);
        sqlite3_bind_blob(raw->stmts[CLAIM], 1, raw->tasks[i], 16, SQLITE_STATIC);
        sqlite3_bind_int64(raw->stmts[CLAIM], 2, now);
        run(raw, CLAIM);
        sqlite3_bind_blob(raw->stmts[INSERT_EXECUTION], 1, raw->executions[i], 16, SQLITE_STATIC);
        sqlite3_bind_blob(raw->stmts[INSERT_EXECUTION], 2, raw->tasks[i], 16, SQLITE_STATIC);
        sqlite3_bind_int64(raw->stmts[INSERT_EXECUTION], 3, now);
        run(raw, INSERT_EXECUTION);
        event(raw, raw->tasks[i], 2, "running", now);
    }
    run(raw, COMMIT);
    return count;
}

static void complete(struct raw *raw, int count)
{
    int64_t now = now_us();

    run(raw, BEGIN);
    for (int i = 0; i < count; i++) {
        sqlite3_bind_blob(raw->stmts[COMPLETE], 1, raw->tasks[i], 16, SQLITE_STATIC);
        sqlite3_bind_int64(raw->stmts[COMPLETE], 2, now);
        run(raw, COMPLETE);
        sqlite3_bind_blob(raw->stmts[END_EXECUTION], 1, raw->executions[i], 16, SQLITE_STATIC);
        sqlite3_bind_int64(raw->stmts[END_EXECUTION], 2, now);
        run(raw, END_EXECUTION);
        sqlite3_bind_blob(raw->stmts[INSERT_RESULT], 1, raw->tasks[i], 16, SQLITE_STATIC);
        sqlite3_bind_int64(raw->stmts[INSERT_RESULT], 2, now);
        run(raw, INSERT_RESULT);
        event(raw, raw->tasks[i], 3, "completed", now);
    }
    run(raw, COMMIT);
}

static void measure(struct raw *raw, int batch, int tasks)
{
    int64_t began = now_us(), middle, ended;
    int count;

    for (int left = tasks; left > 0; left -= batch)
        enqueue(raw, left < batch ? left : batch);
    middle = now_us();
    while ((count = claim(raw, batch)) > 0)
        complete(raw, count);
    ended = now_us();
    printf("batch %5d: enqueue %8.0f/s, claim and complete %8.0f/s, whole life %8.0f/s\n", batch,
           tasks * 1e6 / (double)(middle - began), tasks * 1e6 / (double)(ended - middle),
           tasks * 1e6 / (double)(ended - began));
}

int main(int argc, char **argv)
{
    static const char *const suffixes[] = {"", "-wal", "-shm"};
    static const int batches[] = {1, 10, 100, 1000};
    struct raw raw = {0};
    int tasks = argc > 2 ? atoi(argv[2]) : 20000;
    char path[4096], name[4200];

    if (argc < 2 || tasks < 1) {
        fprintf(stderr, "usage: raw_sqlite FOLDER [TASKS]\n");
        return 2;
    }
    snprintf(path, sizeof path, "%s/raw-sqlite-%ld.db", argv[1], (long)getpid());
    if (sqlite3_open(path, &raw.db) != SQLITE_OK ||
        sqlite3_exec(raw.db, schema, NULL, NULL, NULL) != SQLITE_OK)
        die(&raw, path);
    for (int i = 0; i < COUNT; i++)
        if (sqlite3_prepare_v2(raw.db, texts[i], -1, &raw.stmts[i], NULL) != SQLITE_OK)
            die(&raw, texts[i]);
    raw.tasks = malloc(1000 * 16);
    raw.executions = malloc(1000 * 16);
    for (int i = 0; raw.tasks && raw.executions && i < 4; i++)
        measure(&raw, batches[i], batches[i] == 1 ? (tasks < 3000 ? tasks : 3000) : tasks);
    for (int i = 0; i < COUNT; i++)
        sqlite3_finalize(raw.stmts[i]);
    sqlite3_close(raw.db);
    free(raw.tasks);
    free(raw.executions);
    for (int i = 0; i < 3; i++) {
        snprintf(name, sizeof name, "%s%s", path, suffixes[i]);
        unlink(name);
    }
    return 0;
}
