/* Files of the configuration that only their owner may have written, and secrets that are read from
 * files: token_file, password_file, and what systemd hands over ($CREDENTIALS_DIRECTORY). One
 * thread, at the start. */
#include "cli/config/config_secrets.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "node/node.h"

#define SECRET_BYTES_MAX 4096
#define CREDENTIAL STR("a credential of systemd")

/* The group of the same number is the user's own where every user has one. */
static bool group_may_write(const struct stat *info)
{
    return (info->st_mode & S_IWGRP) &&
           !(info->st_gid == getegid() && (uid_t)info->st_gid == info->st_uid);
}

static bool is_ours(const struct stat *info)
{
    return info->st_uid == 0 || info->st_uid == geteuid();
}

int config_trust_place(const char *path, struct err *err)
{
    struct stat entry, folder;

    if (lstat(path, &entry) < 0)
        return 0; /* opening it says why */
    if (!is_ours(&entry))
        return err_set(err, ERR_FORBIDDEN, "%s belongs to another user (id %u), who could make you "
                       "run commands; check it, then pass it with --config, or chown it",
                       path, (unsigned)entry.st_uid);
    if (stat(".", &folder) < 0)
        return err_set(err, ERR_IO, "cannot look at the current folder: %s", strerror(errno));
    if (!is_ours(&folder) || (!(folder.st_mode & S_ISVTX) &&
                              ((folder.st_mode & S_IWOTH) || group_may_write(&folder))))
        return err_set(err, ERR_FORBIDDEN, "other users can write to the current folder and could "
                       "have replaced %s; check it, then pass it with --config", path);
    return 0;
}

int config_trust_file(int fd, const char *path, bool any_owner, struct err *err)
{
    struct stat info;

    if (fstat(fd, &info) < 0)
        return err_set(err, ERR_IO, "cannot look at %s: %s", path, strerror(errno));
    if (!S_ISREG(info.st_mode) && any_owner)
        return 0; /* a pipe or /dev/null was chosen on purpose */
    if (!S_ISREG(info.st_mode))
        return err_set(err, ERR_FORBIDDEN, "%s is not a plain file; check it, then pass it with "
                       "--config", path);
    if (!any_owner && !is_ours(&info))
        return err_set(err, ERR_FORBIDDEN, "%s belongs to another user (id %u), who could make you "
                       "run commands; check it, then pass it with --config, or chown it",
                       path, (unsigned)info.st_uid);
    if ((info.st_mode & S_IWOTH) || (!any_owner && group_may_write(&info)))
        return err_set(err, ERR_FORBIDDEN, "other users can write to %s; run 'chmod go-w %s'",
                       path, path);
    return 0;
}

static int read_all(int fd, const char *path, char *text, size_t *len, struct err *err)
{
    ssize_t got = 1;

    for (*len = 0; got != 0 && *len <= SECRET_BYTES_MAX; *len += got > 0 ? (size_t)got : 0) {
        got = read(fd, text + *len, SECRET_BYTES_MAX + 1 - *len);
        if (got < 0 && errno != EINTR)
            return err_set(err, ERR_IO, "cannot read %s: %s", path, strerror(errno));
    }
    while (*len > 0 && (text[*len - 1] == '\n' || text[*len - 1] == '\r'))
        (*len)--;
    if (*len == 0)
        return err_set(err, ERR_INVALID, "the file %s is empty; write the token or password into "
                       "it, as one line ('openssl rand -hex 32' prints a new token)", path);
    if (*len > SECRET_BYTES_MAX || memchr(text, '\n', *len) || memchr(text, '\0', *len))
        return err_set(err, ERR_INVALID, "%s must hold the token or password alone: one line of at "
                       "most %d bytes", path, SECRET_BYTES_MAX);
    return 0;
}

static int refuse_open(const char *path, struct str named, struct err *err)
{
    int number = errno;
    char folder[PATH_MAX] = "?";

    if (path[0] == '/' || !getcwd(folder, sizeof folder))
        return err_set(err, ERR_IO, "cannot open %.300s (" STR_FMT "): %s; correct the path, or "
                       "write the file there", path, STR_ARG(named), strerror(number));
    return err_set(err, ERR_IO, "cannot open %.200s (" STR_FMT "): %s; a relative path counts from "
                   "the current folder, %.200s: write the whole path", path, STR_ARG(named),
                   strerror(number), folder);
}

