/* What PostgreSQL lets a straightforward program do: the rows of a whole audited life in the plain
 * layout (a wide task row with the usual indexes, three events, an execution, a result), set-based,
 * one transaction per batch of each step, several connections. It decides, parses and guards
 * nothing but who takes which task (SKIP LOCKED). Prints one line per batch size, or that of BATCH.
 *
 *   raw_pg URL [TASKS [CONNECTIONS [BATCH]]]   makes and drops a schema of its own there */
#include <libpq-fe.h>

#include <arpa/inet.h>
#include <endian.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PAYLOAD "{\"to\":\"user@example.com\",\"subject\":\"hello\",\"body\":\"some text that is " \
                "about as long as these are, or a bit\"}"
#define CONNECTIONS_MAX 16
#define UUID_TYPE 2950

static const char schema[] =
    "DROP SCHEMA IF EXISTS raw_pg CASCADE; CREATE SCHEMA raw_pg; SET search_path = raw_pg;"
    "CREATE TABLE tasks (id uuid PRIMARY KEY, type text NOT NULL, queue text NOT NULL, payload text,"
    " status text NOT NULL, previous_status text, state text NOT NULL, progress int NOT NULL,"
    " version int NOT NULL, priority int NOT NULL, scheduled_at timestamptz, attempts int NOT NULL,"
    " retry_count int NOT NULL, max_retries int NOT NULL, timeout_ms int NOT NULL, worker_id text,"
    " lease_token bigint NOT NULL, lease_until timestamptz, claimed_at timestamptz,"
    " started_at timestamptz, completed_at timestamptz, error text, created_at timestamptz NOT NULL,"
    " updated_at timestamptz NOT NULL);"
    "CREATE INDEX ON tasks (queue, priority DESC, created_at) WHERE status = 'pending';"
    "CREATE INDEX ON tasks (status, updated_at);"
    "CREATE INDEX ON tasks (type, status);"
    "CREATE INDEX ON tasks (worker_id) WHERE worker_id IS NOT NULL;"
    "CREATE TABLE task_events (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), task_id uuid NOT NULL,"
    " seq int NOT NULL, status text NOT NULL, state text, actor text NOT NULL,"
    " created_at timestamptz NOT NULL);"
    "CREATE INDEX ON task_events (task_id, seq);"
    "CREATE TABLE executions (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), task_id uuid NOT NULL,"
    " status text NOT NULL, attempt_number int NOT NULL, lease_token bigint NOT NULL,"
    " worker_id text, started_at timestamptz, completed_at timestamptz, duration_ms int,"
    " created_at timestamptz NOT NULL);"
    "CREATE INDEX ON executions (task_id);"
    "CREATE TABLE task_results (task_id uuid PRIMARY KEY, payload text NOT NULL,"
    " created_at timestamptz NOT NULL);";

static const char enqueue_text[] =
    "WITH v AS (SELECT unnest($1::uuid[]) AS id), t AS (INSERT INTO tasks (id, type, queue, payload,"
    " status, state, progress, version, priority, attempts, retry_count, max_retries, timeout_ms,"
    " lease_token, created_at, updated_at) SELECT id, 'bench', 'default', '" PAYLOAD "', 'pending',"
    " 'Queued', 0, 1, 0, 0, 0, 3, 300000, 0, clock_timestamp(), clock_timestamp() FROM v)"
    "INSERT INTO task_events (task_id, seq, status, state, actor, created_at)"
    " SELECT id, 1, 'pending', 'Queued', 'API', clock_timestamp() FROM v";
static const char claim_text[] =
    "WITH f AS (SELECT id FROM tasks WHERE queue = 'default' AND status = 'pending'"
    " ORDER BY priority DESC, created_at LIMIT $1 FOR NO KEY UPDATE SKIP LOCKED), u AS ("
    "UPDATE tasks t SET status = 'running', previous_status = 'pending', state = 'Running',"
    " version = version + 1, attempts = attempts + 1, worker_id = 'host-1-0123456789abcdef',"
    " lease_token = lease_token + 1, lease_until = clock_timestamp() + interval '30 s',"
    " claimed_at = clock_timestamp(), started_at = clock_timestamp(), updated_at = clock_timestamp()"
    " FROM f WHERE t.id = f.id RETURNING t.id), e AS (INSERT INTO task_events (task_id, seq, status,"
    " state, actor, created_at) SELECT id, 2, 'running', 'Running', 'WORKER', clock_timestamp()"
    " FROM u), x AS (INSERT INTO executions (task_id, status, attempt_number, lease_token, worker_id,"
    " started_at, created_at) SELECT id, 'running', 1, 1, 'host-1-0123456789abcdef',"
    " clock_timestamp(), clock_timestamp() FROM u) SELECT id FROM u";
