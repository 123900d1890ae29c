/* API tokens on rows. */
#ifndef STORE_ROWS_ROWS_TOKENS_H
#define STORE_ROWS_ROWS_TOKENS_H

#include "store/rows/rows.h"
#include "store/token_store.h"

extern const struct token_verbs rows_token_verbs;

#endif
