/* A command's connection to the server: paths, errors turned into sentences that say what to do
 * next, replies checked before a command reads them. One thread. */
#ifndef CLI_FRAME_CLI_CLIENT_H
#define CLI_FRAME_CLI_CLIENT_H

#include "cli/frame/command.h"
#include "cli/config/config_secrets.h"

#define CLIENT_REPLY_BYTES_MAX (64 * 1024 * 1024) /* a page of 1,000 tasks with large payloads */
#define CLIENT_TIMEOUT_MS 30000

struct client {
    struct call *call;
    struct http_client *http;
    struct str server;
    struct client_token token;
};

/* The token of a command: config_client_token with its --config, where it has that flag. */
int client_find_token(struct call *call, struct client_token *token);
/* The error of a server that wants another token than this one, or any. why: its own words, or
 * absent. */
int client_refused_token(struct call *call, const struct client_token *token, struct str why);

/* --namespace, --ca, --cert and --cert-key of a command that makes its client itself. */
int client_set_up(struct call *call, struct http_client *http);

/* The command must have the client flags. */
int client_open(struct client *client, struct call *call);
void client_close(struct client *client);
#define CLIENT_AUTO __attribute__((cleanup(client_close))) /* closed when its block ends */

/* One request. 2xx: 0, *reply is the checked JSON (STR_NONE when there is no body), in the call's
 * arena. Anything else: negative with call->err filled. body STR_NONE = none. */
int client_call(struct client *client, const char *method, struct str path, struct str body,
                int64_t timeout_ms, struct str *reply);
/* The same for reading; the reply is an object, or that is the error. */
int client_get(struct client *client, struct str path, struct str *reply);
int client_check_object(struct client *client, struct str reply);

/* before + percent-encoded name + after, in the call's arena. */
struct str client_path(struct call *call, const char *before, struct str name, const char *after);

/* An id that cannot be one is not found, without asking. */
int client_check_task_id(struct call *call, struct str id);

#endif