/* The line a file holds. `named` is what names the file ("token_file, perdura.yaml:3"). */
static int read_secret_file(const char *path, struct str named, struct arena *arena,
                            struct str *secret, struct err *err)
{
    char text[SECRET_BYTES_MAX + 1];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t len = 0;
    int rc;

    if (fd < 0)
        return refuse_open(path, named, err);
    rc = config_trust_file(fd, path, true, err);
    if (rc == 0)
        rc = read_all(fd, path, text, &len, err);
    close(fd);
    if (rc == 0)
        *secret = arena_str(arena, str_span(text, len));
    explicit_bzero(text, sizeof text);
    if (rc == 0 && !secret->data)
        rc = err_no_memory(err);
    return rc;
}

/* The file systemd has put a credential into; STR_NONE where there is none. */
static struct str read_credential(const struct config_inputs *inputs, const char *name,
                                  struct arena *arena)
{
    struct str folder = inputs->environment
                            ? inputs->environment(inputs->environment_ctx, "CREDENTIALS_DIRECTORY")
                            : STR_NONE;
    struct str path = folder.data ? arena_format(arena, STR_FMT "/%s", STR_ARG(folder), name)
                                  : STR_NONE;

    return path.data && access(path.data, F_OK) == 0 ? path : STR_NONE;
}

/* "token_file, perdura.yaml:3", or the variable that sets it. */
static struct str named_by(const struct config *config, const char *key, struct arena *arena)
{
    uint32_t index = 0;

    for (const struct config_field *field = config_root.fields; field->key; field++, index++)
        if (strcmp(field->key, key) == 0 && config->origins[index].origin == ORIGIN_FILE)
            return arena_format(arena, "%s, " STR_FMT, key,
                                STR_ARG(config->origins[index].where));
        else if (strcmp(field->key, key) == 0 && config->origins[index].where.data)
            return arena_str(arena, config->origins[index].where);
    return str_of(key);
}

/* token_file of the configuration, in the arena; STR_NONE where it says nothing. */
static int configured_token_file(const char *file, struct arena *arena, struct str *path,
                                 struct str *named, struct err *err)
{
    CONFIG_AUTO struct config config = {0};

    TRY(config_init_defaults(&config, err));
    TRY(config_load_file(&config, file, err));
    if (config.settings.access.token_file.data) {
        *path = arena_str(arena, config.settings.access.token_file);
        *named = named_by(&config, "token_file", arena);
    }
    return 0;
}

/* When the user did not name the file, one that cannot be used counts as none: the command may not
 * need a token at all. unread says why, in case it does. */
static int configured_token(const char *file, struct arena *arena, struct client_token *token,
                            struct err *err)
{
    struct err *why = file ? err : &token->unread;
    struct str path = STR_NONE, named = STR_NONE;
    int rc = configured_token_file(file, arena, &path, &named, why);

    if (rc == 0 && path.data) {
        token->from = arena_format(arena, "token_file (" STR_FMT ")", STR_ARG(path));
        rc = read_secret_file(arena_cstr(arena, path), named, arena, &token->text, why);
    }
    return file ? rc : 0;
}

int config_client_token(const char *file, struct arena *arena, struct client_token *token,
                        struct err *err)
{
    const struct config_inputs inputs = {.environment = config_getenv};
    struct str path = config_getenv(NULL, "PERDURA_TOKEN_FILE");

    *token = (struct client_token){.text = config_getenv(NULL, "PERDURA_TOKEN"),
                                   .from = STR("PERDURA_TOKEN")};
    if (token->text.data)
        return 0;
    token->from = arena_format(arena, "PERDURA_TOKEN_FILE (" STR_FMT ")", STR_ARG(path));
    if (path.data)
        return read_secret_file(path.data, STR("PERDURA_TOKEN_FILE"), arena, &token->text, err);
    TRY(configured_token(file, arena, token, err));
    if (token->text.data)
        return 0;
    path = read_credential(&inputs, "perdura.token", arena);
    token->from = path;
    if (!path.data)
        return 0;
    return read_secret_file(path.data, CREDENTIAL, arena, &token->text, err);
}

