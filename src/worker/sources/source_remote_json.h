/* The worker's routes as JSON: what is sent, and what the answers mean. Pure, no network. */
#ifndef WORKER_SOURCES_SOURCE_REMOTE_JSON_H
#define WORKER_SOURCES_SOURCE_REMOTE_JSON_H

#include "base/json.h"
#include "worker/sources/source.h"

void remote_write_register(struct buf *out, const struct source_worker *worker);
/* queues and types are JSON arrays made at the registration; types may be absent. */
void remote_write_claim(struct buf *out, struct str queues, struct str types,
                        struct str services, uint32_t max, int64_t wait_ms);
void remote_write_strings(struct buf *out, const struct str *texts, uint32_t count);
void remote_write_reports(struct buf *out, const struct report *reports, uint32_t count);
/* holds NULL = it calls no services; days_count 0 = no agent of it has a budget of a day. */
void remote_write_heartbeat(struct buf *out, const struct held *held, uint32_t count,
                            const struct service_hold *holds, uint32_t holds_count,
                            struct str process, const struct agent_day *days,
                            uint32_t days_count, struct str figures);
/* How many there are in the answer to a heartbeat. */
uint32_t remote_read_holds(struct str body, struct arena *arena,
                           struct service_hold holds[SERVICE_HOLDS_MAX]);
uint32_t remote_read_days(struct str body, struct arena *arena,
                          struct agent_day days[AGENT_DAYS_MAX]);

/* The answers; body is checked here. -ERR_IO when it is not what the interface says. Texts of works
 * point into body, which must live as long. */
int remote_read_register(struct str body, struct arena *arena,
                         struct source_registration *registered, struct err *err);
int remote_read_claim(struct str body, uint32_t max, struct arena *arena, struct work **works,
                      uint32_t *count, struct err *err);
int remote_read_reports(struct str body, struct report_result *results, uint32_t count,
                        struct err *err);
int remote_read_heartbeat(struct str body, const struct held *held, uint32_t count,
                          struct arena *arena, struct heartbeat_answer *answer, struct err *err);

#endif
