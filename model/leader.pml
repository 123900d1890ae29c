/* Leadership: one row with an epoch (pg_keeper.c), and what the leader writes under it (lead_guard:
 * sweep, due tasks, retention, fires). Checked: what a leader that was replaced writes never takes
 * effect, an instant is fired once, two nodes never believe at once that they lead.
 *
 * Time has no end: the row and each belief are ticks that are left. Epochs have no end either: they
 * only grow, so one that a node remembers is the row's, or passed for ever. Between any two steps
 * of a node any time may pass: that is what a stall is. All clocks run at one rate.
 *
 * Left out on purpose, one at a time, to see the model find it:
 *   NO_EPOCH            the guard asks whether any node leads, not whether this one still does
 *   NO_HOLD             the guard looks at the row, but does not hold it until the commit
 *   BELIEF_FROM_ANSWER  a belief ends a lease after the answer came, not after the question went
 *   NO_TAKEOVER         (with LIVE) a lease that is over is not taken over
 * LIVE bounds the bad luck, for the question whether a node leads again (ltl vacancy). */
#ifndef NODES
#define NODES 2
#endif
#ifndef LEASE
#define LEASE 2
#endif
#define NOBODY NODES

#ifdef NO_TAKEOVER
#define TAKES_OVER (holder == NOBODY)
#else
#define TAKES_OVER (left == 0)
#endif

#define NONE 0
#define PASSED 1 /* an epoch: another node took over since */
#define PRESENT 2 /* the epoch of the row */

/* The row of the database: who, for how many ticks, how many transactions hold it FOR SHARE; and
 * what is to be fired next. */
byte holder = NOBODY, left, shares;
bit due;
/* Each node: its epoch and how long it believes in it; how long the question that is under way
 * would be good for, and the epoch in its answer; the epoch its transaction was begun with. */
byte known[NODES], belief[NODES], asked[NODES], granted[NODES], guard[NODES];
bool dead[NODES], late[NODES]; /* late: a question of a broken connection is not executed yet */

inline pass(e)
{
    e = (e == PRESENT -> PASSED : e)
}

inline new_epoch()
{
    byte each = 0;

    do
    :: each < NODES -> pass(known[each]); pass(granted[each]); pass(guard[each]); each++
    :: else -> break
    od;
    each = 0
}

/* INSERT ... ON CONFLICT DO UPDATE; who calls it waits while a transaction holds the row. */
inline renew(i, answer)
{
    if
    :: holder == i -> left = LEASE; answer = PRESENT; printf("row: node %d leads on\n", i)
    :: holder != i && TAKES_OVER -> new_epoch(); holder = i; left = LEASE; answer = PRESENT;
        printf("row: node %d takes over, a new epoch\n", i)
    :: else -> answer = NONE
    fi
}

inline at_most_one_believes()
{
    byte one = 0;
    byte count = 0;

    do
    :: one < NODES -> count = count + (belief[one] > 0); one++
    :: else -> break
    od;
    assert(count <= 1); /* two nodes believe that they lead */
    one = 0;
    count = 0
}

inline believe(i)
{
#ifdef BELIEF_FROM_ANSWER
    belief[i] = (granted[i] != NONE -> LEASE : 0);
#else
    belief[i] = (granted[i] != NONE -> asked[i] : 0);
#endif
    known[i] = (belief[i] > 0 -> granted[i] : NONE);
    printf("node %d has its answer: believes that it leads for %d ticks\n", i, belief[i]);
    at_most_one_believes()
}

inline lose_faith(i)
{
    belief[i] = 0;
    known[i] = NONE
}

inline forget_question(i)
{
    asked[i] = 0;
    granted[i] = NONE
}

