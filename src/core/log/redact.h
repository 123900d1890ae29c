/* Takes out of log lines what must not be stored (D9): texts that match a pattern, values that a
 * JSON pointer names. Runs before a line reaches the engine, so that nothing of it is ever on the
 * disk. Pure; a set of compiled rules may be used by any number of threads. */
#ifndef CORE_LOG_REDACT_H
#define CORE_LOG_REDACT_H

#include "base/arena.h"
#include "base/err.h"
#include "core/settings.h"

#define REDACT_RULES_MAX 64
#define REDACT_PATTERN_BYTES_MAX 1000
#define REDACT_REPLACE_BYTES_MAX 100
#define REDACT_MATCHES_MAX 1000   /* of one rule in one text; then the rest of the text goes */
#define REDACT_CPU_US_MAX 50000   /* of one rule for one text; then the same */
#define REDACT_REPORT_CPU_US_MAX 100000 /* of all lines of one report; then the same of each */
#define REDACT_MARGIN_BYTES 4096  /* looked at beyond the longest line: its end may cut a match */

struct redact;

/* Is it a pattern that compiles or a pointer, with known fields? The sentence says why not. */
int redact_rule_check(const struct redact_rule *rule, struct err *err);

/* *redact is NULL when there are no rules. The rules live as long as it. */
int redact_new(struct redact **redact, const struct redact_rule *rules, uint32_t count,
               struct err *err);
void redact_free(struct redact *redact);

/* Message and context (JSON that json_check accepted, or absent) as they may be stored; in arena
 * where they changed. *left_us: what its report may still cost. -ERR_MEMORY: neither may be. */
int redact_line(const struct redact *redact, struct str *message, struct str *context,
                struct arena *arena, int64_t *left_us);

#endif
