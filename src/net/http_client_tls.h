/* The files of a client's TLS, and what libcurl's TLS errors mean. Inside of http_client.c. */
#ifndef NET_HTTP_CLIENT_TLS_H
#define NET_HTTP_CLIENT_TLS_H

#include "net/http_client.h"

#include <curl/curl.h>

#define HTTP_CLIENT_FILES 3

struct http_client_files {
    char *ca, *cert, *key; /* NULL = not set */
    int64_t stamps[HTTP_CLIENT_FILES][4];
};

/* Copies the paths and sets the handle's options. */
int http_client_files_init(struct http_client_files *files, const struct http_client_tls *tls,
                           CURL *easy, struct err *err);
void http_client_files_deinit(struct http_client_files *files);
/* Has a file changed since the last call of it? The connection was made with what it said then. */
bool http_client_files_changed(struct http_client_files *files);

/* True when the transfer failed because of TLS: err says what and what to do about it. */
bool http_client_tls_failed(const struct http_client_files *files, CURL *easy, CURLcode result,
                            const char *message, struct str server, struct err *err);

#endif
