#include "store/sqlite/sqlite_lines.h"

#include "core/queue_name.h"
#include "store/sqlite/sqlite_int.h"

#include <stdlib.h>

#define SEPARATOR '\x1f'
#define NAME_BYTES_MAX 1024 /* a full name of a queue, a type, and an id */

static const struct line_entry entry_first = {INT64_MIN, INT64_MIN};
static const struct line_entry entry_last = {INT64_MAX, INT64_MAX};

static bool entry_before(struct line_entry a, struct line_entry b)
{
    return a.order_key != b.order_key ? a.order_key < b.order_key : a.task_key < b.task_key;
}

static size_t join_names(char *out, struct str queue, struct str type)
{
    ASSERT(queue.data && type.data && queue.len + type.len + 1 < NAME_BYTES_MAX);
    memcpy(out, queue.data, queue.len);
    out[queue.len] = SEPARATOR;
    memcpy(out + queue.len + 1, type.data, type.len);
    return queue.len + 1 + type.len;
}

/* A lane without a category has the shorter name: most claims and enqueues look for these. */
static struct str lane_name(char *out, const struct task_spec *spec)
{
    size_t len = join_names(out, spec->queue, spec->type);

    if (uuid_is_nil(&spec->category_id))
        return str_span(out, len);
    ASSERT(len + 1 + sizeof spec->category_id.bytes < NAME_BYTES_MAX);
    out[len++] = SEPARATOR;
    memcpy(out + len, spec->category_id.bytes, sizeof spec->category_id.bytes);
    return str_span(out, len + sizeof spec->category_id.bytes);
}

static void line_free(struct line *line)
{
    free(line->window);
    free(line);
}

void lines_deinit(struct lines *lines)
{
    uint32_t cursor = 0;
    struct line *line;
    struct line_queue *queue;

    while ((line = map_next(&lines->by_name, &cursor)) != NULL)
        line_free(line);
    cursor = 0;
    while ((queue = map_next(&lines->queues, &cursor)) != NULL)
        free(queue);
    map_deinit(&lines->by_name);
    map_deinit(&lines->queues);
    free(lines->by_lane);
    *lines = (struct lines){MAP_INIT, MAP_INIT, NULL, 0, NULL, 0};
}

static struct line *line_new(int64_t lane, const struct task_spec *spec)
{
    char space[NAME_BYTES_MAX];
    struct str name = lane_name(space, spec);
    struct line *line = calloc(1, sizeof *line + name.len + 1);
    char *text;

    if (!line)
        return NULL;
    text = (char *)(line + 1);
    memcpy(text, name.data, name.len);
    line->lane = lane;
    line->name = str_span(text, name.len);
    line->queue = str_span(text, spec->queue.len);
    line->namespace_name = queue_name_namespace(line->queue);
    line->type = str_span(text + spec->queue.len + 1, spec->type.len);
    line->category_id = spec->category_id;
    line->boundary = entry_first;
    return line;
}

static struct line_queue *queue_of(struct lines *lines, struct line *line)
{
    struct line_queue *queue = map_get(&lines->queues, line->queue);

    if (queue)
        return queue;
    queue = calloc(1, sizeof *queue);
    if (!queue)
        return NULL;
    queue->name = line->queue; /* the first line of a queue lives as long as the queue */
    if (map_put(&lines->queues, queue->name, queue) < 0) {
        free(queue);
        return NULL;
    }
    return queue;
}

static int add_line(struct lines *lines, struct line *line)
{
    struct line_queue *queue;

    if (line->lane >= lines->lanes_cap) {
        int64_t cap = line->lane * 2 + 16;
        struct line **grown = realloc(lines->by_lane, (size_t)cap * sizeof *grown);

        if (!grown)
            return -ERR_MEMORY;
        memset(grown + lines->lanes_cap, 0, (size_t)(cap - lines->lanes_cap) * sizeof *grown);
        lines->by_lane = grown;
        lines->lanes_cap = cap;
    }
    queue = queue_of(lines, line);
    if (!queue || map_put(&lines->by_name, line->name, line) < 0)
        return -ERR_MEMORY;
    lines->by_lane[line->lane] = line;
    line->next_in_queue = queue->lines;
    queue->lines = line;
    return 0;
}

