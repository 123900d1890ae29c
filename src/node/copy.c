/* Moves everything from one store to another: table by table, a batch of rows and a note of how far
 * it has come in one transaction of the target, so that the next run continues one that was killed.
 * Then both are compared (copy_compare.c), and only then the target may be served. A move keeps
 * everything that work under way depends on: ids, keys, lease tokens, the store's epoch. One
 * thread. */
#include "base/clock.h"
#include "base/hash.h"
#include "base/json.h"
#include "node/copy_int.h"

#include <stdio.h>
#include <unistd.h>

#define FACT_BYTES_MAX (64 * 1024)
#define FACT_DONE_BYTES 32
#define COMPARE_WORD "compare" /* in place of a table: all rows are there */

/* How far a copy has come. */
struct place {
    uint32_t table; /* copy_tables_count = all rows are there */
    bool is_done;   /* and were compared: a run after the last one */
    bool has_key;
    struct copy_value key[COPY_KEYS_MAX]; /* of the last row that is there */
};

bool copy_has(const struct copy *copy, const struct copy_table *table)
{
    return !table->shared_only || (copy->from->shared && copy->to->shared);
}

void copy_tell(struct copy *copy, const struct copy_table *table, bool begins, int64_t rows)
{
    copy->step.table = table->name;
    copy->step.begins = begins;
    copy->step.done += rows;
    copy->step.tasks = copy->report->tasks;
    if (copy->tell)
        copy->tell(copy->tell_ctx, &copy->step);
}

/* ---- the note of how far it has come ---- */

/* Of the source as it is: when it was served in between, rows that were copied may have changed. */
static uint64_t fingerprint(const struct copy *copy)
{
    uint64_t hash = hash_bytes64(copy->counts, sizeof copy->counts, 0);

    return hash_bytes64(&copy->from->last_time_us, sizeof copy->from->last_time_us, hash);
}

static struct str done_fact(const struct copy *copy, char *out, size_t cap)
{
    snprintf(out, cap, COPY_DONE "%016llx", (unsigned long long)fingerprint(copy));
    return str_of(out);
}

static void write_key(struct buf *out, const struct copy_column *column,
                      const struct copy_value *value)
{
    static const char digits[] = "0123456789abcdef";

    buf_byte(out, '"');
    if (column->kind <= COPY_BOOL)
        buf_int(out, value->number);
    for (size_t i = 0; column->kind > COPY_BOOL && i < value->bytes.len; i++) {
        buf_byte(out, digits[(uint8_t)value->bytes.data[i] >> 4]);
        buf_byte(out, digits[(uint8_t)value->bytes.data[i] & 15]);
    }
    buf_byte(out, '"');
}

/* In a transaction of the target. */
static int write_place(struct copy *copy, const struct place *place, struct err *err)
{
    const struct copy_table *table = &copy_tables[place->table];
    BUF_AUTO struct buf text = BUF_INIT(FACT_BYTES_MAX);

    buf_format(&text, "{\"source\":\"%016llx\",\"table\":\"%s\",\"after\":[",
               (unsigned long long)fingerprint(copy),
               place->table < copy_tables_count ? table->name : COMPARE_WORD);
    for (uint32_t i = 0; place->has_key && i < table->keys; i++) {
        buf_text(&text, i > 0 ? "," : "");
        write_key(&text, &table->columns[i], &place->key[i]);
    }
    buf_text(&text, "]}");
    return text.failed ? err_no_memory(err)
                       : copy->to->verbs->info_put(copy->to, COPY_FACT, buf_view(&text), err);
}

static bool read_key(struct str text, const struct copy_column *column, struct arena *arena,
                     struct copy_value *value)
{
    uint8_t *bytes;

    value->present = true;
    if (column->kind <= COPY_BOOL)
        return str_to_int64(text, &value->number);
    bytes = arena_alloc(arena, text.len / 2 + 1);
    if (!bytes || !hash_from_hex(text, bytes, text.len / 2))
        return false;
    value->bytes = str_span((const char *)bytes, text.len / 2);
    return true;
}

