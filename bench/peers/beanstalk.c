/* A beanstalkd client for the bench: puts, drains and times no-op jobs and prints one line of JSON.
 * beanstalkd has no bulk call; what stands in for it is pipelining, which its protocol allows: a
 * burst of commands in one write, then their answers. One thread, but for `latency` that has one
 * for the producer and one for the worker. Usage:
 *   beanstalk PORT put SECONDS CONNECTIONS BURST JOBS_MAX
 *   beanstalk PORT drain SECONDS CONNECTIONS BURST     (burst 0: waits for each answer)
 *   beanstalk PORT latency PER_SECOND JOBS */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define PAYLOAD "{\"to\":\"user@example.com\",\"subject\":\"hello\",\"body\":\"some text that is " \
                "about as long as these are in queues\"}"
#define CONNECTIONS_MAX 64
#define BURST_MAX 1000
#define JOBS_MAX 100000
#define OUT_BYTES_MAX (BURST_MAX * 192) /* a put with its payload has 128 bytes */
#define IN_BYTES_MAX 65536

struct connection {
    int fd;
    size_t in_start, in_end;
    size_t out_len;
    uint32_t waiting; /* answers that a drain still expects to its reserves */
    uint32_t deletes; /* and to its deletes, which come before those */
    char in[IN_BYTES_MAX];
    char out[OUT_BYTES_MAX];
};

struct timing {
    struct connection *connection;
    uint32_t jobs_count;
    int64_t times_ns[JOBS_MAX];
};

static void die(const char *what)
{
    fprintf(stderr, "beanstalk: %s: %s\n", what, strerror(errno));
    exit(1);
}

static int64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static struct connection *connection_open(uint16_t port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    struct connection *connection = calloc(1, sizeof *connection);
    int on = 1;

    if (!connection)
        die("memory");
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connection->fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connection->fd < 0 ||
        connect(connection->fd, (struct sockaddr *)&address, sizeof address) < 0)
        die("connect");
    setsockopt(connection->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return connection;
}

__attribute__((format(printf, 2, 3))) static void say(struct connection *connection,
                                                      const char *format, ...)
{
    size_t room = sizeof connection->out - connection->out_len;
    va_list arguments;
    int len;

    va_start(arguments, format);
    len = vsnprintf(connection->out + connection->out_len, room, format, arguments);
    va_end(arguments);
    if (len < 0 || (size_t)len >= room)
        die("a burst is too long");
    connection->out_len += (size_t)len;
}

static void flush(struct connection *connection)
{
    size_t done = 0;

    while (done < connection->out_len) {
        ssize_t len = write(connection->fd, connection->out + done, connection->out_len - done);

        if (len <= 0)
            die("write");
        done += (size_t)len;
    }
    connection->out_len = 0;
}

/* The next line, without its end; it lives until the next call. */
static char *hear(struct connection *connection)
{
    for (;;) {
        char *start = connection->in + connection->in_start;
        char *end = memchr(start, '\n', connection->in_end - connection->in_start);
        ssize_t len;

        if (end) {
            connection->in_start = (size_t)(end + 1 - connection->in);
            end[end > start && end[-1] == '\r' ? -1 : 0] = '\0';
            return start;
        }
        memmove(connection->in, start, connection->in_end - connection->in_start);
        connection->in_end -= connection->in_start;
        connection->in_start = 0;
        if (connection->in_end == sizeof connection->in)
            die("a line is too long");
        len = read(connection->fd, connection->in + connection->in_end,
                   sizeof connection->in - connection->in_end);
        if (len <= 0)
            die("read");
        connection->in_end += (size_t)len;
    }
}

static void expect(struct connection *connection, const char *word)
{
    const char *line = hear(connection);

    if (strncmp(line, word, strlen(word)) != 0) {
        fprintf(stderr, "beanstalk: %s expected, not: %s\n", word, line);
        exit(1);
    }
}

static void say_put(struct connection *connection, const char *payload)
{
    say(connection, "put 0 0 60 %zu\r\n%s\r\n", strlen(payload), payload);
}

