/* Structs of programs that were built for another version of the library: their first member says
 * how large they are. Shorter ones get zeros for what they do not know; longer ones are taken where
 * the rest is zero, as the program then asks for nothing that is not known here.
 * Pure, any thread. */
#include "lib/lib_sizes.h"

#define TAIL_BYTES_MAX 4096 /* a larger size is none: the struct was not initialised */

#define END(type, member) (offsetof(struct type, member) + sizeof(((struct type *)NULL)->member))
#define SIZED(type, init, needed) {#type, init, sizeof(struct type), END(type, needed)}

const struct lib_sized lib_sized_options = SIZED(pd_options, "PD_OPTIONS_INIT", size);
const struct lib_sized lib_sized_spec = SIZED(pd_task_spec, "PD_TASK_SPEC_INIT", type);
const struct lib_sized lib_sized_worker_options =
    SIZED(pd_worker_options, "PD_WORKER_OPTIONS_INIT", size);
const struct lib_sized lib_sized_update = SIZED(pd_update, "PD_UPDATE_INIT", size);
const struct lib_sized lib_sized_result = SIZED(pd_result, "PD_RESULT_INIT", memory);
const struct lib_sized lib_sized_report = SIZED(pd_report, "PD_REPORT_INIT", stop);

int lib_check_size(const struct lib_sized *kind, size_t size, struct err *err)
{
    if (size < kind->min || size > kind->bytes + TAIL_BYTES_MAX)
        return err_set(err, ERR_INVALID, "the size in struct %s is not one; begin it with %s",
                       kind->name, kind->init);
    return 0;
}

static bool is_zero(const char *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (bytes[i])
            return false;
    return true;
}

static int take(const struct lib_sized *kind, const char *given, size_t size, void *to,
                struct err *err)
{
    size_t known = size < kind->bytes ? size : kind->bytes;

    if (!is_zero(given + known, size - known))
        return err_set(err, ERR_INVALID, "struct %s sets a member that libperdura %s does not "
                       "know; use a later libperdura", kind->name, PERDURA_VERSION);
    memset(to, 0, kind->bytes);
    memcpy(to, given, known);
    return 0;
}

int lib_take_struct(const struct lib_sized *kind, const void *given, void *to, struct err *err)
{
    size_t size = *(const size_t *)given;
    int rc = lib_check_size(kind, size, err);

    return rc < 0 ? rc : take(kind, given, size, to, err);
}

int lib_take_array(const struct lib_sized *kind, const void *given, size_t count,
                   struct arena *arena, const void **taken, struct err *err)
{
    size_t size = *(const size_t *)given;
    char *copies;

    if (size == kind->bytes) {
        *taken = given;
        return 0;
    }
    TRY(lib_check_size(kind, size, err));
    copies = TRY_MEMORY(arena_alloc_array(arena, count, kind->bytes));
    for (size_t i = 0; i < count; i++)
        TRY(take(kind, (const char *)given + i * size, size, copies + i * kind->bytes, err));
    *taken = copies;
    return 0;
}

void lib_give_struct(const struct lib_sized *kind, const void *from, void *given)
{
    size_t size = *(const size_t *)given;

    memset(given, 0, size);
    memcpy(given, from, size < kind->bytes ? size : kind->bytes);
    memcpy(given, &size, sizeof size);
}
