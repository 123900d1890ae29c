/* Whatever a handler writes to its control descriptor ends in a report or a sentence. */
#include <stddef.h>
#include <stdint.h>

#include "worker/process/control_line.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena = ARENA_INIT(8 * 1024 * 1024);
    struct report report;
    struct err err = {0};
    int rc = control_line_parse(str_span((const char *)data, size), &arena, &report, &err);

    ASSERT(rc < 0 ? err.code != ERR_NONE && err.text[0] : report.op < REPORT_OP_COUNT);
    ASSERT(!report.state.data || str_is_utf8(report.state));
    ASSERT(report.progress >= -1 && report.progress <= 100);
    arena_deinit(&arena);
    return 0;
}