static void note_origin(struct config *config, const char *key, struct str path)
{
    uint32_t index = 0;

    for (const struct config_field *field = config_root.fields; field->key; field++, index++)
        if (strcmp(field->key, key) == 0)
            config->origins[index] = (struct config_value_origin){ORIGIN_FILE, path};
}

static int read_token(struct config *config, const struct config_inputs *inputs, struct err *err)
{
    struct settings *settings = &config->settings;
    struct str path = settings->access.token_file;
    struct str named = path.data ? named_by(config, "token_file", &config->arena) : CREDENTIAL;

    if (settings->access.token.data)
        return 0;
    if (!path.data)
        path = read_credential(inputs, "perdura.token", &config->arena);
    if (!path.data)
        return 0;
    TRY(read_secret_file(arena_cstr(&config->arena, path), named, &config->arena,
                         &settings->access.token, err));
    note_origin(config, "token", path);
    return 0;
}

void config_append_encoded(struct buf *out, struct str text)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char byte = (unsigned char)text.data[i];

        if ((byte >= '0' && byte <= '9') || (byte >= 'A' && byte <= 'Z') ||
            (byte >= 'a' && byte <= 'z') || byte == '-' || byte == '.' || byte == '_' ||
            byte == '~')
            buf_byte(out, (char)byte);
        else
            buf_format(out, "%%%02X", byte);
    }
}

static int add_password(struct config *config, struct str *store, struct str password,
                        struct err *err)
{
    BUF_AUTO struct buf url = BUF_INIT(2 * CONFIG_TEXT_BYTES_MAX);

    buf_str(&url, *store);
    buf_text(&url, memchr(store->data, '?', store->len) ? "&password=" : "?password=");
    config_append_encoded(&url, password);
    *store = url.failed ? STR_NONE : arena_str(&config->arena, buf_view(&url));
    return store->data ? 0 : err_set(err, ERR_INVALID, "the password of the database is too long");
}

static int read_password(struct config *config, const struct config_inputs *inputs,
                         struct err *err)
{
    struct str path = config->settings.access.password_file;
    struct str named = path.data ? named_by(config, "password_file", &config->arena) : CREDENTIAL;
    struct str password;

    if (!node_store_wants_password(config->settings.store))
        return 0;
    if (!path.data)
        path = read_credential(inputs, "perdura.db-password", &config->arena);
    if (!path.data)
        return 0;
    TRY(read_secret_file(arena_cstr(&config->arena, path), named, &config->arena, &password,
                         err));
    return add_password(config, &config->settings.store, password, err);
}

static int read_inbox_password(struct config *config, struct inbox_rule *rule, struct err *err)
{
    struct arena *arena = &config->arena;
    struct str named = arena_format(arena, "password of inbox " STR_FMT, STR_ARG(rule->name));
    struct str password = STR_NONE;

    if (!rule->password_file.data && !rule->password_env.data)
        return 0;
    if (!node_store_wants_password(rule->store))
        return err_set(err, ERR_INVALID, "the store of inbox '" STR_FMT "' has a password already; "
                       "keep one of them", STR_ARG(rule->name));
    if (rule->password_file.data)
        TRY(read_secret_file(arena_cstr(arena, rule->password_file), named, arena, &password,
                             err));
    else
        password = config_getenv(NULL, arena_cstr(arena, rule->password_env));
    if (!password.data)
        return err_set(err, ERR_INVALID, "the variable " STR_FMT " (" STR_FMT ") is not set",
                       STR_ARG(rule->password_env), STR_ARG(named));
    return add_password(config, &rule->store, password, err);
}

static int read_inbox_passwords(struct config *config, struct err *err)
{
    for (uint32_t i = 0; i < config->settings.enqueue.inboxes_count; i++)
        TRY(read_inbox_password(
            config, (struct inbox_rule *)(uintptr_t)&config->settings.enqueue.inboxes[i], err));
    return 0;
}

