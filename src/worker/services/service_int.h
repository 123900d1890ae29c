/* What the parts of a service pool share: the pool, a line for each service, and calls. A line is
 * the calls of one service that wait or run, with what limits them. One thread makes all calls
 * (service_loop.c). The worker's claimer asks the pool how many tasks it has room for. Lock order:
 * the worker's lock, then the pool's. */
#ifndef WORKER_SERVICES_SERVICE_INT_H
#define WORKER_SERVICES_SERVICE_INT_H

#include <curl/curl.h>
#include <pthread.h>

#include "core/bounds.h"
#include "core/rate.h"
#include "core/service/breaker.h"
#include "core/service/service_outcome.h"
#include "core/service/service_url.h"
#include "worker/services/service_grpc.h"
#include "worker/services/service_pool.h"
#include "worker/worker_dispatch.h"

/* The line of one service. A reload makes new lines, which take over the state of the old ones; an
 * old line is freed after its last call. */
struct service_line {
    struct service_pool *pool;
    const struct service_rule *rule;
    struct str *types; /* patterns of what it runs */
    uint32_t types_count;
    /* Under the pool's lock: */
    uint32_t held; /* tasks that were claimed and whose end has not been reported */
    struct breaker breaker;
    int64_t not_before_us; /* the service asked for no calls before this time; boot time */
    int64_t heard_us;      /* until when other workers said that it is not to be called, ... */
    int64_t told_us;       /* ... and this one did: its own word comes back to it */
    struct bucket bucket;
    struct service_known *known; /* of this name, in all configurations */
    struct service_figures *figures; /* of `known` */
    /* The loop's own: */
    CURLM *multi; /* one per line: connections are never shared between services */
    int64_t timer_us; /* when libcurl wants to be called; INT64_MAX = never */
    struct service_call *first, *last; /* calls that wait to begin */
    int64_t due_us; /* when the first of them can begin; 0 = now */
    uint32_t calls_count;
    struct grpc_line *grpc; /* NULL = it speaks HTTP */
    struct service_call *probe; /* under way; NULL = none */
    int64_t probe_due_us;
};

/* A type that a handler sends to a service. */
struct service_route {
    struct str type;
    struct str method;
    struct service_line *line;
};

/* The figures of a service by its name. The pool keeps them for as long as it lives, also for
 * services that a reload removed. */
struct service_known {
    struct service_figures figures;
    struct service_figures told; /* of these, what the server knows */
    struct service_known *next;
    char name[BOUND_SERVICE_BYTES + 1];
};

/* The services of one configuration. */
struct service_set {
    struct arena arena;
    struct service_line *lines;
    uint32_t lines_count;
    struct service_route *routes;
    uint32_t routes_count;
    const struct str *types; /* as registered */
    uint32_t types_count;
    struct service_set *older;
};

enum call_phase { CALL_WAITS, CALL_LOOKS_UP, CALL_RUNS, CALL_ENDED, CALL_PROBES };

/* One claimed task: from the claim until its end is with the reporter. */
struct service_call {
    struct service_call *next, *previous; /* of the line's waiting ones, or of all others */
    struct worker *worker;
    struct run *run;
    struct service_line *line; /* NULL = there is no service of this name */
    struct str method;         /* in the work, or of a route */
    struct str key;            /* Idempotency-Key; absent = the id of the task */
    enum call_phase phase;
    CURL *easy;
    struct grpc_stream *stream; /* in place of easy */
    struct curl_slist *headers;
    struct curl_slist *connect_to;
    struct buf body;       /* of the answer */
    size_t received_bytes; /* of head and body */
    bool too_large;
    bool is_async;
    bool has_url;          /* a URL to say how it ended went with it */
    bool begun;            /* it may have reached the service */
    int64_t began_us;
    int64_t deadline_us;
    int64_t limit_ms; /* the timeout behind the deadline, for the error message */
    struct arena arena; /* of the report */
    struct report report;
    struct str identity; /* of the attempt, made here at proved_us; 0 = not yet */
    int64_t proved_us;
    char token[CALL_TOKEN_CHARS + 1];
    struct str words; /* of the service, at the end of the report's error; absent = none */
    char reason[CURL_ERROR_SIZE];
};

struct call_list {
    struct service_call *first, *last;
};

/* A thread beside the loop that signs for calls which wait for it: that takes a third of the time
 * of a call. Under the pool's lock. */
struct service_signer {
    pthread_t thread;
    pthread_cond_t due;
    struct call_list calls; /* behind those in `come`, before the next ones */
    bool runs;
    bool busy; /* it has some in hand */
    bool over;
};

/* What goes to a server elsewhere with the next heartbeat. */
struct service_news {
    struct buf text; /* empty = the server has heard it */
    int64_t serial;
    uint32_t at;     /* the line to begin with */
};

