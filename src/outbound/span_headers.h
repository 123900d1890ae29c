/* Headers that a receiver of spans wants: from the settings or OpenTelemetry's variable
 * ("name=value,name=value", percent-encoded), and from a file ("name: value" per line), so that a
 * secret need not stand in the configuration. No value is ever part of an error. One thread. */
#ifndef OUTBOUND_SPAN_HEADERS_H
#define OUTBOUND_SPAN_HEADERS_H

#include "base/err.h"
#include "core/settings.h"
#include "net/http_client.h"

#define SPAN_HEADERS_MAX 32
#define SPAN_HEADERS_BYTES_MAX 16384 /* of the file; receivers take 8 KiB in most cases */

/* Gives the client those of tracing.headers and tracing.headers_file. -ERR_INVALID, -ERR_IO. */
int span_headers_add(const struct settings *settings, struct http_client *client, struct err *err);

#endif
