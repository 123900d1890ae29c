/* The second half of a copy: both stores are read from the disk again, and for every table the
 * number of its rows and a hash over them are compared, whatever order they come in. The hash is
 * over the values as the tables' columns name them, so that both layouts give the same. One
 * thread. */
#include "node/copy_int.h"

#include "base/hash.h"
#include "base/json.h"
#include "core/task/status.h"

#define ROW_BYTES_MAX (64 * 1024 * 1024) /* a few texts of a MiB each */

static void put_number(struct buf *out, int64_t number)
{
    buf_append(out, &number, sizeof number);
}

/* PostgreSQL writes JSON in its own way: compared is what it says. */
static int put_json(struct buf *out, struct str text, struct err *err)
{
    struct str value;

    if (json_check_ours(text, &value, err) < 0) { /* compared as it is, then */
        *err = (struct err){0};
        buf_str(out, text);
        return 0;
    }
    return json_canonical(value, out, err);
}

static int put_value(struct buf *out, const struct copy_column *column,
                     const struct copy_value *value, struct err *err)
{
    size_t start;

    buf_byte(out, value->present ? '1' : '0');
    if (!value->present)
        return 0;
    if (column->kind <= COPY_BOOL) {
        put_number(out, value->number);
        return 0;
    }
    start = out->len;
    if (column->kind == COPY_JSON) {
        TRY(put_json(out, value->bytes, err));
    } else {
        buf_str(out, value->bytes);
    }
    put_number(out, (int64_t)(out->len - start));
    return 0;
}

static int add_row(const struct copy_table *table, const struct copy_value *row, struct buf *bytes,
                   uint64_t *hash, struct err *err)
{
    buf_reset(bytes);
    for (uint32_t i = 0; i < table->columns_count; i++)
        if (!(table->columns[i].flags & COPY_DERIVED))
            TRY(put_value(bytes, &table->columns[i], &row[i], err));
    if (bytes->failed)
        return err_set(err, ERR_MEMORY, "out of memory for a row of %s", table->name);
    *hash += hash_bytes64(bytes->data, bytes->len, 0);
    return 0;
}

struct side {
    struct store *store;
    int64_t rows;
    uint64_t hash;
    int64_t by_status[STATUS_COUNT];
};

static void count_status(struct side *side, struct str word)
{
    enum status status = STATUS_NONE;

    if (status_parse(word, &status))
        side->by_status[status]++;
}

static int add_batch(struct side *side, const struct copy_table *table,
                     const struct copy_value *values, uint32_t rows, struct buf *bytes,
                     struct err *err)
{
    bool is_states = strcmp(table->name, "task_states") == 0;
    uint32_t status = is_states ? copy_column_of(table, "status") : 0;

    for (uint32_t i = 0; i < rows; i++) {
        const struct copy_value *row = &values[i * table->columns_count];

        TRY(add_row(table, row, bytes, &side->hash, err));
        if (is_states)
            count_status(side, row[status].bytes);
    }
    side->rows += rows;
    return 0;
}

static int sum_table(struct copy *copy, const struct copy_table *table, struct side *side,
                     struct err *err)
{
    struct arena arenas[2] = {ARENA_INIT(0), ARENA_INIT(0)}; /* this batch, and the one before */
    struct buf bytes = BUF_INIT(ROW_BYTES_MAX);
    const struct copy_value *after = NULL;
    struct copy_value *values;
    uint32_t rows = 0;
    int turn = 0;
    int rc;

    do {
        arena_reset(&arenas[turn]);
        rc = side->store->verbs->copy->read(side->store, table, after, &arenas[turn], &values,
                                            &rows, err);
        if (rc == 0)
            rc = add_batch(side, table, values, rows, &bytes, err);
        if (rc < 0 || rows == 0)
            break;
        after = &values[(rows - 1) * table->columns_count];
        turn = !turn;
        copy_tell(copy, table, false, rows);
    } while (true);
    buf_deinit(&bytes);
    arena_deinit(&arenas[0]);
    arena_deinit(&arenas[1]);
    return rc;
}

static void add_sum(struct copy_report *report, struct copy_sum *sums, uint32_t *count,
                    struct copy_sum sum)
{
    if (sum.from_rows != sum.to_rows || sum.from_hash != sum.to_hash)
        report->differences++;
    sums[(*count)++] = sum;
}

static void sum_statuses(struct copy *copy, const struct side *from, const struct side *to,
                         struct copy_sum *sums)
{
    for (int i = 0; i < STATUS_COUNT; i++)
        if (i != STATUS_NONE && (from->by_status[i] > 0 || to->by_status[i] > 0))
            add_sum(copy->report, sums, &copy->report->statuses_count,
                    (struct copy_sum){.name = str_of(status_word((enum status)i)),
                                      .from_rows = from->by_status[i],
                                      .to_rows = to->by_status[i]});
}

int copy_compare(struct copy *copy, struct err *err)
{
    struct copy_sum *tables = arena_alloc_array(copy->results, COPY_TABLES_MAX, sizeof *tables);
    struct copy_sum *statuses = arena_alloc_array(copy->results, STATUS_COUNT, sizeof *statuses);

    TRY_MEMORY(tables && statuses);
    copy->report->tables = tables;
    copy->report->statuses = statuses;
    copy->step = (struct copy_step){.compares = true, .total = 2 * copy->total};
    for (uint32_t i = 0; i < copy_tables_count; i++) {
        const struct copy_table *table = &copy_tables[i];
        struct side from = {.store = copy->from}, to = {.store = copy->to};

        if (!copy_has(copy, table))
            continue;
        if (copy->counts[i] > 0)
            copy_tell(copy, table, true, 0);
        TRY(sum_table(copy, table, &from, err));
        TRY(sum_table(copy, table, &to, err));
        add_sum(copy->report, tables, &copy->report->tables_count,
                (struct copy_sum){str_of(table->name), from.rows, to.rows, from.hash, to.hash});
        sum_statuses(copy, &from, &to, statuses);
    }
    return 0;
}
