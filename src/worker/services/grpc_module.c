/* Loads the gRPC module, which lies beside the program or in ../libexec like perdura-spawn. Only
 * where a gRPC service is configured: libprotobuf takes megabytes. Any thread. */
#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/beside.h"
#include "worker/services/grpc_int.h"

#define MODULE_NAME "perdura-grpc.so"

/* By its descriptor: the file that was checked. libprotobuf cannot be unloaded, so it stays. */
static void *load(int fd)
{
    char path[64];

    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
}

int grpc_module_open(struct grpc_module *module, struct err *err)
{
    const struct grpc_codec *(*codec)(void);
    int fd = beside_open(MODULE_NAME, O_RDONLY);

    if (fd < 0)
        return err_set(err, ERR_UNAVAILABLE, "gRPC services need the file %s beside perdura or in "
                       "../libexec, owned by its user or root and not writable by others",
                       MODULE_NAME);
    module->handle = load(fd);
    close(fd);
    if (!module->handle)
        return err_set(err, ERR_UNAVAILABLE, "%s cannot be loaded: %.300s", MODULE_NAME, dlerror());
    codec = (const struct grpc_codec *(*)(void))dlsym(module->handle, GRPC_CODEC_SYMBOL);
    module->codec = codec ? codec() : NULL;
    if (module->codec && module->codec->version == GRPC_CODEC_VERSION)
        return 0;
    return err_set(err, ERR_UNAVAILABLE, "%s is of another version of Perdura; install it again",
                   MODULE_NAME);
}

void grpc_module_close(struct grpc_module *module)
{
    if (module->handle)
        dlclose(module->handle);
    *module = (struct grpc_module){.codec = NULL};
}

static bool put(void *ctx, const char *data, size_t len)
{
    struct buf *out = ctx;

    buf_append(out, data, len);
    return !out->failed;
}

struct grpc_sink grpc_sink_of(struct buf *out)
{
    return (struct grpc_sink){out, put};
}
