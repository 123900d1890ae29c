/* The keys of an encrypted store, as the options of an embedded one give them (lib_keys.c). */
#ifndef LIB_LIB_KEYS_H
#define LIB_LIB_KEYS_H

#include "lib/lib_int.h"
#include "store/sealed/keyring.h"

/* *keyring NULL: there are none. */
int lib_keys_open(const struct pd_options *options, struct keyring **keyring, struct err *err);

#endif
