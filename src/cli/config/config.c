/* Joins flag, environment, file and default, in that order of strength, and notes for every
 * setting which of them it was. The YAML side is config_yaml.c. One thread, at the start. */
#include "cli/config/config.h"
#include "cli/config/config_secrets.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

struct str config_getenv(const void *ctx, const char *name)
{
    const char *value = getenv(name);

    (void)ctx;
    return value && *value ? str_of(value) : STR_NONE;
}

int config_init_defaults(struct config *config, struct err *err)
{
    *config = (struct config){.arena = ARENA_INIT(CONFIG_ARENA_BYTES_MAX)};
    return config_set_defaults(config, &config_root, &config->arena, err);
}

void config_deinit(struct config *config)
{
    arena_deinit(&config->arena);
}

static int read_file(int fd, const char *path, struct buf *text, struct err *err)
{
    ssize_t got = 1;

    while (got != 0) {
        if (!buf_reserve(text, 16384))
            return err_set(err, ERR_TOO_LARGE, "%s is larger than 1 MiB; split what it lists over "
                           "several nodes or shorten it", path);
        got = read(fd, text->data + text->len, 16384);
        if (got < 0 && errno != EINTR)
            return err_set(err, ERR_IO, "cannot read %s: %s", path, strerror(errno));
        if (got > 0)
            text->len += (size_t)got;
    }
    return 0;
}

int config_load_file(struct config *config, const char *given, struct err *err)
{
    const char *path = given ? given : CONFIG_FILE_DEFAULT;
    BUF_AUTO struct buf text = BUF_INIT(CONFIG_BYTES_MAX + 16384);
    int rc = given ? 0 : config_trust_place(path, err);
    int fd;

    if (rc < 0)
        return rc;
    fd = open(path, O_RDONLY | O_CLOEXEC | (given ? 0 : O_NONBLOCK));
    if (fd < 0 && errno == ENOENT && !given)
        return 0;
    if (fd < 0)
        return err_set(err, ERR_IO, "cannot open the configuration %s: %s; pass --config FILE",
                       path, strerror(errno));
    rc = config_trust_file(fd, path, given != NULL, err);
    if (rc == 0)
        rc = read_file(fd, path, &text, err);
    if (rc < 0)
        goto out;
    config->file = arena_str(&config->arena, str_of(path));
    rc = config_parse(config, buf_view(&text), path, err);
out:
    close(fd);
    return rc;
}

static struct str lookup_env(const struct config_inputs *inputs, const char *name)
{
    return inputs->environment ? inputs->environment(inputs->environment_ctx, name) : STR_NONE;
}

static struct str lookup_flag(const struct config_inputs *inputs, const char *name)
{
    return inputs->flag ? inputs->flag(inputs->flag_ctx, name) : STR_NONE;
}

static struct str database_part(const struct config_inputs *inputs, const char *part)
{
    char name[40];
    struct str value;

    snprintf(name, sizeof name, "DB_%s", part);
    value = lookup_env(inputs, name);
    if (value.data)
        return value;
    snprintf(name, sizeof name, "API_PG_DB_%s", part);
    return lookup_env(inputs, name);
}

/* postgres://… from DB_HOST and the like (A12); STR_NONE when neither host nor name is set. */
static struct str database_url(const struct config_inputs *inputs, struct arena *arena)
{
    struct str host = database_part(inputs, "HOST");
    struct str port = database_part(inputs, "PORT");
    struct str name = database_part(inputs, "NAME");
    struct str user = database_part(inputs, "USER");
    struct str password = database_part(inputs, "PASSWORD");
    BUF_AUTO struct buf url = BUF_INIT(CONFIG_TEXT_BYTES_MAX);
    bool is_ipv6 = host.data && memchr(host.data, ':', host.len);

    if (!host.data && !name.data)
        return STR_NONE;
    buf_text(&url, "postgres://");
    config_append_encoded(&url, user);
    if (password.data) {
        buf_byte(&url, ':');
        config_append_encoded(&url, password);
    }
    if (user.data || password.data)
        buf_byte(&url, '@');
    if (is_ipv6)
        buf_format(&url, "[" STR_FMT "]", STR_ARG(host));
    else
        config_append_encoded(&url, host.data ? host : STR("localhost"));
    if (port.data)
        buf_format(&url, ":" STR_FMT, STR_ARG(port));
    buf_byte(&url, '/');
    config_append_encoded(&url, name);
    return url.failed ? STR_NONE : arena_str(arena, buf_view(&url));
}

