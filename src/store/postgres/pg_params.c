#include "store/postgres/pg_params.h"

#include "base/err.h"

#include <arpa/inet.h>
#include <endian.h>

#define BYTES_MAX (512u * 1024 * 1024) /* the largest batch: 10,000 payloads of 32 KiB and more */

static const struct {
    Oid element;
    Oid array;
} array_types[] = {{PG_OID_BOOL, 1000}, {PG_OID_INT8, 1016}, {PG_OID_TEXT, 1009},
                   {PG_OID_TIME, 1185}, {PG_OID_UUID, 2951}};

void params_init(struct pg_params *params)
{
    *params = (struct pg_params){.bytes = BUF_INIT(BYTES_MAX)};
}

void params_deinit(struct pg_params *params)
{
    buf_deinit(&params->bytes);
}

void params_reset(struct pg_params *params)
{
    buf_reset(&params->bytes);
    params->count = 0;
}

static void put_int32(struct buf *bytes, int32_t value)
{
    uint32_t wire = htonl((uint32_t)value);

    buf_append(bytes, &wire, sizeof wire);
}

static void put_int64(struct buf *bytes, int64_t value)
{
    uint64_t wire = htobe64((uint64_t)value);

    buf_append(bytes, &wire, sizeof wire);
}

/* ---- single values ---- */

static void begin(struct pg_params *params, Oid type)
{
    ASSERT(params->count < PG_PARAMS_MAX);
    params->starts[params->count] = params->bytes.len;
    params->types[params->count] = type;
}

static void end(struct pg_params *params)
{
    params->lens[params->count] = (int)(params->bytes.len - params->starts[params->count]);
    params->count++;
}

static void end_null(struct pg_params *params)
{
    params->lens[params->count++] = -1;
}

void param_int(struct pg_params *params, int64_t value)
{
    begin(params, PG_OID_INT8);
    put_int64(&params->bytes, value);
    end(params);
}

void param_null(struct pg_params *params, Oid type)
{
    begin(params, type);
    end_null(params);
}

void param_bool(struct pg_params *params, bool value)
{
    begin(params, PG_OID_BOOL);
    buf_byte(&params->bytes, (char)value);
    end(params);
}

void param_moment(struct pg_params *params, int64_t us)
{
    begin(params, PG_OID_TIME);
    put_int64(&params->bytes, us - PG_EPOCH_US);
    end(params);
}

void param_time(struct pg_params *params, int64_t us)
{
    if (us == 0)
        param_null(params, PG_OID_TIME);
    else
        param_moment(params, us);
}

void param_text(struct pg_params *params, struct str text)
{
    begin(params, PG_OID_TEXT);
    if (!text.data) {
        end_null(params);
        return;
    }
    buf_str(&params->bytes, text);
    end(params);
}

void param_uuid(struct pg_params *params, const struct uuid *id)
{
    begin(params, PG_OID_UUID);
    if (uuid_is_nil(id)) {
        end_null(params);
        return;
    }
    buf_append(&params->bytes, id->bytes, sizeof id->bytes);
    end(params);
}

/* ---- arrays ---- */

static Oid array_type(Oid element_type)
{
    for (size_t i = 0; i < sizeof array_types / sizeof array_types[0]; i++)
        if (array_types[i].element == element_type)
            return array_types[i].array;
    ASSERT(false);
    return 0;
}

/* One dimension starting at 1; the NULL flag and the number of elements are filled in at the
 * end. */
void array_begin(struct pg_params *params, Oid element_type)
{
    begin(params, array_type(element_type));
    params->array_at = params->bytes.len;
    params->elements = 0;
    params->any_null = false;
    put_int32(&params->bytes, 1);
    put_int32(&params->bytes, 0);
    put_int32(&params->bytes, (int32_t)element_type);
    put_int32(&params->bytes, 0);
    put_int32(&params->bytes, 1);
}

void array_null(struct pg_params *params)
{
    put_int32(&params->bytes, -1);
    params->any_null = true;
    params->elements++;
}

void array_int(struct pg_params *params, int64_t value)
{
    put_int32(&params->bytes, 8);
    put_int64(&params->bytes, value);
    params->elements++;
}

void array_bool(struct pg_params *params, bool value)
{
    put_int32(&params->bytes, 1);
    buf_byte(&params->bytes, (char)value);
    params->elements++;
}

void array_time(struct pg_params *params, int64_t us)
{
    if (us == 0)
        array_null(params);
    else
        array_int(params, us - PG_EPOCH_US);
}

void array_text(struct pg_params *params, struct str text)
{
    if (!text.data) {
        array_null(params);
        return;
    }
    put_int32(&params->bytes, (int32_t)text.len);
    buf_str(&params->bytes, text);
    params->elements++;
}

void array_uuid(struct pg_params *params, const struct uuid *id)
{
    if (uuid_is_nil(id))
        array_null(params);
    else
        array_any_uuid(params, id);
}

void array_any_uuid(struct pg_params *params, const struct uuid *id)
{
    put_int32(&params->bytes, 16);
    buf_append(&params->bytes, id->bytes, 16);
    params->elements++;
}

void array_end(struct pg_params *params)
{
    uint32_t any_null = htonl(params->any_null);
    uint32_t elements = htonl(params->elements);

    if (!params->bytes.failed) {
        memcpy(params->bytes.data + params->array_at + 4, &any_null, 4);
        memcpy(params->bytes.data + params->array_at + 12, &elements, 4);
    }
    end(params);
}
