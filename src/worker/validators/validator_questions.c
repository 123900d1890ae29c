#include "worker/validators/validator_questions.h"

#include "base/clock.h"
#include "base/thread.h"
#include "worker/validators/validators.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define WAITING_MAX 32
#define WAIT_US (10 * CLOCK_SECOND_US) /* behind others; who asks has no patience for more */

struct validator_questions {
    _Atomic(const struct settings *) settings;
    struct spawner *spawner;
    pthread_t thread;
    bool runs;
    pthread_mutex_t mutex; /* of what follows */
    pthread_cond_t come;
    struct recovery_question *first, *last;
    uint32_t count;
    bool stopping;
    atomic_int stop; /* the same, for a command under way */
    int wake_fd;
};

static struct recovery_question *take(struct validator_questions *questions)
{
    struct recovery_question *question;

    LOCKED(&questions->mutex);
    while (!questions->first && !questions->stopping)
        pthread_cond_wait(&questions->come, &questions->mutex);
    question = questions->first;
    if (question) {
        questions->first = question->next;
        questions->count--;
    }
    if (!questions->first)
        questions->last = NULL;
    return question;
}

static void answer(struct validator_questions *questions, struct recovery_question *question)
{
    const struct settings *settings = atomic_load(&questions->settings);
    struct validator_answer said;

    if (!validators_configured(settings, question->type))
        return;
    validator_ask(settings_handler(settings, question->type), questions->spawner,
                  &question->task_id, question->type, question->task, &questions->stop,
                  questions->wake_fd, &said);
    question->asked = !atomic_load(&questions->stop);
    question->valid = said.answered && said.valid;
    snprintf(question->reason, sizeof question->reason, "%s", said.reason);
}

static void *run(void *ctx)
{
    struct validator_questions *questions = ctx;
    struct recovery_question *question;

    while ((question = take(questions))) {
        if (!atomic_load(&questions->stop) && clock_boot_us() - question->came_us < WAIT_US)
            answer(questions, question);
        question->done(question);
    }
    return NULL;
}

static int start_thread(struct validator_questions *questions, struct err *err)
{
    questions->runs = thread_start(&questions->thread, 0, run, questions) == 0;
    return questions->runs ? 0
                           : err_set(err, ERR_MEMORY, "cannot start the thread for questions to "
                                     "validators");
}

struct validator_questions *validator_questions_start(const struct settings *settings,
                                                      struct spawner *spawner, struct err *err)
{
    struct validator_questions *questions = err_calloc(sizeof *questions, err);

    if (!questions)
        return NULL;
    questions->settings = settings;
    questions->spawner = spawner;
    pthread_mutex_init(&questions->mutex, NULL);
    pthread_cond_init(&questions->come, NULL);
    questions->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (questions->wake_fd < 0)
        err_set(err, ERR_IO, "cannot make a descriptor for questions to validators");
    if (questions->wake_fd < 0 || start_thread(questions, err) < 0) {
        validator_questions_free(questions);
        return NULL;
    }
    return questions;
}

void validator_questions_configure(struct validator_questions *questions,
                                   const struct settings *settings)
{
    atomic_store(&questions->settings, settings);
}

bool validator_questions_ask(void *ctx, struct recovery_question *question)
{
    struct validator_questions *questions = ctx;
    bool taken;

    question->next = NULL;
    question->asked = question->valid = false;
    question->came_us = clock_boot_us();
    LOCKED(&questions->mutex);
    taken = !questions->stopping && questions->count < WAITING_MAX;
    if (taken) {
        if (questions->last)
            questions->last->next = question;
        else
            questions->first = question;
        questions->last = question;
        questions->count++;
        pthread_cond_signal(&questions->come);
    }
    return taken;
}

void validator_questions_halt(struct validator_questions *questions)
{
    const uint64_t one = 1;
    ssize_t wrote;

    if (!questions || !questions->runs)
        return;
    atomic_store(&questions->stop, 1);
    wrote = write(questions->wake_fd, &one, sizeof one);
    (void)wrote; /* a full counter has woken it already */
    pthread_mutex_lock(&questions->mutex);
    questions->stopping = true;
    pthread_cond_signal(&questions->come);
    pthread_mutex_unlock(&questions->mutex);
    pthread_join(questions->thread, NULL);
    questions->runs = false;
}

void validator_questions_free(struct validator_questions *questions)
{
    if (!questions)
        return;
    validator_questions_halt(questions);
    if (questions->wake_fd >= 0)
        close(questions->wake_fd);
    pthread_cond_destroy(&questions->come);
    pthread_mutex_destroy(&questions->mutex);
    free(questions);
}
