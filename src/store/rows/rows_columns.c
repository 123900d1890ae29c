/* What @token@ in .sql files stands for: the columns of tables of fields. Any thread. */
#include "store/rows/rows.h"
#include "store/rows/rows_registry.h"

#include "core/access/token.h"
#include "core/log/audit.h"
#include "core/namespace_row.h"
#include "core/plan/catalog_fields.h"
#include "core/task/execution_fields.h"
#include "core/task/recovery_fields.h"

static const struct field_table *const tables[] = {
    &recovery_table, &checkpoint_table, &category_table,       &job_table,     &job_put_table,
    &schedule_table, &recurring_table,  &job_dependency_table, &job_run_table, &job_wait_table,
    &execution_table, &rows_worker_table, &rows_queue_table, &rows_outbox_table, &audit_table,
    &token_table, &namespace_table};

static const struct field_table *find_table(struct str name)
{
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++)
        if (str_is(name, tables[i]->name))
            return tables[i];
    return NULL;
}

/* PostgreSQL has a type for JSON; its parameters are texts. */
static void write_parameter(struct buf *out, const struct field *field, uint32_t at, char mark)
{
    buf_format(out, "%c%u%s", mark, at, mark == '$' && field->kind == FIELD_JSON ? "::jsonb" : "");
}

bool rows_write_token(struct buf *out, struct str token, char mark)
{
    const char *dot = memchr(token.data, '.', token.len);
    size_t name_len = dot ? (size_t)(dot - token.data) : token.len;
    const struct field_table *table = find_table(str_span(token.data, name_len));
    struct str part = str_span(token.data + name_len, token.len - name_len);

    if (!table)
        return false;
    ASSERT(part.len == 0 || str_is(part, ".names") || str_is(part, ".values"));
    for (uint32_t i = 0; i < table->count; i++) {
        buf_text(out, i ? ", " : "");
        if (str_is(part, ".values"))
            write_parameter(out, &table->fields[i], i + 1, mark);
        else
            buf_format(out, "%s%s%s", part.len ? "" : table->alias, part.len ? "" : ".",
                       table->fields[i].name);
    }
    return true;
}

void rows_expand(struct buf *out, struct str text, void (*write)(struct buf *, struct str))
{
    for (size_t i = 0; i < text.len; i++) {
        const char *end = text.data[i] == '@' ? memchr(text.data + i + 1, '@', text.len - i - 1)
                                              : NULL;

        if (!end) {
            buf_byte(out, text.data[i]);
            continue;
        }
        write(out, str_span(text.data + i + 1, (size_t)(end - text.data) - i - 1));
        i = (size_t)(end - text.data);
    }
}
