/* Keys that only one task may have, on rows (rows_uniques.c). */
#ifndef STORE_ROWS_ROWS_UNIQUES_H
#define STORE_ROWS_ROWS_UNIQUES_H

#include "store/rows/rows.h"

const char *unique_kind_word(int kind); /* enum unique_kind, as it is stored */
int rows_uniques_look(struct store *, struct unique *, struct err *);
int rows_uniques_drop(struct store *, const struct task *, bool, struct err *);

#endif
