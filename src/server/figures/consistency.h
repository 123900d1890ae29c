/* Checks of the store on a timer, for the metrics (consistency.c). Loop thread. */
#ifndef SERVER_FIGURES_CONSISTENCY_H
#define SERVER_FIGURES_CONSISTENCY_H

#include "server/server_int.h"

struct consistency_figures {
    int64_t found;    /* by the last run of each check */
    int64_t done;     /* checks since the start, */
    int64_t given_up; /* and those that took too long or failed */
};

struct consistency *consistency_open(struct server *server, struct err *err);
void consistency_free(struct consistency *consistency);
const struct consistency_figures *consistency_figures(const struct consistency *consistency);

#endif
