#include "worker/source.h"

#include "base/hash.h"

#include <unistd.h>

#define HOST_BYTES_MAX 64

struct str source_make_id(struct str hostname, struct arena *arena)
{
    uint64_t random;
    int len = hostname.len > HOST_BYTES_MAX ? HOST_BYTES_MAX : (int)hostname.len;

    while (hostname.len > HOST_BYTES_MAX && len &&
           ((unsigned char)hostname.data[len] & 0xc0) == 0x80)
        len--; /* between characters: an id is UTF-8 */
    hash_random(&random, sizeof random);
    return arena_format(arena, "%.*s-%ld-%016llx", len, hostname.data ? hostname.data : "worker",
                        (long)getpid(), (unsigned long long)random);
}
