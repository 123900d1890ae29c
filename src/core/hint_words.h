/* What nodes of a database tell each other beside names of queues: one byte each, which no name
 * of a queue has. A byte means one thing, in the engine and in the store (hint_words_test). */
#ifndef CORE_HINT_WORDS_H
#define CORE_HINT_WORDS_H

#include "base/str.h"

/* 0x05 is ALIVE of engine/nodes.c, 0x1f separates words. SQL functions say 0x0e, too. */
#define HINT_WORDS(X)                                                                              \
    X(ended, "\x01")    /* tasks ended: a client may wait for them */                              \
    X(lanes, "\x02")    /* lanes were made: read them again */                                     \
    X(vacant, "\x03")   /* the leader leaves: the first to ask leads */                            \
    X(rules, "\x04")    /* a queue has new rules */                                                \
    X(catalog, "\x06")  /* what people plan with has changed */                                    \
    X(recovery, "\x07") /* a recovery was asked for */                                             \
    X(access, "\x08")   /* an API token was made or changed */                                     \
    X(intake, "\x0e")   /* a program enqueued or reported with SQL */                              \
    X(here, "\x10")     /* a node listens: send it hints */

#define HINT_WORD(name, byte) static const struct str name##_word = {byte, 1};
HINT_WORDS(HINT_WORD)
#undef HINT_WORD

#endif
