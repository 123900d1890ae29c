/* The HTTP API over the queue and the store's readers. It parses, permits and answers; it holds no
 * rules. Everything runs on the loop thread, but for reading verbs (a small pool of threads of its
 * own) and server_notes. */
#ifndef SERVER_SERVER_H
#define SERVER_SERVER_H

#include "base/log.h"
#include "calendar/zones.h"
#include "core/settings.h"
#include "net/loop.h"
#include "net/tls.h"
#include "engine/engine.h"
#include "store/store.h"

struct server;

/* Listens on settings->listen at once; requests are served as soon as the loop runs. Refuses an
 * address beyond loopback without a token. Everything handed in outlives the server. */
struct server *server_open(struct loop *loop, struct engine *engine, struct store *store,
                           struct zones *zones, const struct settings *settings, struct log *log,
                           struct err *err);

/* Settings that were read again, for the next request; they outlive the server. The loop's
 * thread. */
void server_configure(struct server *server, const struct settings *settings);
/* What server_configure would refuse: a file that settings name and that cannot be used. Any
 * thread. */
int server_check_settings(const struct settings *settings, struct err *err);

/* Reads the files of TLS again, whether they changed or not; without TLS nothing happens. */
void server_read_certificates(struct server *server);
/* Its cert is absent where settings ask for clear text. */
struct tls_config server_tls_config(const struct settings *settings);

/* Whose counters /metrics shows; NULL = spans are not exported. Before the loop runs. */
struct span_export;
void server_show_spans(struct server *server, struct span_export *spans);
/* What the services of this node are like; lives as long as the server. Before the loop runs. */
struct service_views;
void server_show_services(struct server *server, const struct service_views *services);
/* The same for its inboxes. */
struct inbox_views;
void server_show_inboxes(struct server *server, const struct inbox_views *inboxes);
/* What proves calls of services; lives as long as the server. Before the loop runs. */
struct call_keys;
void server_check_calls(struct server *server, const struct call_keys *keys);
/* The same for what its agents did. */
struct agent_views;
void server_show_agents(struct server *server, const struct agent_views *agents);

/* The same for the brokers it consumes; NULL = none. */
struct broker_views;
void server_show_brokers(struct server *server, const struct broker_views *brokers);

/* Sets the function that asks validators of task types; without it none is asked. It returns false
 * for "not now". Call this before the loop runs; ctx must live until the server is freed. */
void server_ask_validators(struct server *server,
                           bool (*ask)(void *ctx, struct recovery_question *question), void *ctx);

/* The address really bound, "127.0.0.1:7070"; valid as long as the server. */
const char *server_address(const struct server *server);

/* What changed, for GET /v1/stream: called from the queue's on_notes, any thread. */
void server_notes(struct server *server, const struct task_note *notes, uint32_t count);

/* From here on no claim is granted; everything else is served as before, so that running handlers
 * can report their end. */
void server_drain(struct server *server);

/* Drains: accepts no connection, ends long-polls and streams, lets running requests end, at most
 * for grace_us. closed(ctx) is called once, later, on the loop thread, when no request is under
 * way; for that the queue must still be answering. */
void server_stop(struct server *server, int64_t grace_us, void (*closed)(void *ctx), void *ctx);

/* After server_stop has said closed, or when neither the loop nor the queue runs any more. */
void server_free(struct server *server);

#endif
