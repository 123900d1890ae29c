/* Pages over what people plan with: parameters by a table, then chunk by chunk, so that a page of
 * jobs with large payloads is never in memory twice as a whole. The cursor is the last id. */
#include "view/catalog_page.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/json.h"
#include "core/bounds.h"

#define CHUNK_FIRST 16                 /* of the largest jobs: 16 MiB */
#define CHUNK_MAX 256
#define PAGE_BYTES_ENOUGH (16u << 20)  /* a page ends early beyond this; the cursor continues */
#define CURSOR_BYTES 33                /* the kind's letter and an id in hex */

static const char cursor_letters[] = {[CATALOG_CATEGORY] = 'g',
                                      [CATALOG_JOB] = 'j',
                                      [CATALOG_SCHEDULE] = 's',
                                      [CATALOG_RECURRING] = 'r',
                                      [CATALOG_DEPENDENCY] = 'd'};

void catalog_page_init(struct catalog_page *page, enum catalog_kind kind)
{
    *page = (struct catalog_page){.kind = kind,
                                  .filter = {.active = -1,
                                             .type = -1,
                                             .limit = BOUND_LIST_LIMIT_DEFAULT}};
}

/* ---- parameters ---- */

static int set_limit(struct catalog_page *page, struct str value, struct err *err)
{
    bool digits = value.len > 0;
    int64_t number = 0;

    for (size_t i = 0; i < value.len; i++)
        digits = digits && value.data[i] >= '0' && value.data[i] <= '9';
    if (digits && !str_to_int64(value, &number))
        number = INT64_MAX; /* digits beyond 64 bits are just a very large number */
    if (!digits || number < 1)
        return err_set_field(err, ERR_INVALID, "limit",
                             "'limit' must be a whole number of at least 1");
    page->filter.limit = number > BOUND_LIST_LIMIT ? BOUND_LIST_LIMIT : (uint32_t)number;
    return 0;
}

static int set_cursor(struct catalog_page *page, struct str value, struct err *err)
{
    if (value.len == CURSOR_BYTES && value.data[0] == cursor_letters[page->kind] &&
        hash_from_hex(str_span(value.data + 1, value.len - 1), page->filter.before_id.bytes,
                      sizeof page->filter.before_id.bytes))
        return 0;
    return err_set_field(err, ERR_INVALID, "cursor",
                         "'cursor' must be the next_cursor of the previous page");
}

static int set_name(struct catalog_page *page, struct str value, struct err *err)
{
    (void)err;
    page->filter.name = value;
    return 0;
}

static int set_category(struct catalog_page *page, struct str value, struct err *err)
{
    (void)err;
    page->category = value;
    return 0;
}

static int set_target(struct catalog_page *page, struct str value, struct err *err)
{
    (void)err;
    page->filter.target_service = value;
    return 0;
}

static int read_bool(const char *name, struct str value, bool *out, struct err *err)
{
    *out = str_is(value, "true");
    if (*out || str_is(value, "false"))
        return 0;
    return err_set_field(err, ERR_INVALID, name, "'%s' must be true or false", name);
}

static int set_active(struct catalog_page *page, struct str value, struct err *err)
{
    bool active;
    int rc = read_bool("is_active", value, &active, err);

    page->filter.active = active;
    return rc;
}

static int set_deleted(struct catalog_page *page, struct str value, struct err *err)
{
    return read_bool("with_deleted", value, &page->filter.with_deleted, err);
}

static int set_error(struct catalog_page *page, struct str value, struct err *err)
{
    return read_bool("has_error", value, &page->filter.errors_only, err);
}

static int set_job(struct catalog_page *page, struct str value, struct err *err)
{
    const char *name = page->kind == CATALOG_RECURRING ? "template_job_id" : "job_id";

    if (uuid_parse(value, &page->filter.job_id))
        return 0;
    return err_set_field(err, ERR_INVALID, name, "'%s' must be an id of 36 characters", name);
}

static int set_type(struct catalog_page *page, struct str value, struct err *err)
{
    enum schedule_type type = SCHEDULE_CRON;

    if (!schedule_type_parse(value, &type))
        return err_set_field(err, ERR_INVALID, "schedule_type",
                             "'schedule_type' must be cron, interval, once or immediate");
    page->filter.type = (int)type;
    return 0;
}

static int set_next_before(struct catalog_page *page, struct str value, struct err *err)
{
    if (clock_parse(value, &page->filter.next_before_us))
        return 0;
    return err_set_field(err, ERR_INVALID, "next_before",
                         "'next_before' must be a time such as 2027-03-28T01:00:00Z");
}

static int set_side(struct catalog_page *page, struct str value, struct err *err)
{
    page->dependents = str_is(value, "dependents");
    if (page->dependents || str_is(value, "own"))
        return 0;
    return err_set_field(err, ERR_INVALID, "side", "'side' must be own or dependents");
}