static const char complete_text[] =
    "WITH v AS (SELECT unnest($1::uuid[]) AS id), u AS (UPDATE tasks t SET status = 'completed',"
    " previous_status = 'running', state = 'Completed', progress = 100, version = version + 1,"
    " worker_id = NULL, lease_until = NULL, completed_at = clock_timestamp(),"
    " updated_at = clock_timestamp() FROM v WHERE t.id = v.id AND t.lease_token = 1 RETURNING t.id),"
    " e AS (INSERT INTO task_events (task_id, seq, status, state, actor, created_at)"
    " SELECT id, 3, 'completed', 'Completed', 'WORKER', clock_timestamp() FROM u),"
    " x AS (UPDATE executions e SET status = 'completed', completed_at = clock_timestamp(),"
    " duration_ms = 1 FROM u WHERE e.task_id = u.id)"
    "INSERT INTO task_results (task_id, payload, created_at)"
    " SELECT id, '{\"ok\":true}', clock_timestamp() FROM u";

struct lane {
    pthread_t thread;
    PGconn *pg;
    int number;
    int batch;
    long tasks;
    long done;
    int step; /* 0 = enqueue, 1 = claim and complete */
};

static double now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static PGresult *check(PGconn *pg, PGresult *result)
{
    ExecStatusType status = PQresultStatus(result);

    if (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK)
        return result;
    fprintf(stderr, "raw_pg: %s", PQerrorMessage(pg));
    exit(1);
}

/* A binary array of ids. */
static size_t put_ids(char *out, const unsigned char (*ids)[16], int count)
{
    uint32_t head[5] = {htonl(1), 0, htonl(UUID_TYPE), htonl((uint32_t)count), htonl(1)};
    uint32_t len = htonl(16);
    size_t at = sizeof head;

    memcpy(out, head, sizeof head);
    for (int i = 0; i < count; i++) {
        memcpy(out + at, &len, 4);
        memcpy(out + at + 4, ids[i], 16);
        at += 20;
    }
    return at;
}

static void run_ids(struct lane *lane, const char *name, const unsigned char (*ids)[16], int count,
                    char *buffer)
{
    const char *values[] = {buffer};
    int lens[] = {(int)put_ids(buffer, ids, count)};
    int formats[] = {1};

    PQclear(check(lane->pg, PQexecPrepared(lane->pg, name, 1, values, lens, formats, 1)));
}

/* Time first, as UUIDv7 has it. */
static void make_id(unsigned char *id, int lane, long counter)
{
    uint64_t order = htobe64((uint64_t)time(NULL) << 24 | ((uint64_t)counter & 0xFFFFFF));
    uint64_t rest = (uint64_t)lane << 56 | (uint64_t)counter;

    memcpy(id, &order, 8);
    memcpy(id + 8, &rest, 8);
}

static void *run_lane(void *ctx)
{
    struct lane *lane = ctx;
    unsigned char (*ids)[16] = calloc((size_t)lane->batch, 16);
    char *buffer = malloc(20 + (size_t)lane->batch * 20);
    static long counter;
    char limit[16];
    const char *limits[] = {limit};

    snprintf(limit, sizeof limit, "%d", lane->batch);
    while (ids && buffer && (lane->step == 1 || lane->done < lane->tasks)) {
        int count = lane->batch;

        if (lane->step == 0) {
            for (int i = 0; i < count; i++)
                make_id(ids[i], lane->number, __atomic_add_fetch(&counter, 1, __ATOMIC_RELAXED));
            run_ids(lane, "enqueue", (const unsigned char (*)[16])ids, count, buffer);
        } else {
            PGresult *result = check(lane->pg, PQexecPrepared(lane->pg, "claim", 1, limits, NULL,
                                                              NULL, 1));

            count = PQntuples(result);
            for (int i = 0; i < count; i++)
                memcpy(ids[i], PQgetvalue(result, i, 0), 16);
            PQclear(result);
            if (count == 0)
                break;
            run_ids(lane, "complete", (const unsigned char (*)[16])ids, count, buffer);
        }
        lane->done += count;
    }
    free(ids);
    free(buffer);
    return NULL;
}

