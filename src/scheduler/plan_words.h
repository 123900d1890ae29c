/* When a schedule or a pattern fires, said in words: "At 09:00, Monday to Friday (Europe/Berlin)".
 * Pure, any thread. */
#ifndef SCHEDULER_PLAN_WORDS_H
#define SCHEDULER_PLAN_WORDS_H

#include "base/buf.h"
#include "core/plan.h"

#define PLAN_WORDS_BYTES_MAX 4096 /* the longest expression says less; longer ones are cut off */

void plan_words_schedule(const struct schedule *schedule, const struct plan *plan,
                         struct buf *out);
void plan_words_recurring(const struct plan *plan, struct buf *out);
/* Without a fraction where it has none: 2027-03-28T01:00:00Z. */
void plan_words_time(int64_t time_us, struct buf *out);

#endif
