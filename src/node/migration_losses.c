/* What `perdura migrate down` gives up, by the name of the migration that is taken back: the same
 * on every kind of store. Its way down says it in a first line "-- Data lost: ..."; the table has
 * the migrations from before that rule. One that is in neither removes nothing. Pure. */
#include "node/migration_losses.h"

#include "base/embedded.h"

static const struct {
    const char *name;
    bool is_data;
    const char *what;
} losses[] = {
    {"first", true, "everything: tasks, jobs, schedules, queues, tokens"},
    {"jobs", true, "of jobs: queue, limit and last end; why schedules cannot be planned"},
    {"logs", true, "the records and notes about logs: no line written until then is proven"},
    {"measures", true, "executions per hour: figures of the past"},
    {"tracing", true, "the trace contexts of tasks"},
    {"log retention", true, "the hashes of emptied log lines: verify names those lines as changed"},
    {"log trust", true, "the notes of ended runs and all codes: verify names those runs"},
    {"decided", true, "which dependencies were decided before their task was retried"},
    {"strict rates", false, "when tasks of strict rates started: those rates begin again"},
    {"by hand", false, "the checks of changes by hand"},
    {"bounds by hand", false, "the bounds of values written by hand"},
};

/* Does the file .../0017_some_name.down.sql take back "some name"? */
static bool takes_back(const char *file, struct str name)
{
    static const char end[] = ".down.sql";
    const char *slash = strrchr(file, '/');
    const char *at = slash ? slash + 1 : file;

    if (strspn(at, "0123456789") != 4 || at[4] != '_' ||
        strlen(at += 5) != name.len + sizeof end - 1 || strcmp(at + name.len, end) != 0)
        return false;
    for (size_t i = 0; i < name.len; i++)
        if (name.data[i] != (at[i] == '_' ? ' ' : at[i]))
            return false;
    return true;
}

static struct str told_by(const struct embedded *file)
{
    static const char begin[] = "-- Data lost: ";
    const size_t begin_len = sizeof begin - 1;
    const char *line_end = memchr(file->data, '\n', file->len);

    if (!line_end || file->len < begin_len || memcmp(file->data, begin, begin_len) != 0)
        return STR_NONE;
    return str_span(file->data + begin_len, (size_t)(line_end - file->data) - begin_len);
}

struct migration_loss migration_loss_of(struct str name)
{
    for (size_t i = 0; i < sizeof losses / sizeof losses[0]; i++)
        if (str_is(name, losses[i].name))
            return (struct migration_loss){str_of(losses[i].what), losses[i].is_data};
    for (const struct embedded *file = embedded_files; file->name; file++)
        if (takes_back(file->name, name) && told_by(file).data)
            return (struct migration_loss){told_by(file), true};
    return (struct migration_loss){STR_NONE, false};
}
