#include "store/postgres/pg_sql.h"

#include "base/embedded.h"
#include "store/postgres/pg_rows.h"
#include "store/rows/rows.h"

#include <stdlib.h>

#define TEXT_BYTES_MAX 32768

static const char *const names[PGSQL_COUNT] = {
#define X(name) #name,
    ROWS_STATEMENTS(X) PG_STATEMENTS(X)
#undef X
};

/* @state@, @spec@ and @lean@ (without the payload) stand for columns (aliases s and p); the row
 * layer resolves the other tokens. */
static void write_token(struct buf *out, struct str token)
{
    if (str_is(token, "state")) {
        rows_columns(out, &pg_states, "s");
    } else if (str_is(token, "spec")) {
        rows_columns(out, &pg_specs, "p");
    } else if (!rows_write_token(out, token, '$')) {
        struct buf all = BUF_INIT(TEXT_BYTES_MAX);
        const char *payload;

        ASSERT(str_is(token, "lean"));
        rows_columns(&all, &pg_specs, "p");
        buf_byte(&all, '\0');
        ASSERT(!all.failed);
        payload = strstr(all.data, "p.payload,");
        ASSERT(payload);
        buf_append(out, all.data, (size_t)(payload - all.data));
        buf_text(out, "NULL::text,");
        buf_text(out, payload + 10);
        buf_deinit(&all);
    }
}

int sql_load(struct pg_sql *sql, struct err *err)
{
    for (int i = 0; i < PGSQL_COUNT; i++) {
        struct str text = embedded_statement("store/postgres/sql/", names[i]);
        struct buf full = BUF_INIT(TEXT_BYTES_MAX);

        ASSERT(text.data);
        rows_expand(&full, text, write_token);
        buf_byte(&full, '\0');
        if (full.failed) {
            buf_deinit(&full);
            sql_unload(sql);
            return err_set(err, ERR_MEMORY, "out of memory for the statements");
        }
        sql->statements[i] = (struct pg_statement){names[i], full.data};
    }
    return 0;
}

void sql_unload(struct pg_sql *sql)
{
    for (int i = 0; i < PGSQL_COUNT; i++) {
        free((char *)sql->statements[i].text);
        sql->statements[i].text = NULL;
    }
}
