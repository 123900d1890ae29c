/* The words of report.h, each in one table. Pure; any thread. */
#include "core/task/report.h"

#include "base/enum_words.h"
#include "core/bounds.h"

#include <stddef.h>

static const char *const op_words[REPORT_OP_COUNT] = {
    [REPORT_START] = "start",       [REPORT_PROGRESS] = "progress",
    [REPORT_CHECKPOINT] = "checkpoint", [REPORT_LOG] = "log",
    [REPORT_SPAWN] = "spawn",       [REPORT_COMPLETE] = "complete",
    [REPORT_CONTINUE] = "continue", [REPORT_FAIL] = "fail",
    [REPORT_PARTIAL] = "partial",   [REPORT_RELEASE] = "release",
    [REPORT_AWAIT] = "await",
};

static const char *const severity_words[SEVERITY_COUNT] = {"DEBUG", "INFO", "WARN", "ERROR",
                                                           "FATAL"};

/* Words other loggers use for the same thing. */
static const struct {
    const char *word;
    enum log_severity severity;
} severity_synonyms[] = {
    {"WARNING", SEVERITY_WARN},
    {"CRITICAL", SEVERITY_FATAL},
};

ENUM_WORDS(report_op, op_words);

const char *severity_word(enum log_severity severity)
{
    return severity_words[severity];
}

/* ASCII only: the C library's tolower depends on the locale. */
static bool is_word_any_case(struct str text, const char *upper)
{
    size_t i = 0;

    for (; i < text.len && upper[i]; i++) {
        char at = text.data[i];

        if (at >= 'a' && at <= 'z')
            at = (char)(at - 'a' + 'A');
        if (at != upper[i])
            return false;
    }
    return i == text.len && !upper[i];
}

bool severity_parse(struct str word, enum log_severity *severity)
{
    for (int i = 0; i < SEVERITY_COUNT; i++) {
        if (!is_word_any_case(word, severity_words[i]))
            continue;
        *severity = (enum log_severity)i;
        return true;
    }
    for (size_t i = 0; i < sizeof severity_synonyms / sizeof *severity_synonyms; i++) {
        if (!is_word_any_case(word, severity_synonyms[i].word))
            continue;
        *severity = severity_synonyms[i].severity;
        return true;
    }
    return false;
}

#define OP(op) (1u << REPORT_##op)
#define ALL_OPS ((1u << REPORT_OP_COUNT) - 1)
#define AT(member) offsetof(struct report, member)

const struct report_field report_fields[REPORT_FIELDS] = {
    {"task_id", REPORT_IS_ID, ALL_OPS, ALL_OPS, AT(task_id), 0, 0},
    {"lease_token", REPORT_IS_INT, ALL_OPS, ALL_OPS, AT(lease_token), 0, INT64_MAX},
    {"seq", REPORT_IS_INT, ALL_OPS, 0, AT(seq), 1, INT64_MAX},
    {"op", REPORT_IS_OP, ALL_OPS, ALL_OPS, AT(op), 0, 0},
    {"result", REPORT_IS_JSON, OP(COMPLETE) | OP(PARTIAL), 0, AT(result), 0, 0},
    {"progress", REPORT_IS_INT, OP(PROGRESS) | OP(CHECKPOINT), 0, AT(progress), 0, 100},
    {"state", REPORT_IS_TEXT, OP(PROGRESS), 0, AT(state), 0, 0},
    {"data", REPORT_IS_JSON, OP(PROGRESS) | OP(CHECKPOINT) | OP(CONTINUE), 0, AT(data), 0, 0},
    {"metadata", REPORT_IS_OBJECT, OP(PROGRESS), 0, AT(metadata), 0, 0},
    {"detail", REPORT_IS_JSON, OP(PROGRESS), 0, AT(detail), 0, 0},
    {"name", REPORT_IS_TEXT, OP(CHECKPOINT) | OP(AWAIT), OP(CHECKPOINT) | OP(AWAIT), AT(name), 0,
     0},
    {"description", REPORT_IS_TEXT, OP(CHECKPOINT), 0, AT(description), 0, 0},
    {"database_state", REPORT_IS_JSON, OP(CHECKPOINT), 0, AT(database_state), 0, 0},
    {"file_state", REPORT_IS_JSON, OP(CHECKPOINT), 0, AT(file_state), 0, 0},
    {"level", REPORT_IS_LEVEL, OP(LOG), 0, AT(level), 0, 0},
    {"message", REPORT_IS_TEXT, OP(LOG), OP(LOG), AT(message), 0, 0},
    {"context", REPORT_IS_JSON, OP(LOG), 0, AT(context), 0, 0},
    {"tasks", REPORT_IS_ARRAY, OP(SPAWN), OP(SPAWN), AT(tasks), 0, 0},
    {"delay_ms", REPORT_IS_INT, OP(CONTINUE), 0, AT(delay_ms), 0, BOUND_DELAY_MS},
    {"wait_children", REPORT_IS_BOOL, OP(CONTINUE), 0, AT(wait_children), 0, 0},
    {"question", REPORT_IS_TEXT, OP(CONTINUE), 0, AT(question), 0, 0},
    {"error", REPORT_IS_TEXT, OP(FAIL), 0, AT(error), 0, 0},
    {"details", REPORT_IS_JSON, OP(FAIL), 0, AT(details), 0, 0},
    {"retryable", REPORT_IS_BOOL, OP(FAIL), 0, AT(retryable), 0, 0},
    {"timed_out", REPORT_IS_BOOL, OP(FAIL), 0, AT(timed_out), 0, 0},
    {"reason", REPORT_IS_TEXT, OP(RELEASE), 0, AT(reason), 0, 0},
};
