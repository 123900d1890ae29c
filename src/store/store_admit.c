/* Decides whether the store may be opened for this use, by its own marks and before anything in it
 * is changed. Writer's thread. */
#include "store/store_copy.h"

static int refuse_moved(struct str moved, struct err *err)
{
    const char *space = memchr(moved.data, ' ', moved.len);
    struct str time = str_span(moved.data, space ? (size_t)(space - moved.data) : 0);

    return err_set(err, ERR_CONFLICT, "the store was moved to %s by 'perdura copy' (" STR_FMT
                   "); serve that one. To run all that is in here a second time, start it once "
                   "with 'perdura serve --again'", space ? space + 1 : moved.data, STR_ARG(time));
}

static int decide(struct str copy, struct str moved, const struct store_options *options,
                  struct err *err)
{
    if (options->copies)
        return options->resumes && !copy.data
                   ? err_set(err, ERR_NOT_FOUND, "the store holds no copy to resume") : 0;
    if (copy_is_unfinished(copy)) /* else tasks would run twice: here and at the source */
        return err_set(err, ERR_CONFLICT, "the store holds an unfinished copy; run the same "
                       "'perdura copy' again until it says that both stores are equal");
    return options->serves && !options->again && moved.data ? refuse_moved(moved, err) : 0;
}

int store_admit(struct store *store, bool has_facts, const struct store_options *options,
                struct err *err)
{
    struct arena arena = ARENA_INIT(0);
    struct str copy = STR_NONE, moved = STR_NONE;
    int rc = 0;

    if (has_facts)
        rc = store->verbs->info_get(store, COPY_FACT, &arena, &copy, err);
    if (has_facts && rc == 0)
        rc = store_moved(store, &arena, &moved, err);
    if (rc == 0)
        rc = decide(copy, moved, options, err);
    arena_deinit(&arena);
    return rc;
}
