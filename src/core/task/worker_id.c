#include "core/task/worker_id.h"

#include "base/hash.h"

#define HOST_BYTES_MAX 64 /* with pid and random part well below BOUND_NAME_BYTES */

struct str worker_id_new(struct str hostname, int64_t pid, struct arena *arena)
{
    uint64_t random;
    int len = hostname.len > HOST_BYTES_MAX ? HOST_BYTES_MAX : (int)hostname.len;

    if (len == 0) {
        hostname = STR("worker");
        len = (int)hostname.len;
    }
    while (hostname.len > HOST_BYTES_MAX && len &&
           ((unsigned char)hostname.data[len] & 0xc0) == 0x80)
        len--; /* between characters: an id is UTF-8 */
    hash_random(&random, sizeof random);
    if (pid <= 0)
        return arena_format(arena, "%.*s-%016llx", len, hostname.data, (unsigned long long)random);
    return arena_format(arena, "%.*s-%lld-%016llx", len, hostname.data, (long long)pid,
                        (unsigned long long)random);
}