static int load_counts(struct sqlite_store *store, struct err *err)
{
    sqlite3_stmt *stmt = sql_get(&store->sql, SQL_counts_all, err);
    int rc;

    if (!stmt)
        return -(int)err->code;
    while ((rc = sql_step(&store->sql, stmt, err)) > 0) {
        struct line *line = lines_by_lane(&store->lines, sqlite3_column_int64(stmt, 0));
        enum status status = LINE_PARKED;
        const char *word = (const char *)sqlite3_column_text(stmt, 1);

        if (!line || (strcmp(word, "parked") != 0 && !status_parse(str_of(word), &status)))
            continue;
        line->counts[status] = sqlite3_column_int64(stmt, 2);
    }
    return rc;
}

int lines_load(struct sqlite_store *store, struct err *err)
{
    ARENA_AUTO struct arena arena = ARENA_INIT(0);
    sqlite3_stmt *stmt;
    int rc;

    lines_deinit(&store->lines);
    stmt = sql_get(&store->sql, SQL_lanes_all, err);
    if (!stmt)
        return -(int)err->code;
    while ((rc = sql_step(&store->sql, stmt, err)) > 0) {
        struct task_spec spec = {
            .queue = queue_name_full(str_of((const char *)sqlite3_column_text(stmt, 1)),
                                     str_of((const char *)sqlite3_column_text(stmt, 2)), &arena),
            .type = str_of((const char *)sqlite3_column_text(stmt, 3)),
            .category_id = column_uuid(stmt, 4)};
        struct line *line = spec.queue.data ? line_new(sqlite3_column_int64(stmt, 0), &spec) : NULL;

        if (!line || add_line(&store->lines, line) < 0) {
            sqlite3_reset(stmt);
            if (line)
                line_free(line);
            return err_set(err, ERR_MEMORY, "out of memory while reading the lanes");
        }
    }
    return rc < 0 ? rc : load_counts(store, err);
}

struct line *lines_by_lane(struct lines *lines, int64_t lane)
{
    return lane >= 0 && lane < lines->lanes_cap ? lines->by_lane[lane] : NULL;
}

struct line_queue *lines_queue(struct lines *lines, struct str queue)
{
    return map_get(&lines->queues, queue);
}

struct line *lines_get(struct sqlite_store *store, const struct task_spec *spec, struct err *err)
{
    char name[NAME_BYTES_MAX];
    struct line *line = map_get(&store->lines.by_name, lane_name(name, spec));
    sqlite3_stmt *stmt;

    if (line)
        return line;
    stmt = sql_get(&store->sql, SQL_lane_insert, err);
    if (!stmt)
        return NULL;
    bind_str(stmt, 1, queue_name_namespace(spec->queue));
    bind_str(stmt, 2, queue_name_plain(spec->queue));
    bind_str(stmt, 3, spec->type);
    sqlite3_bind_blob(stmt, 4, spec->category_id.bytes, sizeof spec->category_id.bytes,
                      SQLITE_STATIC); /* all zeros where there is none */
    if (sql_run(&store->sql, stmt, NULL, err) < 0)
        return NULL;
    line = line_new(sqlite3_last_insert_rowid(store->sql.db), spec);
    if (!line || add_line(&store->lines, line) < 0) {
        if (line)
            line_free(line);
        err_set(err, ERR_MEMORY, "out of memory for a new lane");
        return NULL;
    }
    return line;
}

static bool window_reserve(struct line *line)
{
    uint32_t cap = line->cap ? line->cap * 2 : 16;
    struct line_entry *grown;

    if (line->filled < line->cap)
        return true;
    if (line->first > 0) {
        memmove(line->window, line->window + line->first,
                (line->filled - line->first) * sizeof *line->window);
        line->filled -= line->first;
        line->first = 0;
        if (line->filled < line->cap)
            return true;
    }
    grown = realloc(line->window, cap * sizeof *grown);
    if (!grown)
        return false;
    line->window = grown;
    line->cap = cap;
    return true;
}

