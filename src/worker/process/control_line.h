/* One line a handler wrote to its control descriptor, as a report. Pure: the line is untrusted
 * data, and whatever it holds becomes a report or one clear error sentence. */
#ifndef WORKER_PROCESS_CONTROL_LINE_H
#define WORKER_PROCESS_CONTROL_LINE_H

#include "base/arena.h"
#include "core/task/report.h"

/* Fills report's op and the fields of it; the caller adds task, lease and seq. A result becomes
 * REPORT_COMPLETE: like continue, fail and partial it holds when the handler exits with 0. Texts
 * point into line or live in arena. On a negative code err says what is wrong; report->op is the op
 * that was meant, or REPORT_OP_COUNT when that is not known either. */
int control_line_parse(struct str line, struct arena *arena, struct report *report,
                       struct err *err);

/* A report of this op with every optional field absent. */
struct report worker_report(enum report_op op);

#endif
