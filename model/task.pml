/* One task: claim, lease, reports and sweep, over several nodes on one database. Checked: it ends
 * once at most and stays ended; no token is given twice; what a worker says under a lease that is
 * over changes nothing; each lease has one outcome at most; an answer tells the truth. With fair
 * turns a task whose holder is gone can be claimed again (ltl orphan).
 *
 * No clocks: a lease may be judged to be over at any time, by a leader or by one that was it long
 * ago. No workers either: the holder of a lease may say anything under it, at any time, to any
 * node, twice or after a year; a worker that stalls or whose words are delayed can do no worse. So
 * nothing here rests on the length of a lease, on clocks, on leadership, on workers being good.
 *
 * A node decides by what it read and commits only if the row is as it was (its `rev`); between the
 * two any time may pass. A transaction that fails, a node that crashes before the commit and a
 * commit that did not take are one and the same; a node that crashes behind it and an answer that
 * is lost, too. What a node knows of a commit without an answer is in commit.pml.
 *
 * Left out on purpose, one at a time, to see the model find it:
 *   NO_TOKEN   a report counts when the task is held, under whatever lease
 *   NO_REV     a row is written whatever happened to it since it was read
 *   NO_REPEAT  an outcome that is sent again is not recognised
 *   NO_SWEEP   (with LIVE) no node looks for leases that are over */
#ifndef NODES
#define NODES 2
#endif
#ifndef SWEEPS
#define SWEEPS 2 /* the leader, and one that was it */
#endif
#ifndef CLAIMS
#define CLAIMS 3 /* then there are no more */
#endif
#define USER (NODES + SWEEPS)
#define READERS (USER + 1) /* those that read the row and write it later */

mtype = { PENDING, HELD, COMPLETED, CANCELLED };
mtype = { CLAIM, PROGRESS, COMPLETE, FAIL }; /* PROGRESS: also start, checkpoint, log, spawn */
mtype = { DONE, STALE, CONFLICT };

/* The row; outcome_*: the last outcome, of which lease and what (outcome_token, outcome_hash). */
mtype status = PENDING, outcome;
byte token, outcome_token;
bool changed[READERS]; /* since that one read it: its rev is another now */

/* What really is: this lease had its outcome; its holder lives and has heard of its claim. */
bool counted, known;

#ifdef NO_REV
#define SAME(reader) true
#else
#define SAME(reader) (!changed[reader])
#endif
#ifdef NO_TOKEN
#define UNDER_LEASE (status == HELD)
#else
#define UNDER_LEASE (status == HELD && token == t)
#endif
#ifdef NO_REPEAT
#define REPEATED false
#else
#define REPEATED (what != PROGRESS && outcome_token == t)
#endif
#ifdef LIVE
#define MAY_SPEAK (t != token || known) /* the dead do not talk for ever */
#else
#define MAY_SPEAK true
#endif

inline write_row()
{
    byte each = 0;

    assert(status != COMPLETED && status != CANCELLED); /* an ended task changed */
    do
    :: each < READERS -> changed[each] = true; each++
    :: else -> break
    od;
    each = 0
}

/* Under the token that comes after the one that was read. */
inline claim()
{
    write_row();
    printf("node %d commits: claimed under token %d\n", me, t);
    assert(t == token + 1); /* a token is given twice */
    token = t;
    status = HELD;
    counted = false;
    known = false
}

/* A report under its lease, as it was when the row was read. */
inline apply()
{
    printf("node %d commits: %e under token %d; the task is %e under %d\n", me, what, t, status,
        token);
    assert(status == HELD && token == t); /* a stale report took effect */
    write_row();
    if
    :: what == PROGRESS
    :: else ->
        assert(!counted); /* a lease had two outcomes */
        counted = true;
        known = false;
        outcome_token = t;
        outcome = what;
        status = (what == COMPLETE -> COMPLETED : PENDING)
    fi
}

/* A report whose lease is over, or which was heard before: answered, and nothing is written. */
inline answer()
{
    reply = (REPEATED -> (outcome == what -> DONE : CONFLICT) : STALE);
    printf("node %d answers %e to %e under token %d\n", me, reply, what, t);
    assert(reply != STALE || what == PROGRESS || outcome_token != t); /* told to stop: it counted */
    reply = 0
}

/* Any words under any lease that was ever given. */
inline hear()
{
    t = 1;
    do
    :: t < token -> t++
    :: MAY_SPEAK -> break
    od;
    if
    :: what = PROGRESS
    :: what = COMPLETE
    :: what = FAIL
    fi;
    printf("node %d hears %e under token %d, and reads the task\n", me, what, t)
}

/* One transaction after the other: reads and decides; any time passes; commits or not. */
proctype Node(byte me)
{
    mtype what, reply;
    byte t;

end:
    do
    :: d_step { status == PENDING && token < CLAIMS -> t = token + 1; changed[me] = false;
            printf("node %d begins to claim\n", me) };
        if
        :: d_step { SAME(me) -> claim(); t = 0 };
            if
            :: known = true
            :: skip /* its worker is gone, or the answer */
            fi
        :: d_step { t = 0; changed[me] = true }
        fi
    :: atomic { token > 0 -> hear();
            if
            :: UNDER_LEASE -> changed[me] = false
            :: else -> answer(); what = 0; t = 0; goto end
            fi
        };
        if
        :: d_step { SAME(me) -> apply(); what = 0; t = 0 }
        :: d_step { what = 0; t = 0; changed[me] = true }
        fi
    od
}

/* A lease is over when its holder is gone or never heard of it; also when it sleeps, perhaps. */
proctype Sweep(byte me)
{
end:
    do
    :: d_step { status == HELD -> changed[me] = false;
            printf("sweep %d looks at the lease\n", me) };
        if
        :: d_step { SAME(me) ->
                printf("sweep %d commits: the lease is over\n", me);
                write_row();
                status = PENDING;
                outcome_token = 0;
                outcome = 0;
                known = false
            }
        :: d_step { known || !SAME(me) -> changed[me] = true }
        fi
    od
}

/* Its holder dies. */
proctype Death()
{
end:
    do
    :: d_step { known -> known = false; printf("the holder dies\n") }
    od
}

/* Cancels it, perhaps. */
proctype User(byte me)
{
    if
    :: d_step { status != COMPLETED -> changed[me] = false;
            printf("a user begins to cancel a task %e\n", status) };
        if
        :: d_step { SAME(me) -> printf("the user's cancel commits on a task %e\n", status);
                write_row(); status = CANCELLED }
        :: skip
        fi
    :: skip
    fi;
    changed[me] = true
}

init {
    byte i;

    atomic {
        do
        :: i < READERS ->
            changed[i] = true;
            if
            :: i < NODES -> run Node(i)
            :: i >= NODES && i < USER ->
#ifndef NO_SWEEP
                run Sweep(i)
#else
                skip
#endif
            :: i == USER -> run User(i)
            fi;
            i++
        :: else -> break
        od;
        i = 0;
        run Death()
    }
}

#ifdef LIVE
#define ORPHAN (status == HELD && !known)
ltl orphan { [] (ORPHAN -> <> !ORPHAN) }
#endif
