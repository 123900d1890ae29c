/* Reports of several parts: every element goes to the part that has its task. Where that is not
 * known, or the guess was wrong, the parts are asked one after the other; rounds of shares until no
 * element has a part left to ask. Elements of a part that is out of reach get that as their result
 * and the others are done all the same. Runs on the thread that brings the last share. */
#include "engine/stores/routes_int.h"

#include <stdlib.h>

static struct report_request *whole(const struct call *call)
{
    return (struct report_request *)call->request;
}

static bool was_refused(const struct report_result *result)
{
    return result->code == ERR_MALFORMED || result->code == ERR_INVALID ||
           result->code == ERR_TOO_LARGE;
}

/* The part to ask next, ROUTES_MAX = none is left. */
static uint32_t next_part(const struct call *call, uint32_t element)
{
    uint32_t hint = hint_get(call->routes, &whole(call)->reports[element].task_id);
    uint32_t left = routes_all(call->routes) & ~(uint32_t)call->tried[element];

    if (!left)
        return ROUTES_MAX;
    return hint < call->routes->count && left & 1u << hint ? hint : first_part(left);
}

static bool share_begin(struct call *call, uint32_t part)
{
    struct share *share = share_new(call, part);
    uint32_t count = whole(call)->count;

    if (!share)
        return false;
    share->as.report.count = 0;
    share->as.report.reports = arena_alloc_array(&share->arena, count,
                                                 sizeof *share->as.report.reports);
    share->as.report.results = arena_alloc_array(&share->arena, count,
                                                 sizeof *share->as.report.results);
    share->elements = arena_alloc_array(&share->arena, count, sizeof *share->elements);
    return share->as.report.reports && share->as.report.results && share->elements;
}

/* False when memory is out. */
static bool share_element(struct call *call, uint32_t part, uint32_t element)
{
    struct share *share;

    if (!call->shares[part] && !share_begin(call, part))
        return false;
    share = call->shares[part];
    share->elements[share->as.report.count] = element;
    share->as.report.reports[share->as.report.count++] = whole(call)->reports[element];
    call->tried[element] |= (uint8_t)(1u << part);
    return true;
}

static void refuse_memory(struct call *call)
{
    const struct err err = {.code = ERR_MEMORY, .text = "out of memory for a report; try again"};

    call_refuse(call, &err);
}

/* One after the other of the same task: all to one part, or the first would come last there. */
static uint32_t part_of(const struct call *call, uint32_t element, uint32_t before)
{
    const struct report_request *request = whole(call);

    if (before < element && uuid_eq(&request->reports[before].task_id,
                                    &request->reports[element].task_id))
        for (uint32_t i = 0; i < call->routes->count; i++)
            if (call->shares[i] && call->shares[i]->as.report.count > 0 &&
                call->shares[i]->elements[call->shares[i]->as.report.count - 1] == before)
                return i;
    return next_part(call, element);
}

void report_begin(struct call *call)
{
    struct report_request *request = whole(call);
    uint32_t before = UINT32_MAX;
    bool any = false;

    call->tried = calloc(request->count + 1, 1);
    if (!call->tried) {
        refuse_memory(call);
        return;
    }
    for (uint32_t i = 0; i < request->count; i++) {
        if (was_refused(&request->results[i]))
            continue;
        any = true;
        if (!share_element(call, part_of(call, i, before), i)) {
            refuse_memory(call);
            return;
        }
        before = i;
    }
    if (!any && !share_begin(call, 0)) /* still a word of the worker */
        refuse_memory(call);
    else
        call_submit_shares(call);
}

/* For these the worker sends all of it again, after it registered, or one by one. */
static bool fails_whole(enum err_code code)
{
    return code == ERR_NOT_FOUND || code == ERR_TOO_LARGE;
}

/* What one part says; what it does not know is for the next one. */
static void take_results(struct call *call, const struct share *share)
{
    const struct report_request *part = &share->as.report;

    if (part->base.err.code == ERR_NONE)
        call->any = true;
    else if (call->err.code == ERR_NONE || fails_whole(part->base.err.code))
        call->err = part->base.err;
    for (uint32_t i = 0; i < part->count; i++) {
        struct report_result *result = &whole(call)->results[share->elements[i]];
        bool lost = result->code != ERR_NONE && part->base.err.code == ERR_NONE &&
                    part->results[i].code == ERR_NOT_FOUND;

        if (part->base.err.code != ERR_NONE) {
            result->code = ERR_UNAVAILABLE;
            snprintf(result->message, sizeof result->message, "%.*s",
                     (int)sizeof result->message - 1, part->base.err.text);
        } else if (!lost) { /* no other part has it, but one that did not answer may */
            *result = part->results[i];
        }
        if (part->base.err.code == ERR_NONE && part->results[i].code != ERR_NOT_FOUND) {
            hint_put(call->routes, &part->reports[i].task_id, share->part->index);
            call->tried[share->elements[i]] = UINT8_MAX;
        }
    }
}

/* When the part that has the task is known, no other is asked. */
static bool needs_more(const struct call *call, uint32_t element)
{
    const struct report_request *request = whole(call);
    enum err_code code = request->results[element].code;

    if (code == ERR_UNAVAILABLE &&
        hint_get(call->routes, &request->reports[element].task_id) < ROUTES_MAX)
        return false;
    return (code == ERR_NOT_FOUND || code == ERR_UNAVAILABLE) &&
           next_part(call, element) < ROUTES_MAX;
}

static bool is_any_decided(const struct call *call)
{
    const struct report_request *request = whole(call);

    for (uint32_t i = 0; i < request->count; i++)
        if (request->results[i].code != ERR_UNAVAILABLE)
            return true;
    return request->count == 0 && call->any;
}

void report_merge(struct call *call)
{
    bool more = false;

    for (uint32_t i = 0; i < call->routes->count; i++) {
        if (!call->shares[i])
            continue;
        take_results(call, call->shares[i]);
        share_free(call->shares[i]);
        call->shares[i] = NULL;
    }
    for (uint32_t i = 0; !fails_whole(call->err.code) && i < whole(call)->count; i++) {
        if (!needs_more(call, i))
            continue;
        more = true;
        if (!share_element(call, next_part(call, i), i)) {
            refuse_memory(call);
            return;
        }
    }
    if (more) {
        call_submit_shares(call);
        return;
    }
    /* A part that does not know the worker: it registers again and repeats all of it, which does
     * no harm. Otherwise the whole fails only where nothing of it could be done. */
    if (fails_whole(call->err.code) || !call->any || !is_any_decided(call))
        call->request->err = call->err;
    call_answer(call);
}
