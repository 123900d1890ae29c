/* The words of report.h, each in one table. Pure; any thread. */
#include "core/task/report.h"

static const char *const op_words[REPORT_OP_COUNT] = {
    [REPORT_START] = "start",       [REPORT_PROGRESS] = "progress",
    [REPORT_CHECKPOINT] = "checkpoint", [REPORT_LOG] = "log",
    [REPORT_SPAWN] = "spawn",       [REPORT_COMPLETE] = "complete",
    [REPORT_CONTINUE] = "continue", [REPORT_FAIL] = "fail",
    [REPORT_PARTIAL] = "partial",   [REPORT_RELEASE] = "release",
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

const char *report_op_word(enum report_op op)
{
    return op_words[op];
}

bool report_op_parse(struct str word, enum report_op *op)
{
    for (int i = 0; i < REPORT_OP_COUNT; i++) {
        if (!str_is(word, op_words[i]))
            continue;
        *op = (enum report_op)i;
        return true;
    }
    return false;
}

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
