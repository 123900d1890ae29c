/* The file with the descriptors of a gRPC service: read at the start, and again when it has changed.
 * A file that cannot be used leaves the one before it in force. */
#include <errno.h>

#include "base/clock.h"
#include "worker/services/grpc_int.h"

#define DESCRIPTOR_BYTES_MAX ((size_t)16 << 20)
#define LOOK_US CLOCK_SECOND_US
#define WHY_BYTES 512
#define PATH_BYTES 200 /* of it in a sentence */

static int read_all(FILE *file, struct buf *out, const struct service_rule *rule, struct err *err)
{
    char piece[16384];
    size_t len;

    while ((len = fread(piece, 1, sizeof piece, file)) > 0)
        buf_append(out, piece, len);
    if (ferror(file) || out->failed)
        return err_set(err, ERR_INVALID, "the descriptor '" STR_FMT "' of service '" STR_FMT "' "
                       "cannot be read, or is larger than %d MiB",
                       STR_ARG(str_cut(rule->descriptor, PATH_BYTES)), STR_ARG(rule->name),
                       (int)(DESCRIPTOR_BYTES_MAX >> 20));
    return 0;
}

static int read_file(struct grpc_line *grpc, struct buf *out, struct err *err)
{
    const struct service_rule *rule = grpc_rule(grpc);
    ARENA_AUTO struct arena arena = ARENA_INIT(0);
    char *path = TRY_MEMORY(arena_cstr(&arena, rule->descriptor));
    FILE *file = fopen(path, "re");
    int rc;

    file_stamp_take(&grpc->stamp, path);
    if (!file)
        return err_set(err, ERR_INVALID, "cannot read the descriptor '" STR_FMT "' of service '"
                       STR_FMT "': %s", STR_ARG(str_cut(rule->descriptor, PATH_BYTES)),
                       STR_ARG(rule->name), strerror(errno));
    rc = read_all(file, out, rule, err);
    fclose(file);
    return rc;
}

static int add_set(struct grpc_line *grpc, struct grpc_schema *schema, struct err *err)
{
    const struct service_rule *rule = grpc_rule(grpc);
    BUF_AUTO struct buf set = BUF_INIT(DESCRIPTOR_BYTES_MAX);
    BUF_AUTO struct buf why = BUF_INIT(WHY_BYTES);
    const struct grpc_sink reason = grpc_sink_of(&why);

    TRY(read_file(grpc, &set, err));
    if (grpc->module.codec->add_set(schema, (struct grpc_bytes){set.data, set.len}, &reason) ==
        GRPC_CODED)
        return 0;
    return err_set(err, ERR_INVALID, "the descriptor '" STR_FMT "' of service '" STR_FMT "' cannot "
                   "be used: " STR_FMT, STR_ARG(str_cut(rule->descriptor, PATH_BYTES)),
                   STR_ARG(rule->name), STR_ARG(buf_view(&why)));
}

int grpc_descriptor_read(struct grpc_line *grpc, struct err *err)
{
    struct grpc_schema *schema = TRY_MEMORY(grpc->module.codec->schema_new());

    if (add_set(grpc, schema, err) < 0) {
        grpc->module.codec->schema_free(schema);
        return -(int)err->code;
    }
    grpc->module.codec->schema_free(grpc->before);
    grpc->before = grpc->schema;
    grpc->schema = schema;
    return 0;
}

void grpc_descriptor_look(struct grpc_line *grpc)
{
    ARENA_AUTO struct arena arena = ARENA_INIT(0);
    int64_t now_us = clock_boot_us();
    struct file_stamp stamp;
    struct err err;
    char *path;

    if (now_us - grpc->schema_us < LOOK_US)
        return;
    grpc->schema_us = now_us;
    path = arena_cstr(&arena, grpc_rule(grpc)->descriptor);
    if (!path)
        return;
    file_stamp_take(&stamp, path);
    if (file_stamp_same(&stamp, &grpc->stamp))
        return;
    if (grpc_descriptor_read(grpc, &err) < 0)
        LOG(grpc->line->pool->log, LOG_WARN, "service.descriptor_refused",
            KS("service", grpc_rule(grpc)->name), KC("reason", err.text),
            KC("hint", "the one before it stays in force"));
    else
        LOG(grpc->line->pool->log, LOG_INFO, "service.descriptor_read",
            KS("service", grpc_rule(grpc)->name));
}
