/* Why a report was refused, as a line in the log of the execution it was about: that is where the
 * author of the handler looks, and the only place with room for names and values; the log of the
 * server has neither. Bounded per lease, so that a worker that sends the same again and again fills
 * nothing. The queue's thread. */
#include "base/hash.h"
#include "core/log/redact.h"
#include "engine/batch.h"
#include "engine/engine_state.h"
#include "engine/tasks/reports.h"

#define LINE_BYTES_MAX 1024
#define LAST_WORDS " (further refusals of this attempt are not logged)"
#define LINE_CPU_US_MAX 10000 /* to redact it; all requests wait for this thread */

/* How many lines its lease has got, this one included; what shares its place is forgotten. */
static uint32_t count_told(struct engine *engine, const struct task *task)
{
    uint64_t hash = hash_bytes64(task->id.bytes, sizeof task->id.bytes, 0);
    struct refusals_told *told = &engine->refusals[hash % REFUSALS_KNOWN];

    if (!uuid_eq(&told->task_id, &task->id) || told->lease_token != task->lease.token)
        *told = (struct refusals_told){.task_id = task->id, .lease_token = task->lease.token};
    return told->count <= REFUSALS_TOLD_MAX ? ++told->count : told->count;
}

/* A failure of ours is no news for the handler, and a lost lease has no log any more. */
static bool is_worth_telling(const struct batch *batch, const struct report_result *result)
{
    return err_http_status(result->code) < 500 && result->code != ERR_STALE_LEASE &&
           !batch->store->full;
}

bool report_refusal_line(struct batch *batch, const struct task *task, const struct report *report,
                         const struct report_result *result, struct report *line)
{
    int64_t left_us = LINE_CPU_US_MAX;
    char text[LINE_BYTES_MAX];
    uint32_t told;

    if (!is_worth_telling(batch, result))
        return false;
    told = count_told(batch->engine, task);
    if (told > REFUSALS_TOLD_MAX)
        return false;
    snprintf(text, sizeof text, "%s was refused: %s%s", report_op_word(report->op),
             result->message, told == REFUSALS_TOLD_MAX ? LAST_WORDS : "");
    *line = (struct report){.op = REPORT_LOG,
                            .level = SEVERITY_WARN,
                            .message = arena_str(&batch->arena, str_of(text)),
                            .context = batch_text(batch, "{\"refused\":\"%s\",\"code\":\"%s\"}",
                                                  report_op_word(report->op),
                                                  err_word(result->code))};
    return line->message.data && line->context.data &&
           redact_line(batch->engine->redact, &line->message, &line->context, &batch->arena,
                       &left_us) == 0;
}
