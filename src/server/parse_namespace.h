/* Namespaces from JSON (parse_namespace.c). Pure, any thread. */
#ifndef SERVER_PARSE_NAMESPACE_H
#define SERVER_PARSE_NAMESPACE_H

#include "engine/engine.h"

/* {"name","description","limits":{…},"retention":{…}} into row and set. `named`: the body gives the
 * name, which is otherwise part of the path. */
int parse_namespace(struct str object, bool named, struct arena *arena,
                    struct namespace_request *request, struct err *err);

#endif