static bool parse_place(struct str text, struct arena *arena, struct place *place)
{
    struct str name = json_string(json_get(text, STR("table")), arena);
    struct str after = json_get(text, STR("after"));
    const struct copy_table *table;
    struct json_iter iter;
    struct str item;
    uint32_t keys = 0;

    while (place->table < copy_tables_count && !str_is(name, copy_tables[place->table].name))
        place->table++;
    if (place->table == copy_tables_count)
        return str_is(name, COMPARE_WORD);
    table = &copy_tables[place->table];
    json_begin(after, &iter);
    while (json_next_element(&iter, &item)) {
        if (keys == table->keys ||
            !read_key(json_string(item, arena), &table->columns[keys], arena, &place->key[keys]))
            return false;
        keys++;
    }
    place->has_key = keys > 0;
    return keys == 0 || keys == table->keys;
}

static int read_place(const struct copy *copy, struct str text, struct arena *arena,
                      struct place *place, struct err *err)
{
    char source[17];

    if (json_check_ours(text, &text, err) < 0 || json_kind(text) != JSON_OBJECT ||
        !parse_place(text, arena, place))
        return err_set(err, ERR_CONFLICT, "the target's note of an unfinished copy cannot be read; "
                       "begin again with an empty target");
    snprintf(source, sizeof source, "%016llx", (unsigned long long)fingerprint(copy));
    if (!str_is(json_string(json_get(text, STR("source")), arena), source))
        return err_set(err, ERR_CONFLICT, "the target holds the beginning of a copy of another "
                       "store, or the source was served since; begin again with an empty target");
    return 0;
}

/* ---- beginning, or continuing ---- */

/* In a transaction of the target, which loses what every new store begins with. */
static int require_empty(struct copy *copy, struct err *err)
{
    for (uint32_t i = 0; i < copy_tables_count; i++) {
        const struct copy_table *table = &copy_tables[i];
        int64_t rows = 0;

        if (table->shared_only && !copy->to->shared)
            continue;
        if (table->first)
            TRY(copy->to->verbs->copy->clear(copy->to, table, err));
        TRY(copy->to->verbs->copy->count(copy->to, table, &rows, err));
        if (rows > 0)
            return err_set(err, ERR_CONFLICT, "the target is not empty (%lld rows in %s); give a "
                           "new file, or an empty database or schema", (long long)rows,
                           table->name);
    }
    return 0;
}

static int begin_copy(struct copy *copy, const struct place *place, struct err *err)
{
    const struct store_verbs *verbs = copy->to->verbs;

    if (verbs->begin(copy->to, err) < 0 || require_empty(copy, err) < 0 ||
        write_place(copy, place, err) < 0 || verbs->commit(copy->to, err) < 0) {
        verbs->rollback(copy->to);
        return -(int)err->code;
    }
    return 0;
}

static int find_place(struct copy *copy, struct arena *arena, struct place *place,
                      struct err *err)
{
    char done[FACT_DONE_BYTES];
    struct str text;

    *place = (struct place){0};
    TRY(copy->to->verbs->info_get(copy->to, COPY_FACT, arena, &text, err));
    copy->report->resumed = text.data != NULL;
    if (copy_is_unfinished(text))
        return read_place(copy, text, arena, place, err);
    if (text.data && str_eq(text, done_fact(copy, done, sizeof done))) {
        *place = (struct place){.table = copy_tables_count, .is_done = true};
        return 0;
    }
    return begin_copy(copy, place, err);
}

static int count_rows(struct copy *copy, struct err *err)
{
    TRY(store_require_taken_in(copy->from, false, err));
    for (uint32_t i = 0; i < copy_tables_count; i++) {
        if (!copy_has(copy, &copy_tables[i]))
            continue;
        TRY(copy->from->verbs->copy->count(copy->from, &copy_tables[i], &copy->counts[i], err));
        copy->total += copy->counts[i];
    }
    return 0;
}