static double run_step(struct lane *lanes, int connections, int step, int batch, long tasks)
{
    double began = now_s();
    long done = 0;

    for (int i = 0; i < connections; i++) {
        lanes[i].step = step;
        lanes[i].batch = batch;
        lanes[i].tasks = tasks / connections;
        lanes[i].done = 0;
        pthread_create(&lanes[i].thread, NULL, run_lane, &lanes[i]);
    }
    for (int i = 0; i < connections; i++) {
        pthread_join(lanes[i].thread, NULL);
        done += lanes[i].done;
    }
    return (double)done / (now_s() - began);
}

static void connect_lane(struct lane *lane, const char *url)
{
    lane->pg = PQconnectdb(url);
    if (PQstatus(lane->pg) != CONNECTION_OK) {
        fprintf(stderr, "raw_pg: %s", PQerrorMessage(lane->pg));
        exit(1);
    }
    PQclear(check(lane->pg, PQexec(lane->pg, "SET search_path = raw_pg; SET jit = off;"
                                             "SET client_min_messages = error;"
                                             "SET enable_hashjoin = off; SET enable_mergejoin = off;"
                                             "SET plan_cache_mode = force_generic_plan")));
}

static void prepare_lane(struct lane *lane)
{
    PQclear(check(lane->pg, PQprepare(lane->pg, "enqueue", enqueue_text, 0, NULL)));
    PQclear(check(lane->pg, PQprepare(lane->pg, "claim", claim_text, 0, NULL)));
    PQclear(check(lane->pg, PQprepare(lane->pg, "complete", complete_text, 0, NULL)));
}

int main(int argc, char **argv)
{
    static const int batches[] = {1, 10, 100, 1000};
    struct lane lanes[CONNECTIONS_MAX] = {{0}};
    long tasks = argc > 2 ? atol(argv[2]) : 40000;
    int connections = argc > 3 ? atoi(argv[3]) : 4;
    int only = argc > 4 ? atoi(argv[4]) : 0;

    if (argc < 2 || connections < 1 || connections > CONNECTIONS_MAX || tasks < 1000) {
        fprintf(stderr, "usage: raw_pg URL [TASKS [CONNECTIONS [BATCH]]]\n");
        return 2;
    }
    for (int i = 0; i < connections; i++) {
        lanes[i].number = i;
        connect_lane(&lanes[i], argv[1]);
    }
    for (size_t b = 0; b < sizeof batches / sizeof batches[0]; b++) {
        long count = batches[b] == 1 ? tasks / 10 : tasks;
        double enqueued, drained;

        if (only && batches[b] != only)
            continue;
        PQclear(check(lanes[0].pg, PQexec(lanes[0].pg, schema)));
        for (int i = 0; i < connections; i++) {
            PQclear(check(lanes[i].pg, PQexec(lanes[i].pg, "DEALLOCATE ALL")));
            prepare_lane(&lanes[i]);
        }
        enqueued = run_step(lanes, connections, 0, batches[b], count);
        PQclear(check(lanes[0].pg, PQexec(lanes[0].pg, "ANALYZE tasks")));
        drained = run_step(lanes, connections, 1, batches[b], count);
        printf("batch %4d: enqueue %8.0f/s, claim and complete %8.0f/s, whole life %8.0f/s\n",
               batches[b], enqueued, drained, 1 / (1 / enqueued + 1 / drained));
        fflush(stdout);
    }
    PQclear(check(lanes[0].pg, PQexec(lanes[0].pg, "DROP SCHEMA raw_pg CASCADE")));
    for (int i = 0; i < connections; i++)
        PQfinish(lanes[i].pg);
    return 0;
}
