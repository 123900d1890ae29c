/* What the gRPC module does for the program: from JSON to messages and back, by descriptors that
 * come from a file or from the service. The module (grpc_codec.cc) is a shared object of its own
 * with libprotobuf in it, loaded only where a gRPC service is configured. C and C++ read this
 * header. Everything the service sends is checked; nothing is thrown across. Any thread, but one at
 * a time for a schema. */
#ifndef WORKER_SERVICES_GRPC_CODEC_H
#define WORKER_SERVICES_GRPC_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GRPC_CODEC_VERSION 1
#define GRPC_CODEC_SYMBOL "perdura_grpc_codec"
#define GRPC_FILES_MAX 1000 /* of a schema */

struct grpc_schema;

struct grpc_bytes {
    const char *data;
    size_t len;
};

/* Where results go; put gives false when it takes no more. */
struct grpc_sink {
    void *ctx;
    bool (*put)(void *ctx, const char *data, size_t len);
};

enum grpc_coded {
    GRPC_CODED,
    GRPC_NO_METHOD,  /* the schema has no such method, or not one that can be called */
    GRPC_NOT_FIT,    /* these values do not fit the message: why names the field */
    GRPC_INVALID,    /* bytes of the service that are no such message */
    GRPC_TOO_LARGE,  /* the sink takes no more */
    GRPC_MORE,       /* a further file is needed: its name is in the sink */
    GRPC_NO_MEMORY
};

struct grpc_codec {
    uint32_t version;
    struct grpc_schema *(*schema_new)(void); /* NULL without memory */
    void (*schema_free)(struct grpc_schema *schema); /* NULL is fine */
    /* A FileDescriptorSet. */
    enum grpc_coded (*add_set)(struct grpc_schema *schema, struct grpc_bytes set,
                               const struct grpc_sink *why);
    /* The question to a reflection service: which file has this symbol, or this name? */
    enum grpc_coded (*ask)(struct grpc_bytes symbol, struct grpc_bytes file,
                           const struct grpc_sink *out);
    /* Its answer; GRPC_MORE names a file that is to be asked for as well. */
    enum grpc_coded (*add_answer)(struct grpc_schema *schema, struct grpc_bytes answer,
                                  const struct grpc_sink *more, const struct grpc_sink *why);
    /* method: "package.Service/Method". */
    enum grpc_coded (*to_message)(struct grpc_schema *schema, struct grpc_bytes method,
                                  struct grpc_bytes json, bool ignore_unknown,
                                  const struct grpc_sink *out, const struct grpc_sink *why);
    enum grpc_coded (*to_json)(struct grpc_schema *schema, struct grpc_bytes method,
                               struct grpc_bytes message, const struct grpc_sink *out,
                               const struct grpc_sink *why);
    /* Of a google.rpc.Status: what its RetryInfo says; -1 = nothing. */
    int64_t (*retry_ms)(struct grpc_bytes status);
    /* Of a grpc.health.v1.HealthCheckResponse: 1 = it serves; -1 = it is none. */
    int (*health)(struct grpc_bytes answer);
};

#endif