/* ---- moving ---- */

static int write_batch(struct copy *copy, const struct copy_value *values, uint32_t rows,
                       struct place *place, struct err *err)
{
    const struct copy_table *table = &copy_tables[place->table];
    const struct store_verbs *verbs = copy->to->verbs;

    memcpy(place->key, &values[(rows - 1) * table->columns_count],
           table->keys * sizeof place->key[0]);
    place->has_key = true;
    if (verbs->begin(copy->to, err) < 0 ||
        verbs->copy->write(copy->to, table, values, rows, err) < 0 ||
        write_place(copy, place, err) < 0 || verbs->commit(copy->to, err) < 0) {
        verbs->rollback(copy->to);
        return -(int)err->code;
    }
    copy->report->rows += rows;
    if (strcmp(table->name, "task_states") == 0)
        copy->report->tasks += rows;
    return 0;
}

static int move_table(struct copy *copy, struct place *place, struct err *err)
{
    struct arena arenas[2] = {ARENA_INIT(0), ARENA_INIT(0)}; /* this batch, and the one before */
    const struct copy_table *table = &copy_tables[place->table];
    struct copy_value *values;
    uint32_t rows = 0;
    int turn = 0;
    int rc = 0;

    if (copy->counts[place->table] > 0)
        copy_tell(copy, table, true, 0);
    while (rc == 0) {
        arena_reset(&arenas[turn]);
        rc = copy->from->verbs->copy->read(copy->from, table, place->has_key ? place->key : NULL,
                                           &arenas[turn], &values, &rows, err);
        if (rc < 0 || rows == 0)
            break;
        rc = write_batch(copy, values, rows, place, err);
        turn = !turn;
        if (rc == 0)
            copy_tell(copy, table, false, rows);
    }
    arena_deinit(&arenas[0]);
    arena_deinit(&arenas[1]);
    return rc;
}

static int finish(struct copy *copy, struct place *place, struct err *err)
{
    const struct store_verbs *verbs = copy->to->verbs;

    *place = (struct place){.table = copy_tables_count};
    if (verbs->begin(copy->to, err) < 0 || verbs->copy->finish(copy->to, err) < 0 ||
        write_place(copy, place, err) < 0 || verbs->commit(copy->to, err) < 0) {
        verbs->rollback(copy->to);
        return -(int)err->code;
    }
    return 0;
}

/* A killed run's rows of the table it stopped in are not known: the bar begins a little early. */
static int move_tables(struct copy *copy, struct place *place, struct err *err)
{
    copy->step = (struct copy_step){.total = copy->total};
    for (uint32_t i = 0; i < place->table; i++)
        copy->step.done += copy->counts[i];
    if (place->table == copy_tables_count)
        return 0;
    while (place->table < copy_tables_count) {
        if (copy_has(copy, &copy_tables[place->table]))
            TRY(move_table(copy, place, err));
        place->table++;
        place->has_key = false;
    }
    return finish(copy, place, err);
}

/* First the source is marked: whatever happens in between, never are both of them served. */
static int allow_serving(struct copy *copy, struct err *err)
{
    const struct store_verbs *verbs = copy->to->verbs;
    char done[FACT_DONE_BYTES];

    TRY(store_mark_moved(copy->from, copy->request->to, clock_wall_us(), err));
    if (verbs->begin(copy->to, err) < 0 ||
        verbs->info_put(copy->to, COPY_FACT, done_fact(copy, done, sizeof done), err) < 0 ||
        verbs->commit(copy->to, err) < 0) {
        verbs->rollback(copy->to);
        return -(int)err->code;
    }
    return 0;
}

