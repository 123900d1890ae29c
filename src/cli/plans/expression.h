/* Expressions typed on a command line: checked before they are sent, and shown with a caret below
 * the error. One thread. */
#ifndef CLI_PLANS_EXPRESSION_H
#define CLI_PLANS_EXPRESSION_H

#include "calendar/cron.h"
#include "cli/frame/command.h"

/* ERR_INVALID with the message in call->err; prints the expression and a caret on stderr first. */
int expression_check_cron(struct call *call, struct str text, struct cron *cron);

/* Prints the line of text that contains `fault`, and a caret below it; nothing for STR_NONE. */
void expression_print_fault(struct call *call, struct str text, struct str fault);

#endif
