/* See config_secrets.c. */
#ifndef CLI_CONFIG_CONFIG_SECRETS_H
#define CLI_CONFIG_CONFIG_SECRETS_H

#include "cli/config/config.h"

/* Of the file in the current folder, before it is opened: refuses a name, or a folder, that neither
 * root nor this user owns, and a folder in which others may replace it. */
int config_trust_place(const char *path, struct err *err);

/* Refuses a file that others may write, or (unless any_owner) that neither root nor this user
 * owns. */
int config_trust_file(int fd, const char *path, bool any_owner, struct err *err);

/* The token of a client, and where it came from. */
struct client_token {
    struct str text;   /* STR_NONE = none */
    struct str from;   /* "PERDURA_TOKEN", a file */
    struct err unread; /* why the configuration in the current folder gave none */
};

/* Looks as a server does: PERDURA_TOKEN, PERDURA_TOKEN_FILE, token_file of the configuration (file;
 * NULL = the one in the current folder), the credential. Lives as long as arena and environment. */
int config_client_token(const char *file, struct arena *arena, struct client_token *token,
                        struct err *err);

/* For a part of an address, percent-encoded. */
void config_append_encoded(struct buf *out, struct str text);

/* Reads token and password where they are not given otherwise. */
int config_read_secrets(struct config *config, const struct config_inputs *inputs,
                        struct err *err);

#endif
