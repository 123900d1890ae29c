#include "engine/access/rights.h"

bool rights_hide(const struct request *request, struct str owner)
{
    return caller_row(request->caller, owner, false) == ROW_HIDDEN;
}

int rights_change(const struct request *request, struct str owner, const char *what,
                  struct err *err)
{
    if (caller_row(request->caller, owner, true) != ROW_READ_ONLY)
        return 0;
    return principal_refuse_ownerless(request->caller->principal, what, err);
}