/* Position of the first entry that is not before `entry`. */
static uint32_t window_position(const struct line *line, struct line_entry entry)
{
    uint32_t low = line->first;
    uint32_t high = line->filled;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (entry_before(line->window[middle], entry))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool same_entry(struct line_entry a, struct line_entry b)
{
    return a.order_key == b.order_key && a.task_key == b.task_key;
}

static int window_add(struct line *line, struct line_entry entry)
{
    uint32_t at;

    if (entry_before(line->boundary, entry))
        return 0;
    if (line->filled - line->first >= LINE_WINDOW_MAX) { /* leaves the tail to the index */
        line->filled -= LINE_WINDOW_MAX / 2;
        line->boundary = line->window[line->filled - 1];
        if (entry_before(line->boundary, entry))
            return 0;
    }
    if (!window_reserve(line))
        return -ERR_MEMORY;
    at = window_position(line, entry);
    if (at < line->filled && same_entry(line->window[at], entry))
        return 0;
    memmove(line->window + at + 1, line->window + at,
            (line->filled - at) * sizeof *line->window);
    line->window[at] = entry;
    line->filled++;
    return 0;
}

static void window_remove(struct line *line, struct line_entry entry)
{
    uint32_t at = window_position(line, entry);

    if (at >= line->filled || !same_entry(line->window[at], entry))
        return;
    memmove(line->window + at, line->window + at + 1,
            (line->filled - at - 1) * sizeof *line->window);
    line->filled--;
}

static void count(struct lines *lines, struct line *line, enum status status, int64_t by)
{
    line->counts[status] += by;
    line->deltas[status] += by;
    if (line->touched)
        return;
    line->touched = true;
    line->next_touched = lines->touched;
    lines->touched = line;
}

int lines_note(struct sqlite_store *store, struct line *line, const struct task *task,
               struct err *err)
{
    bool was_ready = task->row.status == STATUS_PENDING && !task->row.parked;
    bool is_ready = task->status == STATUS_PENDING && !task->parked;
    struct line_entry was = {task->row.order_key, task->key};
    struct line_entry is = {task->order_key, task->key};

    if (was_ready && !(is_ready && same_entry(was, is)))
        window_remove(line, was);
    if (task->row.status != task->status) {
        if (task->row.status != STATUS_NONE)
            count(&store->lines, line, task->row.status, -1);
        if (task->status != STATUS_NONE)
            count(&store->lines, line, task->status, 1);
    }
    if (task->row.parked != task->parked)
        count(&store->lines, line, LINE_PARKED, task->parked ? 1 : -1);
    if (is_ready && window_add(line, is) < 0) /* also a claimed task that was released */
        return err_set(err, ERR_MEMORY, "out of memory for a ready line");
    return 0;
}

static int refill(struct sqlite_store *store, struct line *line, struct err *err)
{
    sqlite3_stmt *stmt = sql_get(&store->sql, SQL_ready_head, err);
    uint32_t fetched = 0;
    int rc;

    if (!stmt)
        return -(int)err->code;
    bind_int(stmt, 1, line->lane);
    bind_int(stmt, 2, line->boundary.order_key);
    bind_int(stmt, 3, line->boundary.task_key);
    bind_int(stmt, 4, LINE_REFILL);
    line->first = line->filled = 0;
    while ((rc = sql_step(&store->sql, stmt, err)) > 0) {
        if (!window_reserve(line)) {
            sqlite3_reset(stmt);
            line->filled = 0;
            return err_set(err, ERR_MEMORY, "out of memory for a ready line");
        }
        line->window[line->filled++] = (struct line_entry){sqlite3_column_int64(stmt, 0),
                                                           sqlite3_column_int64(stmt, 1)};
        fetched++;
    }
    if (rc < 0)
        return rc;
    line->boundary = fetched < LINE_REFILL ? entry_last : line->window[line->filled - 1];
    return 0;
}

int lines_head(struct sqlite_store *store, struct line *line, struct line_entry **head,
               struct err *err)
{
    *head = NULL;
    if (line->first == line->filled && entry_before(line->boundary, entry_last) &&
        line_ready(line) > 0) {
        int rc = refill(store, line, err);

        if (rc < 0)
            return rc;
    }
    if (line->first < line->filled)
        *head = &line->window[line->first];
    return 0;
}

void lines_pop(struct line *line)
{
    line->first++;
    if (line->first == line->filled)
        line->first = line->filled = 0;
}

void lines_forget(struct line *line)
{
    line->first = line->filled = 0;
    line->boundary = entry_first;
}

int lines_flush(struct sqlite_store *store, struct err *err)
{
    struct lines *lines = &store->lines;

    while (lines->touched) {
        struct line *line = lines->touched;

        for (int status = 0; status < STATUS_COUNT; status++) {
            sqlite3_stmt *stmt;

            if (line->deltas[status] == 0)
                continue;
            stmt = sql_get(&store->sql, SQL_count_add, err);
            if (!stmt)
                return -(int)err->code;
            bind_int(stmt, 1, line->lane);
            bind_str(stmt, 2, status == LINE_PARKED ? STR("parked")
                                                    : str_of(status_word((enum status)status)));
            bind_int(stmt, 3, line->deltas[status]);
            TRY(sql_run(&store->sql, stmt, NULL, err));
            line->deltas[status] = 0;
        }
        line->touched = false;
        lines->touched = line->next_touched;
    }
    return 0;
}
