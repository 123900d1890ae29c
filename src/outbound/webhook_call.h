/* One signed HTTP call to a receiver: how a message becomes a request, and what its end means. The
 * receiver is a stranger: no redirects, no proxy of the environment, limits on time and bytes, and
 * nothing it answers but the status is ever looked at. The transfer itself is driven by webhook.c,
 * on whose thread all of this runs. */
#ifndef OUTBOUND_WEBHOOK_CALL_H
#define OUTBOUND_WEBHOOK_CALL_H

#include "base/buf.h"
#include "base/err.h"
#include "core/bounds.h"
#include "store/store.h"

#include <curl/curl.h>

#define WEBHOOK_REASON_BYTES 256 /* a sentence of ours, never the receiver's words */

struct webhook_call {
    CURL *easy; /* kept for the next call */
    struct curl_slist *headers;
    struct outbox_message message; /* texts are gone, but for target and body; else as taken */
    struct str origin;             /* front of url */
    char url[BOUND_URL_BYTES + 1];
    struct buf signed_text;        /* "t.body": what is signed; the body is sent from here */
    size_t response_bytes;         /* head and body, all of them dropped */
    bool busy;
};

/* ca: a file with CAs besides the system's; absent = none. */
int webhook_call_init(struct webhook_call *call, struct str ca, struct err *err);
void webhook_call_deinit(struct webhook_call *call);

/* Everything up to the transfer; message->target was allowed. -ERR_MEMORY. */
int webhook_call_prepare(struct webhook_call *call, const struct outbox_message *message,
                         struct str secret, int64_t wall_us, int64_t timeout_ms, struct err *err);

/* After the transfer: true when the receiver took the message (2xx), else the reason. */
bool webhook_call_delivered(const struct webhook_call *call, CURLcode result, char *reason);

/* Ready for the next message. */
void webhook_call_finish(struct webhook_call *call);

#endif
