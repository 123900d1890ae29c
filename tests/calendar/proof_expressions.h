/* The expressions of the proof: written ones that have something particular, and others that are
 * made up from a fixed seed, so that every run has the same. */
#ifndef TESTS_CALENDAR_PROOF_EXPRESSIONS_H
#define TESTS_CALENDAR_PROOF_EXPRESSIONS_H

#include <stddef.h>

#define PROOF_EXPRESSION_BYTES 176

size_t proof_expressions_count(void);
/* Number `index`, into text with PROOF_EXPRESSION_BYTES. */
void proof_expression(size_t index, char *text);

#endif
