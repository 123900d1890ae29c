/* Printing a list of the API: one page, or all of them with --all, as a table or as JSON. One
 * thread. */
#ifndef CLI_FRAME_LISTING_H
#define CLI_FRAME_LISTING_H

#include "cli/frame/cli_client.h"
#include "cli/frame/view.h"

/* What a command that lists must have among its flags. */
#define LISTING_FLAGS(things)                                                             \
    {.name = "limit", .type = FLAG_INT, .value = "N", .field = "limit", .min = 1,         \
     .max = BOUND_LIST_LIMIT, .help = things " per page (the server's default is 100)"},  \
    {.name = "cursor", .type = FLAG_TEXT, .value = "CURSOR",                              \
     .help = "continue an earlier list from this place"},                                 \
    {.name = "all", .type = FLAG_BOOL, .help = "every page"}

/* GET path with the command's flags as parameters; path may have some of its own. */
int listing_print(struct call *call, struct str path, const struct view_column *columns,
                  uint32_t columns_count);

/* The same for a command without these flags: every page. */
int listing_print_all(struct call *call, struct str path, const struct view_column *columns,
                      uint32_t columns_count);

/* Adds to what is listed before a table of it is printed: new items in the call's arena. Not asked
 * for JSON. */
typedef int listing_decorate(struct client *client, struct str items, struct str *decorated);
int listing_print_decorated(struct call *call, struct str path, const struct view_column *columns,
                            uint32_t columns_count, listing_decorate *decorate);

#endif