/* Every connection has a burst of puts under way. Without a limit of time it fills. */
static void put(struct connection **connections, uint32_t connections_count, double seconds,
                uint32_t burst, uint64_t jobs_max)
{
    int64_t start = now_ns(), end = start + (int64_t)(seconds * 1e9);
    uint64_t sent = 0, answered = 0;

    for (uint32_t turn = 0; answered < sent || sent == 0; turn = (turn + 1) % connections_count) {
        struct connection *connection = connections[turn];

        for (; connection->waiting > 0; connection->waiting--, answered++)
            expect(connection, "INSERTED");
        if (now_ns() >= end)
            continue;
        for (; connection->waiting < burst && sent < jobs_max; connection->waiting++, sent++)
            say_put(connection, PAYLOAD);
        flush(connection);
    }
    printf("{\"rate\": %.1f, \"jobs\": %" PRIu64 "}\n",
           (double)answered / ((double)(now_ns() - start) / 1e9), answered);
}

/* Takes one answer to a reserve. Returns the job's id, 0 when nothing is ready. */
static uint64_t hear_reserved(struct connection *connection)
{
    const char *line = hear(connection);
    uint64_t id;

    if (strcmp(line, "TIMED_OUT") == 0)
        return 0;
    if (sscanf(line, "RESERVED %" SCNu64, &id) != 1) {
        fprintf(stderr, "beanstalk: RESERVED expected, not: %s\n", line);
        exit(1);
    }
    hear(connection); /* the payload: a no-op job does not read it */
    return id;
}

/* The simplest worker: reserve, run, delete, and the next. */
static uint64_t drain_serially(struct connection *connection, int64_t end)
{
    uint64_t jobs = 0, id;

    while (now_ns() < end) {
        say(connection, "reserve-with-timeout 0\r\n");
        flush(connection);
        id = hear_reserved(connection);
        if (id == 0)
            break;
        say(connection, "delete %" PRIu64 "\r\n", id);
        flush(connection);
        expect(connection, "DELETED");
        jobs++;
    }
    return jobs;
}

/* One turn of a pipelining worker: deletes the jobs that came and reserves as many new ones in one
 * write. Returns how many were deleted since its last turn. */
static uint32_t drain_turn(struct connection *connection, int more)
{
    uint32_t deleted = connection->deletes, reserved = 0, burst = connection->waiting;

    for (; connection->deletes > 0; connection->deletes--)
        expect(connection, "DELETED");
    for (; connection->waiting > 0; connection->waiting--) {
        uint64_t id = hear_reserved(connection);

        if (id == 0)
            continue;
        say(connection, "delete %" PRIu64 "\r\n", id);
        connection->deletes++;
        reserved++;
    }
    if (more && reserved > 0)
        for (; connection->waiting < burst; connection->waiting++)
            say(connection, "reserve-with-timeout 0\r\n");
    flush(connection);
    return deleted;
}

static void drain(struct connection **connections, uint32_t connections_count, double seconds,
                  uint32_t burst)
{
    int64_t start = now_ns(), end = start + (int64_t)(seconds * 1e9);
    uint64_t jobs = 0;
    uint32_t busy = connections_count;

    if (burst == 0) {
        jobs = drain_serially(connections[0], end);
        busy = 0;
    }
    for (uint32_t i = 0; i < connections_count && busy; i++) {
        for (; connections[i]->waiting < burst; connections[i]->waiting++)
            say(connections[i], "reserve-with-timeout 0\r\n");
        flush(connections[i]);
    }
    while (busy > 0) {
        busy = 0;
        for (uint32_t i = 0; i < connections_count; i++) {
            jobs += drain_turn(connections[i], now_ns() < end);
            busy += connections[i]->waiting > 0 || connections[i]->deletes > 0;
        }
    }
    printf("{\"rate\": %.1f, \"total\": %" PRIu64 "}\n",
           (double)jobs / ((double)(now_ns() - start) / 1e9), jobs);
}

