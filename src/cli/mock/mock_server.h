/* A small chat API on loopback that answers as a script says, well or badly. A thread per
 * connection: it is for trying out and for tests. */
#ifndef CLI_MOCK_MOCK_SERVER_H
#define CLI_MOCK_MOCK_SERVER_H

#include <stdio.h>

#include "cli/mock/mock_script.h"

/* Returns only with an error. Writes its address and a line per request to out. */
int mock_server_run(struct mock_script *script, int64_t port, FILE *out, struct err *err);

#endif
