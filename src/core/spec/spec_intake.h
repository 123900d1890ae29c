/* What a program enqueued with SQL, in a transaction of its own: a row that the engine has not made
 * a task of yet. Its id is known already. And what one said of a task so. Pure; any thread. */
#ifndef CORE_SPEC_SPEC_INTAKE_H
#define CORE_SPEC_SPEC_INTAKE_H

#include "core/spec/spec.h"
#include "core/task/report.h"

struct intake_row {
    int64_t key; /* that the id carries */
    struct uuid id;
    struct str namespace_name;
    struct str type;
    struct str payload; /* JSON or absent */
    struct str options; /* a JSON object: the other members of a task */
    int64_t created_at_us;
};

extern const struct field_table intake_table;

/* What a program says with SQL of a task: that it holds, under its lease; or what it asks for. */
enum intake_verb {
    INTAKE_COMPLETE,
    INTAKE_FAIL,
    INTAKE_CHECKPOINT,
    INTAKE_CANCEL,
    INTAKE_RETRY,
    INTAKE_DELETE,
    INTAKE_VERB_COUNT
};

const char *intake_verb_word(enum intake_verb verb);
bool intake_verb_parse(struct str word, enum intake_verb *verb);

struct intake_report {
    int64_t seq;
    enum intake_verb verb;
    struct report report; /* without its op */
    struct str asked_by;  /* the role of the database; absent of reports */
};

extern const struct field_table intake_report_table;

/* As if the same had come in a request; settings may be NULL. Texts are in the arena. */
int intake_parse(const struct intake_row *row, const struct settings *settings,
                 struct arena *arena, struct task_input *input, struct err *err);
/* What can be kept of a row that cannot be a task: its type and payload. */
void intake_keep(const struct intake_row *row, struct task_input *input);
/* The text of one of its options; absent if it has none. */
struct str intake_option(const struct intake_row *row, const char *name, struct arena *arena);

#endif
