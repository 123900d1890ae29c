/* Inside of the server; no file outside this folder includes it. Loop thread, but where noted. */
#ifndef SERVER_SERVER_INT_H
#define SERVER_SERVER_INT_H

#include "core/service/service_view.h"
#include "server/call.h"
#include "server/door/auth.h"
#include "server/server.h"

#define CALL_REPLY_BYTES_MAX ((size_t)256 * 1024 * 1024) /* twice the largest array, replied */
#define CALL_READ_BYTES_MAX ((size_t)64 * 1024 * 1024)   /* what one read may hold in memory */
#define CALL_STATUS_CLASSES 6                            /* 1xx to 5xx; 0 is not used */

struct door;
struct stream;
struct sampler;

/* What others count and this server shows. */
struct server_shown {
    struct span_export *spans;            /* NULL = not exported */
    const struct service_views *services; /* NULL = this node calls none */
    const struct agent_views *agents;     /* NULL = it has none */
};

struct server {
    struct loop *loop;
    struct engine *engine;
    struct store *store;
    struct zones *zones;
    _Atomic(const struct settings *) settings; /* may be read again: server_configure */
    struct log *log;
    struct http_server *http;
    struct tls *tls; /* NULL = clear text */
    struct readers *readers;
    struct door *door;
    struct stream *stream;
    struct sampler *sampler;
    struct server_shown shown;
    bool (*ask_validator)(void *ctx, struct recovery_question *question); /* NULL = none can */
    void *ask_ctx;
    struct auth auth;
    char address[HTTP_ADDRESS_BYTES];
    int64_t started_boot_us;
    struct api_call *waiting;  /* long-polls */
    uint32_t waiting_count;
    uint32_t calls_open;       /* requests not yet answered */
    int64_t replies[ROUTES_MAX + 1][CALL_STATUS_CLASSES]; /* the last row: no route */
    int64_t read_errors; /* of the disk, met by readers */
    bool draining; /* grants no claims any more */
    bool stopping;
    bool http_closed;
    void (*closed)(void *ctx);
    void *closed_ctx;
    struct loop_item closed_item;
    struct loop_timer *stop_timer;
};

/* api_backup.c: 0, and the folder without links, when backups may go there; it is PATH_MAX long. */
int backup_check_folder(const struct settings *settings, char *real, struct err *err);

/* server.c: something of the server's own is over that was counted in calls_open */
void server_work_ended(struct server *server);

/* server.c: the first token was made, or the last one revoked */
void server_limit_strangers(struct server *server);

/* api_queues.c, api_stats.c: shared by several replies. */
void api_write_counts(struct buf *out, const int64_t counts[STATUS_COUNT]);

#endif
