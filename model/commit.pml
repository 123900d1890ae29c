/* A commit whose answer is lost: pg_commit and settle of pg_open.c, perdura_mark, mark_settle. One
 * enqueue is asked for, at one of two nodes. Checked: the task is stored once at most, however
 * often a node tries again and, with an idempotency key, however often the client asks again;
 * "stored" is true; "not stored" stays true; a writer's mark never stands in its own way; no
 * process waits for ever.
 *
 * What a node sends with its COMMIT goes its own way from there (a session): it is executed now,
 * much later, when the node has long given it up, or never. It ends with perdura_mark, which moves
 * the writer's mark from the number the node said to the next, and holds it until the commit. To
 * settle is to wait for the mark, look at it and move it on, so that what is late fails. It is two
 * messages: a writer that lost the answer to the second left a lock behind, and the next waits for
 * it. So it is with making the mark, on every new connection and to see whether there is space.
 *
 * KEYLESS: no key, and the client asks once. Left out on purpose, one at a time:
 *   BLIND_RETRY        (KEYLESS) the node tries again without a look at the mark
 *   SETTLE_ONLY_READS  (KEYLESS) the mark is looked at, not moved
 *   SETTLE_AT_ONCE     (KEYLESS) one message: it may be executed late, too
 *   MARK_AT_ONCE       (KEYLESS) the same of making the mark (make_mark)
 *   NO_KEY             the client asks again without a key */
#define NODES 2
#define SLOTS 2 /* sessions of a node: the present one, and one that was given up */
#define SESSIONS (NODES * SLOTS)
#ifndef LOSSES
#define LOSSES 3 /* connections that break */
#endif
#ifdef KEYLESS
#define ASKS 1
#endif
#ifndef ASKS
#define ASKS 2 /* how often the client asks */
#endif
#define TRIES 2 /* of one request by its node */
#define IDLE 255

mtype = { TOOK, REFUSED };                  /* of a session */
mtype = { STORED, NOT_STORED, WHO_KNOWS };  /* to the client */

/* The database: marks of the writers and who holds them; tasks of this request; who reserves its
 * key. */
byte mark[NODES], stored, reserved = IDLE;
bool locked[NODES];
/* What is under way: the mark each session was sent with, and how it ended. */
byte sent[SESSIONS] = IDLE;
mtype ended[SESSIONS];
byte left_lock[NODES] = IDLE; /* by a settlement whose answer was lost: the mark it sets, or not */
byte late_mark[NODES] = IDLE; /* sent in one message: it may come late */
/* The nodes: the mark that is expected, the session that is listened to. */
byte expected[NODES], present[NODES] = IDLE;
byte losses;
chan requests[NODES] = [1] of { byte };
bool denied;

#define LOST atomic { losses < LOSSES -> losses++ }

#ifdef BLIND_RETRY
#define BLIND true /* wrong answers come sooner than what is looked for: stored twice */
#define MARK_IS_AS_SENT true
#else
#define BLIND false
#define MARK_IS_AS_SENT (mark[n] == sent[me])
#endif

inline end_session(how)
{
    reserved = (reserved == me -> IDLE : reserved);
    ended[me] = (present[n] == me -> how : 0);
    sent[me] = IDLE
}

proctype Session(byte me, n)
{
    bool duplicate;

end:
    do
    :: sent[me] != IDLE ->
        if
        :: d_step { reserved == IDLE -> reserved = me }; /* waits for who wants the same key */
#if defined(KEYLESS) || defined(NO_KEY)
            d_step { reserved = IDLE; duplicate = false };
#else
            duplicate = (stored > 0);
#endif
            if
            :: d_step { !locked[n] && MARK_IS_AS_SENT -> locked[n] = true };
                if
                :: d_step {
                        stored = stored + !duplicate;
                        printf("session %d commits, mark %d: stored %d\n", me, sent[me], stored);
                        assert(stored <= 1);      /* stored twice */
                        assert(!denied || BLIND); /* said that it is not stored, and now it is */
                        mark[n] = sent[me] + 1;
                        locked[n] = false;
                        end_session(TOOK)
                    }
                :: d_step { locked[n] = false; end_session(REFUSED);
                        printf("session %d is rolled back\n", me) }
                fi
            :: d_step { !locked[n] && !MARK_IS_AS_SENT ->
                    printf("session %d came with mark %d, it is %d\n", me, sent[me], mark[n]);
                    assert(present[n] != me); /* the mark stands in its own writer's way */
                    end_session(REFUSED)
                }
            fi
        :: d_step { end_session(REFUSED) } /* a conflict, or it never got there */
        fi;
        duplicate = false
    od
}

