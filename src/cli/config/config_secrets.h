/* Who may have written the configuration, and secrets that files hold (config_secrets.c). */
#ifndef CLI_CONFIG_CONFIG_SECRETS_H
#define CLI_CONFIG_CONFIG_SECRETS_H

#include "cli/config/config.h"

/* Checks the configuration file in the current folder before it is opened. Refuses a file or folder
 * that belongs to neither root nor this user, and a folder in which others may replace the file. */
int config_trust_place(const char *path, struct err *err);

/* Refuses a file that others may write. Unless any_owner, also one that a group of several users
 * may write, or that belongs to neither root nor this user. */
int config_trust_file(int fd, const char *path, bool any_owner, struct err *err);

/* The token of a client, and where it came from. */
struct client_token {
    struct str text;   /* STR_NONE = none */
    struct str from;   /* "PERDURA_TOKEN", a file */
    struct err unread; /* why the configuration in the current folder gave none */
};

/* Takes the first of PERDURA_TOKEN, PERDURA_TOKEN_FILE, token_file of the configuration (file; NULL
 * = the one in the current folder), and the credential perdura.token of systemd. A server looks in
 * the same order. The token lives as long as arena and environment. */
int config_client_token(const char *file, struct arena *arena, struct client_token *token,
                        struct err *err);

/* Appends text, percent-encoded for a part of a URL. */
void config_append_encoded(struct buf *out, struct str text);

/* Reads what the configuration names as a file or variable: headers of services, keys of models,
 * passwords of inboxes, prompts. Reads token and database password if nothing else gives them. */
int config_read_secrets(struct config *config, const struct config_inputs *inputs,
                        struct err *err);

#endif
