/* Shared by the two files of the workload only. */
#ifndef TESTS_STORE_WORKLOAD_INT_H
#define TESTS_STORE_WORKLOAD_INT_H

#include "workload.h"

void workload_payload(const struct workload *w, uint32_t task, struct buf *out);
void workload_result(uint32_t task, struct buf *out);

#endif