/* The node's second connection. It crashes or stops at any time, and comes back under a new id, so the holder of the row no longer exists. */
proctype Keeper(byte i)
{
end:
    do
#ifdef LIVE /* the first may die; the answers to the other one come in time */
    :: d_step { !dead[i] && shares == 0 ->
            asked[i] = LEASE; renew(i, granted[i]); believe(i); forget_question(i) }
    :: d_step { i == 0 && !dead[i] -> dead[i] = true; lose_faith(i);
            printf("node %d crashes\n", i) }
#else
    :: d_step { !dead[i] -> asked[i] = LEASE; printf("node %d asks to lead\n", i) };
        if
        :: d_step { shares == 0 -> renew(i, granted[i]) };
            if
            :: d_step { believe(i); forget_question(i) }
            :: d_step { forget_question(i); printf("the answer to node %d is lost\n", i) }
            fi
        :: d_step { !late[i] -> late[i] = true; forget_question(i);
                printf("the connection of node %d breaks, the question is under way\n", i) }
        fi
    :: d_step { !dead[i] -> dead[i] = true; lose_faith(i); printf("node %d crashes\n", i) }
    :: d_step { !dead[i] -> lose_faith(i) }; /* a clean stop: hands over at once */
        d_step { shares == 0 -> left = (holder == i -> 0 : left); dead[i] = true;
            printf("node %d stops and hands over\n", i) }
    :: d_step { dead[i] && guard[i] == NONE && !late[i] -> /* a new start */
            dead[i] = false; holder = (holder == i -> NOBODY : holder);
            printf("node %d starts, with another id\n", i) }
#endif
    od
}

inline end_transaction(i)
{
    shares = (holds -> shares - 1 : shares);
    holds = false;
    guard[i] = NONE;
    seen = 0
}

/* The queue's thread, when it believes that it leads. The database finishes what was sent even when the node is gone. */
proctype Writer(byte i)
{
    bit seen;
    bool holds;

end:
    do
    :: d_step { belief[i] > 0 -> guard[i] = known[i];
            printf("node %d begins to fire: it believes that it leads\n", i) };
        if
#ifdef NO_EPOCH
        :: d_step { left > 0 ->
#else
        :: d_step { left > 0 && guard[i] == PRESENT ->
#endif
#ifndef NO_HOLD
                shares++;
                holds = true;
#endif
                seen = due;
                printf("node %d has passed the guard\n", i)
            };
            if
            :: d_step {
                    printf("node %d commits what it fired\n", i);
                    assert(guard[i] == PRESENT); /* a replaced leader's write took effect */
                    assert(seen == due);         /* an instant was fired twice */
                    due = !due;
                    end_transaction(i)
                }
            :: d_step { end_transaction(i) } /* rolled back */
            fi
        :: d_step { end_transaction(i) } /* refused, or it never got there */
        fi
    od
}

/* A question of a broken connection is executed late, or never. */
proctype Network(byte i)
{
    byte unread;

end:
    do
    :: d_step { late[i] && shares == 0 -> late[i] = false;
            printf("a late question of node %d is executed\n", i);
            renew(i, unread); unread = NONE }
    :: late[i] -> late[i] = false
    od
}

proctype Clock()
{
    byte i;

end:
    do
    :: d_step {
            left = (left > 0 -> left - 1 : 0);
            do
            :: i < NODES ->
                belief[i] = (belief[i] > 0 -> belief[i] - 1 : 0);
                known[i] = (belief[i] > 0 -> known[i] : NONE);
                asked[i] = (asked[i] > 0 -> asked[i] - 1 : 0);
                i++
            :: else -> break
            od;
            i = 0;
            printf("a tick: the row is good for %d more\n", left)
        }
    od
}

init {
    byte i;

    atomic {
        do
        :: i < NODES -> run Keeper(i); run Writer(i); run Network(i); i++
        :: else -> break
        od;
        i = 0;
        run Clock()
    }
}

#ifdef LIVE
/* With fair turns: when the first node is dead, the other leads some time. */
ltl vacancy { [] (dead[0] -> <> (belief[1] > 0)) }
#endif