struct service_pool {
    const struct log *log;
    struct worker *worker;
    struct worker_dispatch dispatch;
    struct slot slot;
    struct service_proofs proofs;
    struct source_holds holds;
    struct source_figures telling;
    uint32_t max;
    pthread_mutex_t lock; /* for the fields up to the next comment */
    struct service_set *set;
    struct call_list come; /* new calls, which the loop has not seen yet */
    struct service_signer signer;
    struct run *refused; /* tasks to give back: there was no memory for a call */
    struct service_known *known;
    struct service_news news;
    uint32_t held;
    bool over; /* the loop ends once `held` is 0 */
    /* The claimer's own: */
    struct str *want_types;
    struct str *want_services;
    uint32_t want_cap;
    bool narrow; /* the next claim includes services with little room */
    /* The loop's own: */
    pthread_t thread;
    bool runs;
    int epoll_fd;
    int wake_fd;
    struct service_call *calls;  /* running */
    struct service_call *unsent; /* ended, but the reporter has not taken their reports yet */
    struct service_line **owners; /* the line of each socket, by its descriptor */
    uint32_t owners_cap;
};

/* service_line.c; under the pool's lock. How many more tasks the line may claim. */
uint32_t line_room(const struct service_line *line, int64_t now_us);
/* When waiting alone makes room again; INT64_MAX = never, an end must come first. */
int64_t line_opens_us(const struct service_line *line, int64_t now_us);
/* Takes a permit of breaker and rate for a call. False: the call waits until due_us, or with
 * *give_back its task must go back to the queue. */
bool line_begin(struct service_line *line, int64_t now_us, bool *give_back);
void line_end(struct service_line *line, const struct service_verdict *verdict, int64_t now_us);
void line_wait(struct service_line *line, int64_t wait_ms, int64_t now_us);

/* service_hold.c: what this pool tells other workers of its services, and hears of them. */
uint32_t holds_tell(void *pool, struct service_hold *out, uint32_t max);
void holds_hear(void *pool, const struct service_hold *holds, uint32_t count);

/* service_set.c */
struct service_set *service_set_new(struct service_pool *pool, const struct settings *settings,
                                    struct err *err);
void service_set_free(struct service_set *set);
struct service_line *service_set_find(struct service_set *set, struct str type,
                                      struct str *method);

/* service_call.c: makes the request; -ERR_INVALID when the task does not fit the method. */
int call_prepare(struct service_call *call, struct str method, struct err *err);
void call_clear(struct service_call *call); /* frees the transfer, keeps its outcome */
/* The method that asks whether an interrupted call took effect; absent = the service has none. */
struct str call_lookup(const struct service_call *call);

/* service_proofs.c: by which the service knows the attempt, and where it says how it ended; in the
 * call's arena. Absent where there is none; false without memory. */
bool call_prove(struct service_call *call, struct str *identity, struct str *complete_url);
void *service_signer_main(void *pool);
/* Under the pool's lock: a new call, for the loop. True: it has to be woken. */
bool call_come(struct service_pool *pool, struct service_call *call);

/* service_headers.c: the headers of an attempt, and those of the configuration. False when `add`
 * gave false. */
bool call_each_header(struct service_call *call,
                      bool (*add)(void *ctx, struct str name, struct str value, bool is_secret),
                      void *ctx);

/* service_tls.c */
int call_set_tls(struct service_call *call, struct err *err);

/* service_answer.c: the report of a call's end, in its arena. */
void answer_failed(struct service_call *call, const char *code, bool retryable,
                   struct str message);
void answer_judge(struct service_call *call, CURLcode code, struct service_verdict *verdict);
void answer_too_large(struct service_call *call, struct service_verdict *verdict);
bool answer_holds_secret(const struct service_call *call, struct str text);

/* service_probe.c */
static inline bool service_has_health(const struct service_rule *rule)
{
    return rule->health_path.data || rule->health_method.data;
}
int probe_prepare(struct service_call *probe, struct err *err);
void probe_begin(struct service_line *line);
void probe_end(struct service_call *probe, CURLcode code);
void probe_free(struct service_call *probe);

/* service_views.c */
void views_count(struct service_call *call, const struct service_verdict *verdict);
void views_fill(const struct service_line *line, struct service_view *view); /* no figures */

/* service_tell.c: what the pool tells a server elsewhere, with the heartbeats */
struct str figures_tell(void *pool);
void figures_heard(void *pool);

/* service_loop.c */
void *service_loop_main(void *pool);

/* service_poll.c */
void service_poll_wake(struct service_pool *pool);
int service_poll_attach(struct service_line *line, struct err *err);
/* Events of epoll that the line wants of this descriptor; 0 = none any more. */
int service_poll_watch(struct service_line *line, int fd, uint32_t events);

#endif