/* Values of headers that are sent to services. */
static int read_header(struct config *config, const struct service_rule *rule,
                       struct service_header *header, struct err *err)
{
    struct arena *arena = &config->arena;
    struct str named = arena_format(arena, "header " STR_FMT " of service " STR_FMT,
                                    STR_ARG(header->name), STR_ARG(rule->name));

    if (header->file.data)
        return read_secret_file(arena_cstr(arena, header->file), named, arena, &header->value,
                                err);
    if (!header->env.data)
        return 0;
    header->value = config_getenv(NULL, arena_cstr(arena, header->env));
    for (size_t i = 0; i < header->value.len; i++)
        if ((unsigned char)header->value.data[i] < ' ' || header->value.data[i] == 127)
            return err_set(err, ERR_INVALID, "the variable " STR_FMT " (" STR_FMT ") must be one "
                           "line of text", STR_ARG(header->env), STR_ARG(named));
    return header->value.data ? 0 : err_set(err, ERR_INVALID, "the variable " STR_FMT " (" STR_FMT
                                            ") is not set", STR_ARG(header->env), STR_ARG(named));
}

static int read_headers(struct config *config, struct err *err)
{
    const struct settings *settings = &config->settings;

    for (uint32_t i = 0; i < settings->pool.services_count; i++)
        for (uint32_t h = 0; h < settings->pool.services[i].headers_count; h++) {
            const struct service_rule *rule = &settings->pool.services[i];

            /* The list is the arena's own, made by the walk a moment ago. */
            TRY(read_header(config, rule, (struct service_header *)(uintptr_t)&rule->headers[h],
                            err));
        }
    return 0;
}

static int read_broker_passwords(struct config *config, struct err *err)
{
    const struct settings *settings = &config->settings;
    struct arena *arena = &config->arena;

    for (uint32_t i = 0; i < settings->pool.brokers_count; i++) {
        struct broker_rule *rule = (struct broker_rule *)(uintptr_t)&settings->pool.brokers[i];

        if (rule->password_file.data)
            TRY(read_secret_file(arena_cstr(arena, rule->password_file),
                                 arena_format(arena, "password of broker " STR_FMT,
                                              STR_ARG(rule->name)),
                                 arena, &rule->password, err));
    }
    return 0;
}

static int read_model_keys(struct config *config, struct err *err)
{
    const struct agent_settings *agents = &config->settings.agents;
    struct arena *arena = &config->arena;

    for (uint32_t i = 0; i < agents->models_count; i++) {
        struct model_rule *rule = (struct model_rule *)(uintptr_t)&agents->models[i];
        struct str named = arena_format(arena, "key of model " STR_FMT, STR_ARG(rule->name));

        if (rule->key_file.data)
            TRY(read_secret_file(arena_cstr(arena, rule->key_file), named, arena, &rule->key, err));
        if (!rule->key_env.data)
            continue;
        rule->key = config_getenv(NULL, arena_cstr(arena, rule->key_env));
        if (!rule->key.data)
            return err_set(err, ERR_INVALID, "the variable " STR_FMT " (" STR_FMT ") is not set",
                           STR_ARG(rule->key_env), STR_ARG(named));
        for (size_t at = 0; at < rule->key.len; at++)
            if ((unsigned char)rule->key.data[at] <= ' ' || rule->key.data[at] == 127)
                return err_set(err, ERR_INVALID, "the variable " STR_FMT " (" STR_FMT ") must be "
                               "one word", STR_ARG(rule->key_env), STR_ARG(named));
    }
    return 0;
}

int config_read_secrets(struct config *config, const struct config_inputs *inputs,
                        struct err *err)
{
    TRY(read_headers(config, err));
    TRY(read_broker_passwords(config, err));
    TRY(read_model_keys(config, err));
    TRY(read_inbox_passwords(config, err));
    TRY(config_read_prompts(config, err));
    TRY(read_token(config, inputs, err));
    return read_password(config, inputs, err);
}