#define OF(kind) (1u << (kind))
#define ALL_KINDS (OF(CATALOG_KIND_COUNT) - 1)

static const struct parameter {
    const char *name;
    unsigned kinds;
    int (*set)(struct catalog_page *page, struct str value, struct err *err);
} parameters[] = {
    {"limit", ALL_KINDS, set_limit},
    {"cursor", ALL_KINDS, set_cursor},
    {"name", OF(CATALOG_CATEGORY) | OF(CATALOG_JOB) | OF(CATALOG_RECURRING), set_name},
    {"category", OF(CATALOG_JOB), set_category},
    {"target_service", OF(CATALOG_JOB), set_target},
    {"is_active", ALL_KINDS & ~OF(CATALOG_DEPENDENCY), set_active},
    {"with_deleted", OF(CATALOG_JOB), set_deleted},
    {"job_id", OF(CATALOG_SCHEDULE) | OF(CATALOG_DEPENDENCY), set_job},
    {"template_job_id", OF(CATALOG_RECURRING), set_job},
    {"schedule_type", OF(CATALOG_SCHEDULE), set_type},
    {"has_error", OF(CATALOG_SCHEDULE) | OF(CATALOG_RECURRING), set_error},
    {"side", OF(CATALOG_DEPENDENCY), set_side},
    {"next_before", OF(CATALOG_SCHEDULE) | OF(CATALOG_RECURRING), set_next_before},
};

int catalog_page_set(struct catalog_page *page, struct str name, struct str value,
                     struct err *err)
{
    char field[sizeof err->field];

    for (size_t i = 0; i < sizeof parameters / sizeof *parameters; i++)
        if (str_is(name, parameters[i].name) && (parameters[i].kinds & OF(page->kind)))
            return parameters[i].set(page, value, err);
    snprintf(field, sizeof field, STR_FMT, STR_ARG(name));
    return err_set_field(err, ERR_INVALID, field, "there is no parameter '%s' here", field);
}

/* ---- writing ---- */

/* What was read; items of one kind, one behind the other. */
struct chunk {
    const void *items;
    size_t item_bytes;
    uint32_t count;
};

static int read_chunk(const struct catalog_source *source, enum catalog_kind kind,
                      const struct catalog_filter *filter, struct chunk *chunk, struct err *err)
{
    const struct catalog_verbs *verbs = source->store->verbs->catalog;
    struct store_reader *reader = source->reader;
    struct arena *arena = source->arena;
    struct category *categories = NULL;
    struct job *jobs = NULL;
    struct schedule *schedules = NULL;
    struct recurring *recurring = NULL;
    struct job_dependency *dependencies = NULL;
    uint32_t *count = &chunk->count;

    *count = 0;
    if (kind == CATALOG_CATEGORY)
        TRY(verbs->read_categories(reader, filter, arena, &categories, count, err));
    else if (kind == CATALOG_JOB)
        TRY(verbs->read_jobs(reader, filter, arena, &jobs, count, err));
    else if (kind == CATALOG_SCHEDULE)
        TRY(verbs->read_schedules(reader, filter, arena, &schedules, count, err));
    else if (kind == CATALOG_RECURRING)
        TRY(verbs->read_recurring(reader, filter, arena, &recurring, count, err));
    else
        TRY(verbs->read_dependencies(reader, filter, arena, &dependencies, count, err));
    *chunk = kind == CATALOG_CATEGORY ? (struct chunk){categories, sizeof *categories, *count}
             : kind == CATALOG_JOB ? (struct chunk){jobs, sizeof *jobs, *count}
             : kind == CATALOG_SCHEDULE ? (struct chunk){schedules, sizeof *schedules, *count}
             : kind == CATALOG_RECURRING ? (struct chunk){recurring, sizeof *recurring, *count}
                                         : (struct chunk){dependencies, sizeof *dependencies,
                                                          *count};
    return 0;
}

/* Fewer and fewer of them where they are so large that the arena does not hold them. */
static int read_fitting(const struct catalog_source *source, enum catalog_kind kind,
                        struct catalog_filter *filter, struct chunk *chunk, struct err *err)
{
    int rc;

    for (;;) {
        rc = read_chunk(source, kind, filter, chunk, err);
        if (rc != -ERR_TOO_LARGE || filter->limit == 1)
            return rc;
        arena_reset(source->arena);
        filter->limit /= 2;
    }
}

_Static_assert(offsetof(struct category, id) == 0 && offsetof(struct job, id) == 0 &&
               offsetof(struct schedule, id) == 0 && offsetof(struct recurring, id) == 0 &&
               offsetof(struct job_dependency, id) == 0, "the id of every kind stands first");