/* PERDURA_STORE is meant for this program and wins over DATABASE_URL, which wins over DB_*. */
static struct str store_from_environment(const struct config_inputs *inputs, struct arena *arena,
                                         const char **variable)
{
    struct str store = lookup_env(inputs, "PERDURA_STORE");

    *variable = "PERDURA_STORE";
    if (store.data)
        return store;
    *variable = "DATABASE_URL";
    store = lookup_env(inputs, "DATABASE_URL");
    if (store.data)
        return store;
    *variable = "DB_*";
    return database_url(inputs, arena);
}

static bool is_whole_number(struct str text)
{
    int64_t number;

    return str_to_int64(text, &number);
}

static struct str value_from_environment(struct config *config, const struct config_field *field,
                                         const struct config_inputs *inputs,
                                         const char **variable)
{
    struct str text;

    *variable = field->env;
    if (strcmp(field->key, "store") == 0)
        return store_from_environment(inputs, &config->arena, variable);
    if (strcmp(field->key, "password_file") == 0)
        return database_part(inputs, "PASSWORD_FILE");
    text = field->env ? lookup_env(inputs, field->env) : STR_NONE;
    /* WORKER_TIMEOUT has been a plain number of seconds elsewhere. */
    if (field->kind == CONFIG_DURATION && text.data && is_whole_number(text))
        text = arena_format(&config->arena, STR_FMT "s", STR_ARG(text));
    return text;
}

static int apply_outside(struct config *config, const struct config_field *field,
                         struct config_value_origin *origin, const struct config_inputs *inputs,
                         struct err *err)
{
    struct str flag = field->flag ? lookup_flag(inputs, field->flag) : STR_NONE;
    const char *variable;
    struct str text = flag;
    struct err why;
    int rc;

    if (flag.data) {
        if (field->kind == CONFIG_BOOL)
            text = STR("true");
        *origin = (struct config_value_origin){
            ORIGIN_FLAG, arena_format(&config->arena, "--%s", field->flag)};
    } else {
        text = value_from_environment(config, field, inputs, &variable);
        if (!text.data)
            return 0;
        *origin = (struct config_value_origin){
            ORIGIN_ENVIRONMENT, arena_str(&config->arena, str_of(variable))};
    }
    rc = config_set_scalar(config, field, text, &config->arena, &why);
    if (rc < 0)
        return err_set(err, flag.data ? ERR_USAGE : ERR_INVALID, STR_FMT ": %s",
                       STR_ARG(origin->where), why.text);
    return 0;
}

/* The schema travels in the address, so that one text says everything about a store. */
static int add_schema(struct config *config, const struct config_inputs *inputs, struct err *err)
{
    struct str schema = database_part(inputs, "SCHEMA");
    struct str *store = &config->settings.store;

    if (!schema.data || (!str_starts(*store, STR("postgres://")) &&
                         !str_starts(*store, STR("postgresql://"))))
        return 0;
    for (size_t i = 0; i < schema.len; i++) {
        char c = schema.data[i];

        if (!(c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
              (i > 0 && c >= '0' && c <= '9')) || schema.len > 63)
            return err_set(err, ERR_INVALID, "DB_SCHEMA is '" STR_FMT "'; it must be a name of "
                           "letters, digits and '_', at most 63", STR_ARG(schema));
    }
    if (memmem(store->data, store->len, "schema=", 7))
        return 0;
    *store = arena_format(&config->arena, STR_FMT "%cschema=" STR_FMT, STR_ARG(*store),
                          memchr(store->data, '?', store->len) ? '&' : '?', STR_ARG(schema));
    return 0;
}

int config_load(struct config *config, const struct config_inputs *inputs, struct err *err)
{
    uint32_t index = 0;

    TRY(config_init_defaults(config, err));
    TRY(config_load_file(config, inputs->file, err));
    for (const struct config_field *field = config_root.fields; field->key; field++, index++)
        TRY(apply_outside(config, field, &config->origins[index], inputs, err));
    TRY(config_read_secrets(config, inputs, err));
    return add_schema(config, inputs, err);
}
