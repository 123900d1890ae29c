/* The list of validators of an embedded store, and the thread that asks them, which is there from
 * the first one on. Any thread adds; the thread of the validators asks. */
#include "lib/lib_validators.h"

#include "base/thread.h"

void lib_validators_init(struct lib_validators *validators)
{
    pthread_mutex_init(&validators->lock, NULL);
}

/* An exact one before a prefix, a longer prefix before a shorter one. */
static bool find(struct lib_validators *validators, struct str type, struct lib_validator *found)
{
    const struct lib_validator *best = NULL;

    LOCKED(&validators->lock);
    for (uint32_t i = 0; i < validators->count; i++) {
        const struct lib_validator *one = &validators->list[i];

        if (settings_type_matches(one->type, type) && (!best || one->type.len > best->type.len))
            best = one;
    }
    if (best)
        *found = *best;
    return best != NULL;
}

bool lib_validators_know(struct lib_validators *validators, struct str type)
{
    struct lib_validator found;

    if (!type.data)
        return atomic_load(&validators->thread) != NULL;
    return find(validators, type, &found);
}

static bool knows(void *ctx, struct str type)
{
    return lib_validators_know(ctx, type);
}

static void ask(void *ctx, struct str type, const struct uuid *task_id, struct str task,
                struct validator_answer *answer)
{
    struct lib_validator found;
    ARENA_AUTO struct arena arena = ARENA_INIT(0);
    char id[UUID_TEXT_BYTES];
    char *json = arena_cstr(&arena, task);
    int said = PD_ASK_LATER;

    uuid_format(task_id, id);
    if (json && find(ctx, type, &found))
        said = found.validate(id, json, found.ctx, answer->reason, sizeof answer->reason);
    answer->reason[sizeof answer->reason - 1] = '\0';
    answer->answered = said == PD_VALID || said == PD_REFUSED;
    answer->valid = said == PD_VALID;
    if (!answer->valid && (!answer->reason[0] || !str_is_utf8(str_of(answer->reason))))
        snprintf(answer->reason, sizeof answer->reason, "its validator said no more");
}

static int start(struct lib_validators *validators, struct engine *engine,
                 const struct settings *settings, const struct log *log, struct err *err)
{
    struct validators *thread;

    if (atomic_load(&validators->thread))
        return 0;
    validators->functions = (struct validator_functions){knows, ask, validators};
    thread = validators_start(engine, settings, NULL, &validators->functions, log, err);
    if (!thread)
        return -(int)err->code;
    atomic_store(&validators->thread, thread);
    validators_wake(thread);
    return 0;
}

int lib_validators_add(struct lib_validators *validators, struct engine *engine,
                       const struct settings *settings, const struct log *log, const char *type,
                       pd_validate *validate, void *ctx, struct err *err)
{
    struct str pattern;
    int rc = 0;

    if (!type || !*type || strlen(type) > BOUND_NAME_BYTES || !validate)
        return err_set(err, ERR_INVALID, "a validator needs a type and a function");
    pthread_mutex_lock(&validators->lock);
    pattern = arena_str(&validators->arena, str_of(type));
    if (validators->count == LIB_VALIDATORS_MAX)
        rc = err_set(err, ERR_INVALID, "there are at most %d validators", LIB_VALIDATORS_MAX);
    else if (!pattern.data)
        rc = err_no_memory(err);
    else
        validators->list[validators->count++] = (struct lib_validator){pattern, validate, ctx};
    pthread_mutex_unlock(&validators->lock);
    return rc < 0 ? rc : start(validators, engine, settings, log, err);
}

void lib_validators_wake(struct lib_validators *validators)
{
    struct validators *thread = atomic_load(&validators->thread);

    if (thread)
        validators_wake(thread);
}

void lib_validators_halt(struct lib_validators *validators)
{
    struct validators *thread = atomic_load(&validators->thread);

    if (thread)
        validators_halt(thread);
}

void lib_validators_deinit(struct lib_validators *validators)
{
    validators_stop(atomic_load(&validators->thread));
    arena_deinit(&validators->arena);
    pthread_mutex_destroy(&validators->lock);
}
