/* A task in the hands of a function of the program. */
#ifndef LIB_LIB_TASK_H
#define LIB_LIB_TASK_H

#include "perdura.h"

#include "worker/handlers/handler_function.h"

struct task_handler {
    pd_handler *fn;
    void *ctx;
};

/* Calls the handler, a struct task_handler, with the call as a struct pd_task. */
int lib_task_run(struct function_call *call, void *ctx);

#endif
