/* Single values of the objects that catalog_parse.c reads: one reader for each kind, each refusal a
 * sentence that says what is allowed. Pure, any thread. */
#include "core/plan/catalog_int.h"

#include "core/callback_events.h"

static void *target(struct catalog_reader *reader, const struct catalog_member *member)
{
    return (char *)reader->object + member->at;
}

int catalog_read_text(struct catalog_reader *reader, const struct catalog_member *member,
                      struct str value)
{
    struct str *to = target(reader, member);
    int rc = spec_read_string(value, member->name, reader->arena, to, reader->err);

    return rc < 0 ? rc : spec_check_text(*to, (size_t)member->max, member->name, reader->err);
}

int catalog_read_description(struct catalog_reader *reader, const struct catalog_member *member,
                             struct str value)
{
    struct str *to = target(reader, member);
    int rc = spec_read_string(value, member->name, reader->arena, to, reader->err);

    if (rc == 0 && to->len > (size_t)member->max)
        rc = err_set_field(reader->err, ERR_INVALID, member->name,
                           "\"%s\" has %zu bytes; at most %lld are allowed", member->name,
                           to->len, (long long)member->max);
    return rc;
}

int catalog_read_type(struct catalog_reader *reader, const struct catalog_member *member,
                      struct str value)
{
    struct str *to = target(reader, member);
    int rc = catalog_read_text(reader, member, value);

    return rc < 0 ? rc : spec_check_no_pattern(*to, member->name, reader->err);
}

int catalog_read_queue(struct catalog_reader *reader, const struct catalog_member *member,
                       struct str value)
{
    struct str *to = target(reader, member);
    int rc = spec_read_string(value, member->name, reader->arena, to, reader->err);

    return rc < 0 ? rc : spec_check_new_queue(*to, reader->err);
}

int catalog_read_url(struct catalog_reader *reader, const struct catalog_member *member,
                     struct str value)
{
    struct str *to = target(reader, member);
    int rc = spec_read_string(value, member->name, reader->arena, to, reader->err);

    return rc < 0 ? rc : spec_check_url(*to, member->name, reader->err);
}

int catalog_read_callback_events(struct catalog_reader *reader, const struct catalog_member *member,
                                 struct str value)
{
    return callback_events_read(value, reader->arena, target(reader, member), reader->err);
}

int catalog_read_number(struct catalog_reader *reader, const struct catalog_member *member,
                        struct str value)
{
    return spec_read_number(value, member->name, member->min, member->max, target(reader, member),
                            reader->err);
}

int catalog_read_priority(struct catalog_reader *reader, const struct catalog_member *member,
                          struct str value)
{
    return spec_read_priority(value, member->name, reader->arena, target(reader, member),
                              reader->err);
}

int catalog_read_time(struct catalog_reader *reader, const struct catalog_member *member,
                      struct str value)
{
    return spec_read_time(value, member->name, reader->arena, target(reader, member),
                          reader->err);
}

int catalog_read_bool(struct catalog_reader *reader, const struct catalog_member *member,
                      struct str value)
{
    return spec_read_bool(value, member->name, target(reader, member), reader->err);
}

int catalog_read_id(struct catalog_reader *reader, const struct catalog_member *member,
                    struct str value)
{
    struct uuid *to = target(reader, member);
    struct str text = json_string(value, reader->arena);

    if (!text.data || !uuid_parse(text, to) || uuid_is_nil(to))
        return err_set_field(reader->err, ERR_INVALID, member->name,
                             "\"%s\" must be an id such as "
                             "\"0198c0de-0000-7000-8000-000000000001\"",
                             member->name);
    return 0;
}

int catalog_read_json(struct catalog_reader *reader, const struct catalog_member *member,
                      struct str value)
{
    *(struct str *)target(reader, member) = value;
    return spec_check_bytes(value, (size_t)member->max, member->name, reader->err);
}

int catalog_read_object(struct catalog_reader *reader, const struct catalog_member *member,
                        struct str value)
{
    if (json_kind(value) != JSON_OBJECT)
        return err_set_field(reader->err, ERR_INVALID, member->name,
                             "\"%s\" must be an object", member->name);
    return catalog_read_json(reader, member, value);
}

/* The name goes beside the job; who knows the categories finds its id. */
int catalog_read_category(struct catalog_reader *reader, const struct catalog_member *member,
                          struct str value)
{
    int rc = spec_read_string(value, member->name, reader->arena, &reader->category, reader->err);

    return rc < 0 ? rc
                  : spec_check_text(reader->category, BOUND_NAME_BYTES, member->name,
                                    reader->err);
}

/* ---- words ---- */

static int refuse_word(struct catalog_reader *reader, const struct catalog_member *member,
                       const char *words)
{
    return err_set_field(reader->err, ERR_INVALID, member->name, "\"%s\" must be %s",
                         member->name, words);
}

int catalog_read_schedule_type(struct catalog_reader *reader, const struct catalog_member *member,
                               struct str value)
{
    if (schedule_type_parse(json_string(value, reader->arena), target(reader, member)))
        return 0;
    return refuse_word(reader, member, "cron, interval, once or immediate");
}

int catalog_read_misfire(struct catalog_reader *reader, const struct catalog_member *member,
                         struct str value)
{
    if (misfire_parse(json_string(value, reader->arena), target(reader, member)))
        return 0;
    return refuse_word(reader, member, "skip, fire_once or fire_all");
}

int catalog_read_overlap(struct catalog_reader *reader, const struct catalog_member *member,
                         struct str value)
{
    if (overlap_parse(json_string(value, reader->arena), target(reader, member)))
        return 0;
    return refuse_word(reader, member, "allow, skip, queue or replace");
}

int catalog_read_dst(struct catalog_reader *reader, const struct catalog_member *member,
                     struct str value)
{
    struct str word = json_string(value, reader->arena);

    if (word.data && dst_policy_parse(word, target(reader, member)))
        return 0;
    return refuse_word(reader, member, "standard, skip or both");
}

int catalog_read_pattern_type(struct catalog_reader *reader, const struct catalog_member *member,
                              struct str value)
{
    struct str word = json_string(value, reader->arena);

    if (word.data && recurrence_type_parse(word, target(reader, member)))
        return 0;
    return refuse_word(reader, member, "daily, weekly, monthly, yearly or rrule");
}

int catalog_read_dependency_type(struct catalog_reader *reader,
                                 const struct catalog_member *member, struct str value)
{
    struct str word = json_string(value, reader->arena);

    if (word.data && dependency_parse(word, target(reader, member)))
        return 0;
    return refuse_word(reader, member, "success, completion or failure");
}

/* ---- what only a preview has ---- */

int catalog_read_preview_count(struct catalog_reader *reader, const struct catalog_member *member,
                               struct str value)
{
    return spec_read_number(value, member->name, member->min, member->max,
                            &reader->preview->count, reader->err);
}

int catalog_read_preview_from(struct catalog_reader *reader, const struct catalog_member *member,
                              struct str value)
{
    return spec_read_time(value, member->name, reader->arena, &reader->preview->from_us,
                          reader->err);
}
