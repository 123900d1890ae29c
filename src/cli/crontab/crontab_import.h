/* From the lines of a crontab to jobs with schedules on a server: which jobs they become, which of
 * them exist already, and the requests that make the difference. A second import changes nothing.
 * One thread. */
#ifndef CLI_CRONTAB_CRONTAB_IMPORT_H
#define CLI_CRONTAB_CRONTAB_IMPORT_H

#include "cli/frame/cli_client.h"
#include "core/plan/crontab.h"

#define IMPORT_TASK_TYPE "cron:run" /* what `perdura exec-cron` runs */

enum import_result {
    IMPORT_REFUSED, /* note says why */
    IMPORT_PLANNED, /* not requested yet */
    IMPORT_TAKEN,
    IMPORT_THERE,   /* as it is, from an import before */
    IMPORT_CHANGED, /* was there, and is now as the line says */
    IMPORT_NOTED    /* a variable that means something else here */
};

struct import_line {
    const struct crontab_line *line;
    enum import_result result;
    struct str note;

    struct str name;     /* of the job: crontab:FILE:PROGRAM-HASH */
    struct str payload;  /* of its tasks */
    struct str timezone;
    int64_t jitter_ms;
    struct str job_id;   /* once it is there */
};

/* A job of an import before whose line is not in the file any more. */
struct import_gone {
    struct str name;
    struct str id;
    bool deleted;
};

struct import {
    struct call *call;
    struct str label;    /* which crontab: its path, or whose it is */
    struct str prefix;   /* of the names of its jobs: crontab:LABEL: */
    struct str user;     /* of a user's crontab; absent: the user who runs the worker */
    struct str timezone; /* where the crontab sets none */
    struct import_line *lines;
    uint32_t count;
    struct import_gone *gone;
    uint32_t gone_count;
};

/* Decides what becomes of every line; lines that need no message are left out. */
int import_plan(struct import *import, const struct crontab *crontab);

/* Makes it so on the server. Refusals of single lines are noted in them; prune deletes what is
 * gone. */
int import_apply(struct import *import, struct client *client, bool prune);

#endif
