/* Structs whose first member is their size, as the program knows it (lib_sizes.c). */
#ifndef LIB_LIB_SIZES_H
#define LIB_LIB_SIZES_H

#include "lib/lib_int.h"

struct lib_sized {
    const char *name;
    const char *init; /* the macro it begins with */
    size_t bytes;     /* as it is here */
    size_t min;       /* up to the last required member */
};

extern const struct lib_sized lib_sized_options;
extern const struct lib_sized lib_sized_spec;
extern const struct lib_sized lib_sized_worker_options;
extern const struct lib_sized lib_sized_update;
extern const struct lib_sized lib_sized_result;
extern const struct lib_sized lib_sized_report;

/* ERR_INVALID when the size cannot be one. */
int lib_check_size(const struct lib_sized *kind, size_t size, struct err *err);
/* `given` as it is here, into *to. */
int lib_take_struct(const struct lib_sized *kind, const void *given, void *to, struct err *err);
/* The same for an array, of which there is at least one: *taken is it or a copy in arena. */
int lib_take_array(const struct lib_sized *kind, const void *given, size_t count,
                   struct arena *arena, const void **taken, struct err *err);
/* Back to the program: what it knows of it. */
void lib_give_struct(const struct lib_sized *kind, const void *from, void *given);

#endif
