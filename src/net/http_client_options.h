/* What every request by libcurl has in common: only HTTP, no redirect is followed, no proxy and no
 * password of the environment is used. Any thread. */
#ifndef NET_HTTP_CLIENT_OPTIONS_H
#define NET_HTTP_CLIENT_OPTIONS_H

#include <curl/curl.h>

void http_client_options(CURL *easy);

#endif