static bool is_shown(const struct catalog_page *page, const void *item)
{
    const struct job_dependency *dependency = item;

    return page->kind != CATALOG_DEPENDENCY || uuid_is_nil(&page->filter.job_id) ||
           uuid_eq(page->dependents ? &dependency->depends_on_job_id : &dependency->job_id,
                   &page->filter.job_id);
}

static bool shows_all(const struct catalog_source *source)
{
    return !source->principal || !source->principal->user_id.data;
}

/* Where a page is, and whether there is another one. */
struct place {
    uint32_t left;
    struct uuid looked; /* at last */
    struct uuid shown;  /* last: the cursor, which must not name what is not shown */
    bool next;          /* there is one behind a full page */
};

/* At most place->left of the chunk. */
static int write_chunk(const struct catalog_page *page, const struct catalog_source *source,
                       const struct chunk *chunk, struct place *place, struct buf *out,
                       struct err *err)
{
    const char *at = chunk->items;
    uint32_t *left = &place->left;

    if (page->kind == CATALOG_JOB && chunk->count && shows_all(source)) {
        uint32_t count = chunk->count < *left ? chunk->count : *left;

        json_comma(out);
        *left -= count;
        place->shown = place->looked = ((const struct job *)chunk->items)[count - 1].id;
        place->next = count < chunk->count;
        return catalog_write_jobs(source, chunk->items, count, out, err);
    }
    for (uint32_t i = 0; i < chunk->count; i++, at += chunk->item_bytes) {
        bool shows;

        memcpy(&place->looked, at, sizeof place->looked);
        TRY(catalog_shows(source, page->kind, at, &shows, err));
        if (!shows || !is_shown(page, at))
            continue;
        place->next = *left == 0;
        if (place->next)
            break;
        place->shown = place->looked;
        json_comma(out);
        TRY(catalog_write(source, page->kind, at, out, err));
        --*left;
    }
    return 0;
}

/* An unknown category has no jobs: false. */
static int find_category(const struct catalog_page *page, const struct catalog_source *source,
                         struct catalog_filter *filter, bool *found, struct err *err)
{
    const void *category = NULL;
    int rc = 0;

    *found = true;
    if (!page->category.data)
        return 0;
    rc = catalog_find(source, CATALOG_CATEGORY, page->category, &filter->category_id, err);
    if (rc == 0)
        rc = catalog_load(source, CATALOG_CATEGORY, &filter->category_id, &category, err);
    if (rc == 0) /* jobs without a category are in general */
        filter->or_no_category = str_is(((const struct category *)category)->name,
                                        CATEGORY_GENERAL);
    *found = rc != -ERR_NOT_FOUND;
    return *found ? rc : 0;
}

static void write_end(const struct catalog_page *page, const struct uuid *before_id, bool more,
                      struct buf *out)
{
    char hex[CURSOR_BYTES];

    hash_hex(before_id->bytes, sizeof before_id->bytes, hex);
    if (more)
        buf_format(out, "],\"next_cursor\":\"%c%s\"}", cursor_letters[page->kind], hex);
    else
        buf_text(out, "],\"next_cursor\":null}");
}

/* For a principal of one user a page ends where its rows do: whether there is a next one must not
 * tell of others'. */
static bool continues(const struct place *place, const struct catalog_source *source,
                    const struct buf *out)
{
    return !place->next && (place->left > 0 || !shows_all(source)) &&
           out->len < PAGE_BYTES_ENOUGH && !out->failed;
}

int catalog_page_write(const struct catalog_page *page, const struct catalog_source *source,
                       struct buf *out, struct err *err)
{
    struct catalog_filter filter = page->filter;
    struct place place = {.left = filter.limit, .looked = filter.before_id};
    uint32_t limit = CHUNK_FIRST;
    bool more;
    int rc;

    filter.namespace_name = catalog_source_namespace(source);
    rc = find_category(page, source, &filter, &more, err);
    buf_text(out, "{\"items\":[");
    while (rc == 0 && more && continues(&place, source, out)) {
        struct chunk chunk = {0};

        filter.limit = limit;
        if (place.left <= limit && shows_all(source))
            filter.limit = place.left + 1; /* one more: is there a next page? */
        rc = read_fitting(source, page->kind, &filter, &chunk, err);
        more = chunk.count == filter.limit;
        if (rc == 0)
            rc = write_chunk(page, source, &chunk, &place, out, err);
        filter.before_id = place.looked;
        limit = limit * 4 > CHUNK_MAX ? CHUNK_MAX : limit * 4;
        if (source->arena->used_bytes > (1u << 20))
            limit = CHUNK_FIRST;
        arena_reset(source->arena);
    }
    write_end(page, place.left ? &place.looked : &place.shown, more || place.next, out);
    return rc;
}