/* took: whether what was sent is stored; known: whether that could be found out. */
inline settle()
{
#ifdef BLIND_RETRY
    d_step { took = false; known = true };
#else
    if
    :: d_step { !locked[n] -> locked[n] = true; took = (mark[n] == expected[n] + 1);
            printf("node %d settles: the mark is %d, it took: %d\n", n, mark[n], took) };
        if
        :: d_step {
#ifdef SETTLE_ONLY_READS
                expected[n] = mark[n];
#else
                expected[n] = expected[n] + 2;
                mark[n] = expected[n];
#endif
                locked[n] = false;
                unsettled = false;
                known = true
            }
        :: LOST;
            d_step {
#ifdef SETTLE_AT_ONCE
                locked[n] = false;
                late_mark[n] = expected[n] + 2;
#else
                left_lock[n] = expected[n] + 2;
#endif
                took = false; known = false
            }
        fi
    :: LOST; known = false /* could not connect */
    fi
#endif
}

/* known: whether it could be done. */
inline make_mark()
{
    if
    :: d_step { !locked[n] -> locked[n] = true };
        if
        :: d_step { mark[n] = expected[n]; locked[n] = false; renewed = false }
        :: LOST;
            d_step {
#ifdef MARK_AT_ONCE
                locked[n] = false;
                late_mark[n] = expected[n];
#else
                left_lock[n] = expected[n];
#endif
                renewed = true; known = false;
                printf("node %d makes its mark, %d, and loses its connection\n", n, expected[n])
            }
        fi
    :: LOST; d_step { renewed = true; known = false }
    fi
}

/* One request after the other. */
proctype Node(byte n)
{
    bool renewed, unsettled, took, known; /* renewed: the connection is a new one */
    byte tries, slot;
    mtype reply;

end:
    do
    :: requests[n]?_ ->
        do
        :: known = true;
            if
            :: unsettled -> settle()
            :: else
            fi;
            if
            :: known && renewed -> make_mark()
            :: else
            fi;
            if
            :: !known -> reply = NOT_STORED; break /* it was not even sent */
            :: else
            fi;
            took = false;
            /* Statements, mark and COMMIT, on a connection that is free. */
            if
            :: d_step { sent[n * SLOTS] == IDLE -> slot = n * SLOTS }
            :: d_step { sent[n * SLOTS] != IDLE && sent[n * SLOTS + 1] == IDLE ->
                    slot = n * SLOTS + 1 }
            fi;
            d_step { present[n] = slot; sent[slot] = expected[n];
                printf("node %d sends session %d, mark %d\n", n, slot, expected[n]) };
            if
            :: d_step { ended[slot] == TOOK -> expected[n]++; took = true }
            :: ended[slot] == REFUSED
            :: LOST;
                d_step { present[n] = IDLE; ended[slot] = 0; unsettled = true; renewed = true;
                    printf("node %d loses its connection\n", n) };
                settle()
            fi;
            d_step { present[n] = IDLE; ended[slot] = 0; slot = 0; tries++ };
            if
            :: took && known -> reply = STORED; break
            :: !known -> reply = WHO_KNOWS; break
            :: !took && known && tries < TRIES
            :: !took && known -> reply = NOT_STORED; break
            fi
        od;
        atomic {
            printf("node %d says: %e\n", n, reply);
            assert(reply != STORED || stored == 1); /* said that it is stored, and it is not */
#ifdef KEYLESS
            denied = (reply == NOT_STORED);
            assert(!denied || !stored || BLIND);
#endif
            reply = 0; tries = 0; took = false; known = false
        }
    :: losses < LOSSES && !renewed -> make_mark(); known = false /* idle: is there space? */
    od
}

/* What broken connections left behind ends some time, one way or the other. */
proctype Leftovers(byte n)
{
end:
    do
    :: d_step { left_lock[n] != IDLE ->
            mark[n] = left_lock[n]; left_lock[n] = IDLE; locked[n] = false }
    :: d_step { left_lock[n] != IDLE -> left_lock[n] = IDLE; locked[n] = false }
    :: d_step { late_mark[n] != IDLE && !locked[n] ->
            mark[n] = late_mark[n]; late_mark[n] = IDLE;
            printf("a late mark of node %d is executed: %d\n", n, mark[n]) }
    od
}

/* Asks, and asks again, here or there, whether it was answered or not. */
proctype Client()
{
    byte asked;

    do
    :: asked < ASKS && nfull(requests[0]) -> requests[0]!1; asked++
    :: asked < ASKS && nfull(requests[1]) -> requests[1]!1; asked++
    :: asked == ASKS -> break
    od
}

init {
    atomic {
        run Session(0, 0); run Session(1, 0); run Session(2, 1); run Session(3, 1);
        run Node(0); run Node(1);
        run Leftovers(0); run Leftovers(1);
        run Client()
    }
}
