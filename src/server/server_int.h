/* The server's own state, for the files of src/server only. Loop thread, unless a field says
 * otherwise. */
#ifndef SERVER_SERVER_INT_H
#define SERVER_SERVER_INT_H

#include "core/service/service_view.h"
#include "server/call.h"
#include "server/door/auth.h"
#include "server/figures/services_heard.h"
#include "server/server.h"

#define CALL_REPLY_BYTES_MAX ((size_t)256 * 1024 * 1024) /* twice the largest array of a reply */
#define CALL_READ_BYTES_MAX ((size_t)64 * 1024 * 1024)   /* what one read may hold in memory */
#define CALL_STATUS_CLASSES 6                            /* 1xx to 5xx; 0 is not used */

struct door;
struct stream;
struct sampler;
struct consistency;

/* Figures of other parts of the program that this server shows. NULL = the part is not there. */
struct server_shown {
    struct span_export *spans;
    const struct service_views *services; /* services that this node calls */
    struct services_heard heard;          /* services that workers elsewhere call */
    struct consistency *consistency;
    const struct inbox_views *inboxes;
    const struct agent_views *agents;     /* what agents of this node did */
    const struct broker_views *brokers;   /* what this node consumes */
};

struct server {
    struct loop *loop;
    struct engine *engine;
    struct store *store;
    struct zones *zones;
    _Atomic(const struct settings *) settings; /* any thread reads them; see server_configure */
    struct log *log;
    struct http_server *http;
    struct tls *tls; /* NULL = clear text */
    struct readers *readers;
    struct door *door;
    struct stream *stream;
    struct sampler *sampler;
    struct server_shown shown;
    /* Asks the validator of a task type; NULL = this node has none. */
    bool (*ask_validator)(void *ctx, struct recovery_question *question);
    void *ask_ctx;
    struct auth auth;
    char address[HTTP_ADDRESS_BYTES];
    int64_t started_boot_us;
    struct api_call *waiting;  /* long-polls */
    uint32_t waiting_count;
    uint32_t calls_open;       /* requests not yet answered */
    int64_t replies[ROUTES_MAX + 1][CALL_STATUS_CLASSES]; /* the last row: no route matched */
    int64_t read_errors; /* disk errors that readers met */
    bool draining; /* claims are answered without tasks, because a stop is near */
    bool stopping;
    bool http_closed;
    void (*closed)(void *ctx);
    void *closed_ctx;
    struct loop_item closed_item;
    struct loop_timer *stop_timer;
};

/* api_backup.c: checks that backups may go into the configured folder. `real` (PATH_MAX bytes) gets
 * its path without links. */
int backup_check_folder(const struct settings *settings, char *real, struct err *err);

/* server.c: ends internal work that was counted in calls_open. */
void server_work_ended(struct server *server);

/* server.c: limits clients without a credential, or lifts the limit. Called when the first token is
 * made and when the last one is revoked. */
void server_limit_strangers(struct server *server);

/* api_queues.c, api_stats.c: shared by several replies. */
void api_write_counts(struct buf *out, const int64_t counts[STATUS_COUNT]);

#endif
