/* The work protocol's bodies as structs: report, heartbeat, claim, register. A hot path: nothing is
 * copied that needs no decoding. Texts point into the body or the arena, except where noted. Pure,
 * any thread. */
#ifndef SERVER_PARSE_REPORT_H
#define SERVER_PARSE_REPORT_H

#include "base/arena.h"
#include "core/service/service_told.h"
#include "core/task/report.h"
#include "engine/engine.h"

struct report_item {
    struct str task_id;        /* JSON as it was given, absent = not given */
    struct report_result *bad; /* its own error; NULL = it is the next one of `reports` */
};

struct report_batch {
    struct report *reports; /* the well-formed ones, in order */
    uint32_t count;
    struct report_item *items; /* all of them */
    uint32_t items_count;
};

/* -ERR_MALFORMED: no JSON; -ERR_INVALID: no array; -ERR_TOO_LARGE: more than BOUND_REPORT_ELEMENTS.
 * A malformed element is an item with its own error. Sizes are left to engine_prepare_reports. */
int parse_reports(struct str body, struct arena *arena, struct report_batch *batch,
                  struct err *err);

/* task_ids stays NULL without `tasks`: all it holds. */
int parse_heartbeat(struct str body, struct arena *arena, struct heartbeat_request *request,
                    struct services_told *told, struct err *err);
/* parse_services.c: its members about services. */
struct body_field;
int parse_services(const struct body_field *serial, const struct body_field *field,
                   struct arena *arena, struct services_told *told, struct err *err);

/* Everything is copied into the arena: a claim may wait, and its body is given back meanwhile. */
int parse_claim(struct str body, struct arena *arena, struct claim_request *request,
                struct err *err);

int parse_register(struct str body, struct arena *arena, struct register_request *request,
                   struct err *err);

#endif