static int run(struct copy *copy, struct arena *arena, struct err *err)
{
    int64_t began_us = clock_boot_us();
    struct place place;

    TRY(count_rows(copy, err));
    TRY(find_place(copy, arena, &place, err));
    TRY(move_tables(copy, &place, err));
    copy->report->copy_us = clock_boot_us() - began_us;
    began_us = clock_boot_us();
    TRY(copy_compare(copy, err));
    copy->report->compare_us = clock_boot_us() - began_us;
    if (copy->report->differences == 0)
        return place.is_done ? 0 : allow_serving(copy, err);
    if (place.is_done)
        return err_set(err, ERR_CONFLICT, "the target holds a finished copy that was served since; "
                       "give a new file, or an empty database or schema");
    return 0;
}

/* ---- the stores ---- */

/* A source that is not there must not be made. */
static int require_there(struct str where, struct arena *arena, struct err *err)
{
    char *path = arena_cstr(arena, str_starts(where, STR("sqlite:"))
                                       ? str_span(where.data + 7, where.len - 7) : where);

    TRY_MEMORY(path);
    if (!strstr(path, "://") && access(path, F_OK) < 0)
        return err_set(err, ERR_NOT_FOUND, "there is no store '%s' to copy from; check the path",
                       path);
    return 0;
}

static int open_source(struct copy *copy, const struct copy_request *request, struct arena *arena,
                       struct err *err)
{
    struct store_options options = {.no_migrate = true,
                                    .allow_network_fs = request->allow_network_fs,
                                    .any_schema = request->allow_changed_schema};

    TRY(require_there(request->from, arena, err));
    return store_open(&copy->from, request->from, &options, err);
}

/* A second copy would be one more store that believes the same leases, so no target is made for it.
 * A run that was stopped after it had marked the source continues: its target has the note of
 * it. */
static int open_target(struct copy *copy, struct arena *arena, struct err *err)
{
    const struct copy_request *request = copy->request;
    struct store_options options = {.copies = true,
                                    .allow_network_fs = request->allow_network_fs,
                                    .any_schema = request->allow_changed_schema};
    struct str moved;
    int rc;

    TRY(store_moved(copy->from, arena, &moved, err));
    options.resumes = moved.data && !request->again;
    rc = store_open(&copy->to, request->to, &options, err);
    if (rc < 0 && err->code == ERR_NOT_FOUND && options.resumes)
        return err_set(err, ERR_CONFLICT, "the source was moved already (" STR_FMT "); copy that "
                       "one. To make a second copy of the source anyway, pass --again",
                       STR_ARG(moved));
    return rc < 0 ? rc : copy->to->verbs->copy->own(copy->to, err);
}

static int refuse_address(struct str where, struct err *err)
{
    if (!str_starts(where, STR("http://")) && !str_starts(where, STR("https://")))
        return 0;
    return err_set(err, ERR_USAGE, "copy reads and writes the stores themselves, not through a "
                   "server; stop the server and name its store: a path or postgres://…");
}

int node_copy(const struct copy_request *request,
              void (*tell)(void *ctx, const struct copy_step *step), void *tell_ctx,
              struct arena *arena, struct copy_report *report, struct err *err)
{
    struct copy copy = {.tell = tell, .tell_ctx = tell_ctx, .results = arena, .report = report,
                        .request = request};
    int rc;

    *report = (struct copy_report){0};
    if (str_eq(request->from, request->to))
        return err_set(err, ERR_USAGE, "both stores are the same; give another one with --to");
    TRY(refuse_address(request->from, err));
    TRY(refuse_address(request->to, err));
    rc = open_source(&copy, request, arena, err);
    if (rc == 0)
        rc = copy.from->verbs->copy->own(copy.from, err);
    if (rc == 0)
        rc = open_target(&copy, arena, err);
    if (rc == 0)
        rc = copy.from->verbs->copy->others(copy.from, arena, &report->left_behind,
                                            &report->left_count, err);
    if (rc == 0)
        rc = run(&copy, arena, err);
    if (copy.to)
        copy.to->verbs->close(copy.to);
    if (copy.from)
        copy.from->verbs->close(copy.from);
    return rc;
}
