/* What the parts of a service pool share: the pool, its services (lines), and calls. One thread
 * makes all calls (service_loop.c); the claimer of the worker asks for room. The pool's lock is
 * taken inside the worker's, never around it. */
#ifndef WORKER_SERVICES_SERVICE_INT_H
#define WORKER_SERVICES_SERVICE_INT_H

#include <curl/curl.h>
#include <pthread.h>

#include "core/bounds.h"
#include "core/rate.h"
#include "core/service/breaker.h"
#include "core/service/service_outcome.h"
#include "core/service/service_url.h"
#include "worker/services/service_pool.h"
#include "worker/worker_dispatch.h"

/* A service as this pool sees it. A configuration that is read again makes new ones, which take
 * over what is known; the old ones end with their calls. */
struct service_line {
    struct service_pool *pool;
    const struct service_rule *rule;
    struct str *types; /* patterns of what it runs */
    uint32_t types_count;
    /* Under the pool's lock: */
    uint32_t held; /* claimed, their end not reported yet */
    struct breaker breaker;
    int64_t not_before_us; /* the service asked not to be called before; boot time */
    struct bucket bucket;
    struct service_figures *figures; /* of this name, in all configurations */
    /* The loop's own: */
    CURLM *multi; /* one per line: connections are never shared between services */
    int64_t timer_us; /* when libcurl wants to be called; INT64_MAX = never */
    struct service_call *first, *last; /* claimed, not begun */
    int64_t due_us; /* when the first of them can begin; 0 = now */
    uint32_t calls_count;
    struct service_call *probe; /* under way; NULL = none */
    int64_t probe_due_us;
};

/* A type that a handler sends to a service. */
struct service_route {
    struct str type;
    struct str method;
    struct service_line *line;
};

/* What is known of a name; the pool keeps all of them. */
struct service_known {
    struct service_figures figures;
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
    struct service_line *line; /* NULL = no service is known for it */
    struct str method;         /* in the work, or of a route */
    struct str key;            /* Idempotency-Key; absent = the id of the task */
    enum call_phase phase;
    CURL *easy;
    struct curl_slist *headers;
    struct curl_slist *connect_to;
    struct buf body;       /* of the answer */
    size_t received_bytes; /* of head and body */
    bool too_large;
    bool is_async;
    bool begun;            /* it may have reached the service */
    int64_t began_us;
    int64_t deadline_us;
    int64_t limit_ms; /* what its deadline comes from, for the sentence */
    struct arena arena; /* of the report */
    struct report report;
    char reason[CURL_ERROR_SIZE];
};

struct service_pool {
    const struct log *log;
    struct worker *worker;
    struct worker_dispatch dispatch;
    struct slot slot;
    uint32_t max;
    pthread_mutex_t lock; /* all up to the next line */
    struct service_set *set;
    struct service_call *come_first, *come_last;
    struct run *refused; /* without memory for a call */
    struct service_known *known;
    uint32_t held;
    bool over;
    /* the claimer's own: */
    struct str *want_types;
    uint32_t want_cap;
    bool narrow; /* the next claim is for services with little room too */
    /* the loop's own: */
    pthread_t thread;
    bool runs;
    int epoll_fd;
    int wake_fd;
    struct service_call *calls;  /* under way */
    struct service_call *unsent; /* ended, not with the reporter yet */
    struct service_line **owners; /* of descriptors, by their number */
    uint32_t owners_cap;
};

/* service_line.c; under the pool's lock. */
uint32_t line_room(const struct service_line *line, int64_t now_us);
/* When there may be room again, as far as time decides; INT64_MAX = not by time. */
int64_t line_opens_us(const struct service_line *line, int64_t now_us);
/* Takes what a call needs; false: not now, see due_us, or given_back: not here at all. */
bool line_begin(struct service_line *line, int64_t now_us, bool *give_back);
void line_end(struct service_line *line, const struct service_verdict *verdict, int64_t now_us);
void line_wait(struct service_line *line, int64_t wait_ms, int64_t now_us);

/* service_set.c */
struct service_set *service_set_new(struct service_pool *pool, const struct settings *settings,
                                    struct err *err);
void service_set_free(struct service_set *set);
struct service_line *service_set_find(struct service_set *set, struct str type,
                                      struct str *method);

/* service_call.c: makes the request; -ERR_INVALID when the task does not fit the method. */
int call_prepare(struct service_call *call, struct str method, struct err *err);
void call_clear(struct service_call *call); /* of the transfer, not of what came of it */
struct str call_lookup(const struct service_call *call); /* the method to ask; absent = none */

/* service_tls.c */
int call_set_tls(struct service_call *call, struct err *err);

/* service_answer.c: the report of a call's end, in its arena. */
void answer_failed(struct service_call *call, const char *code, bool retryable,
                   struct str message);
void answer_judge(struct service_call *call, CURLcode code, struct service_verdict *verdict);

/* service_probe.c */
int probe_prepare(struct service_call *probe, struct err *err);
void probe_begin(struct service_line *line);
void probe_end(struct service_call *probe, CURLcode code);
void probe_free(struct service_call *probe);

/* service_views.c */
void views_count(struct service_call *call, const struct service_verdict *verdict);

/* service_loop.c */
void *service_loop_main(void *pool);
void service_loop_wake(struct service_pool *pool);
int service_loop_attach(struct service_pool *pool, struct service_line *line, struct err *err);

#endif