/* The worker's thread: reserve, note how old the job is, delete. */
static void *work(void *argument)
{
    struct timing *timing = argument;
    struct connection *connection = timing->connection;

    for (uint32_t i = 0; i < timing->jobs_count; i++) {
        uint64_t id;
        int64_t sent_ns;
        const char *line;

        say(connection, "reserve\r\n");
        flush(connection);
        line = hear(connection);
        if (sscanf(line, "RESERVED %" SCNu64, &id) != 1)
            die("reserve");
        line = hear(connection);
        timing->times_ns[i] = now_ns();
        if (sscanf(line, "{\"sent_ns\":%" SCNd64, &sent_ns) != 1)
            die("payload");
        timing->times_ns[i] -= sent_ns;
        say(connection, "delete %" PRIu64 "\r\n", id);
        flush(connection);
        expect(connection, "DELETED");
    }
    return NULL;
}

static int compare_int64(const void *a, const void *b)
{
    int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;

    return left < right ? -1 : left > right;
}

static void latency(uint16_t port, uint32_t per_second, uint32_t jobs_count)
{
    struct timing *timing = calloc(1, sizeof *timing);
    struct connection *producer = connection_open(port);
    uint32_t skip = jobs_count / 10, kept = jobs_count - skip; /* the first ones warm up */
    int64_t start;
    pthread_t thread;

    if (!timing || jobs_count > JOBS_MAX)
        die("too many jobs");
    timing->connection = connection_open(port);
    timing->jobs_count = jobs_count;
    if (pthread_create(&thread, NULL, work, timing) != 0)
        die("thread");
    start = now_ns();
    for (uint32_t i = 0; i < jobs_count; i++) {
        int64_t due = start + (int64_t)i * 1000000000 / per_second;
        struct timespec at = {.tv_sec = due / 1000000000, .tv_nsec = due % 1000000000};
        char payload[128];

        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
        snprintf(payload, sizeof payload, "{\"sent_ns\":%" PRId64 ",\"body\":\"%s\"}", now_ns(),
                 "some text that makes it about as long as the other payloads are");
        say_put(producer, payload);
        flush(producer);
        expect(producer, "INSERTED");
    }
    pthread_join(thread, NULL);
    qsort(timing->times_ns + skip, kept, sizeof *timing->times_ns, compare_int64);
    printf("{\"p50_ms\": %.3f, \"p99_ms\": %.3f}\n",
           (double)timing->times_ns[skip + kept / 2] / 1e6,
           (double)timing->times_ns[skip + kept * 99 / 100] / 1e6);
    free(timing->connection);
    free(timing);
    free(producer);
}

int main(int argc, char **argv)
{
    struct connection *connections[CONNECTIONS_MAX];
    uint16_t port = argc > 1 ? (uint16_t)atoi(argv[1]) : 0;
    uint32_t count, burst;
    double seconds;

    if (argc == 5 && strcmp(argv[2], "latency") == 0) {
        latency(port, (uint32_t)atoi(argv[3]), (uint32_t)atoi(argv[4]));
        return 0;
    }
    if (argc < 6) {
        fprintf(stderr, "usage: beanstalk PORT put|drain SECONDS CONNECTIONS BURST [JOBS_MAX]\n");
        return 2;
    }
    seconds = atof(argv[3]);
    count = (uint32_t)atoi(argv[4]);
    burst = (uint32_t)atoi(argv[5]);
    if (count == 0 || count > CONNECTIONS_MAX || burst > BURST_MAX) {
        fprintf(stderr, "beanstalk: up to %d connections, bursts of up to %d\n", CONNECTIONS_MAX,
                BURST_MAX);
        return 2;
    }
    for (uint32_t i = 0; i < count; i++)
        connections[i] = connection_open(port);
    if (strcmp(argv[2], "put") == 0)
        put(connections, count, seconds, burst, argc > 6 ? (uint64_t)atoll(argv[6]) : UINT64_MAX);
    else
        drain(connections, count, seconds, burst);
    for (uint32_t i = 0; i < count; i++) {
        close(connections[i]->fd);
        free(connections[i]);
    }
    return 0;
}
