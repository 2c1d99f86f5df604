/*
 * The recall race: what an owner gives back crosses what the leader grants.
 *
 * One leader, in one term, and one range. Owner A is modelled whole: what it says and
 * hears, and the filter that both sides apply. Of owner B only matters that it has the
 * range from the moment in which it is granted to it. Nothing here knows of time: what a
 * lease's end does is that an owner lets go on its own account, which may happen at any
 * moment. Messages get lost, are repeated and overtake each other without limit: one that
 * was sent can be heard again and again until another takes its place.
 *
 * What must never be: A and B have the range at the same time (I1), or A has a generation
 * again that it has let go of (I3).
 *
 *   here                  internal/core/machine/...
 *   ------------------    ------------------------------------------------------------
 *   seq, heard, applied   owner.Machine: seq, heard, applied
 *   held, newest          owner.Machine: held (0 is nothing), newest
 *   A_HEARS               owner/reply.go: relevant, exchange
 *   A_SPEAKS              owner/owner.go: send
 *   A lets go             owner/owner.go: dropAll, after an expiry, a sleep, a slow clock
 *   sent, echo            manager/peer.go: sent, echo
 *   gen, holder           the table: who has the range, under which generation
 *   first, fresh          manager/peer.go: fresh[gen]; first is 0 while no message offered it
 *   planned               manager/plan.go: desired; the range is recalled while it is false
 *   L_HEARS               manager/request.go: accept, hear, settle, then tell
 *   L_SPEAKS              manager/request.go: tell, offersTo
 *
 * Each rule can be taken out. Spin must then find a violation, or else must not, where
 * other rules cover for it: check says which.
 *
 *   -DNO_ECHO        the owner takes a message that crossed its own
 *   -DNO_REORDER     the owner takes a message that is older than one it has heard
 *   -DNO_NEWEST      the owner takes a fresh offer of a generation that is not new
 *   -DNO_FRESH       the owner takes a renewal of what it does not have for a grant
 *   -DNO_HEARD       the leader takes a request that crossed its own message
 *   -DNO_APPLIED     the leader takes a grant that the owner never saw for one given back
 *   -DACK_FIRST      the owner says that it has let go before it has
 *   -DHASTY          the leader takes a range for free as soon as it has recalled it
 */

#ifndef GENS
#define GENS 3 /* grants */
#endif
#ifndef ASKED
#define ASKED 3 /* messages of the owner */
#endif
#ifndef TOLD
#define TOLD 4 /* messages of the leader */
#endif
#define SLOTS 2 /* messages under way, each way */

#define NOBODY 0
#define A 1
#define B 2

typedef Request { byte seq, heard, applied, held }
typedef Reply { byte seq, echo, offer; bool fresh }

Request requests[SLOTS];
Reply replies[SLOTS];

/* Owner A. */
byte seq, heard, applied, held, newest;
/* The leader, and what it knows of A. */
byte sent, echo, gen, holder, first;
bool fresh, planned;
/* Owner B. */
bool b;

#define SAFE assert(!(held != 0 && b)) /* I1 */
#define NEVER_AGAIN assert(r.offer > newest) /* I3: nothing that A has had comes back */

inline A_SPEAKS(has) {
	seq++;
	if
	:: slot = 0
	:: slot = 1
	fi;
	requests[slot].seq = seq;
	requests[slot].heard = heard;
	requests[slot].applied = applied;
	requests[slot].held = has
}

inline A_HEARS() {
	if
#ifdef NO_REORDER
	:: false
#else
	:: r.seq <= heard /* a duplicate, or overtaken */
#endif
	:: else ->
		heard = (r.seq > heard -> r.seq : heard);
		if
#ifndef NO_ECHO
		:: r.echo != seq /* it crossed our own */
#endif
		:: else ->
			applied = r.seq;
			if
			:: r.offer == 0 && held != 0 -> /* a recall */
#ifdef ACK_FIRST
				if
				:: seq < ASKED -> A_SPEAKS(0); owing = true
				:: else -> held = 0
				fi
#else
				held = 0
#endif
			:: r.offer == 0 && held == 0
			:: r.offer != 0 && r.offer == held /* it goes on */
			:: r.offer != 0 && r.offer != held ->
				if
#ifndef NO_FRESH
				:: !r.fresh -> held = 0
#endif
#ifndef NO_NEWEST
				:: r.fresh && r.offer <= newest -> held = 0
#endif
				:: else -> NEVER_AGAIN; held = r.offer; newest = r.offer
				fi
			fi
		fi
	fi
}

proctype Owner() {
	byte slot;
	bool owing;
	Reply r;
end:	do
	:: atomic { owing -> held = 0; owing = false }
	:: atomic { !owing && seq < ASKED -> A_SPEAKS(held) }
	:: atomic { !owing && held != 0 -> held = 0 }
	:: atomic {
		!owing && (replies[0].seq != 0 || replies[1].seq != 0) ->
		if
		:: replies[0].seq != 0 -> r.seq = replies[0].seq; r.echo = replies[0].echo; r.offer = replies[0].offer; r.fresh = replies[0].fresh
		:: replies[1].seq != 0 -> r.seq = replies[1].seq; r.echo = replies[1].echo; r.offer = replies[1].offer; r.fresh = replies[1].fresh
		fi;
		A_HEARS();
		r.seq = 0; r.echo = 0; r.offer = 0; r.fresh = false; slot = 0;
		SAFE
	}
	od
}

inline L_SPEAKS() {
	sent++;
	if
	:: slot = 0
	:: slot = 1
	fi;
	replies[slot].seq = sent;
	replies[slot].echo = echo;
	replies[slot].offer = (holder == A && planned -> gen : 0);
	replies[slot].fresh = (holder == A && planned -> fresh : false);
	if
	:: holder == A && planned && fresh && first == 0 -> first = sent
	:: else
	fi;
#ifdef HASTY
	if
	:: holder == A && !planned -> holder = NOBODY
	:: else
	fi;
#endif
	slot = 0
}

inline SETTLE() {
	if
	:: holder != A
	:: holder == A && q.held == gen -> fresh = false; first = 0
	:: holder == A && q.held != gen ->
		if
#ifndef NO_APPLIED
		:: fresh && (first == 0 || first > q.applied) && planned /* it never had it, and gets it again */
#endif
		:: else -> holder = NOBODY; fresh = false; first = 0
		fi
	fi
}

inline L_HEARS() {
	if
	:: q.seq <= echo /* a duplicate, or overtaken */
#ifndef NO_HEARD
	:: q.seq > echo && sent != 0 && q.heard != sent /* it crossed ours */
#endif
	:: else ->
		echo = q.seq;
		if
		:: sent != 0 -> SETTLE()
		:: else /* it has not heard us yet, and proves nothing */
		fi;
		if
		:: sent < TOLD -> L_SPEAKS()
		:: else
		fi
	fi
}

proctype Leader() {
	byte slot;
	Request q;
end:	do
	/* What is free is granted: committed, and then offered. */
	:: atomic { holder == NOBODY && gen < GENS && sent != 0 -> gen++; holder = A; fresh = true; first = 0; planned = true }
	:: atomic { holder == NOBODY && gen < GENS -> gen++; holder = B; b = true; SAFE }
	:: atomic { holder == B -> holder = NOBODY; b = false }
	/* The plan changes, and back. */
	:: atomic { holder == A -> planned = !planned }
	/* It speaks when it wants: because something has changed, or after a race. */
	:: atomic { echo != 0 && sent < TOLD -> L_SPEAKS() }
	:: atomic {
		requests[0].seq != 0 || requests[1].seq != 0 ->
		if
		:: requests[0].seq != 0 -> q.seq = requests[0].seq; q.heard = requests[0].heard; q.applied = requests[0].applied; q.held = requests[0].held
		:: requests[1].seq != 0 -> q.seq = requests[1].seq; q.heard = requests[1].heard; q.applied = requests[1].applied; q.held = requests[1].held
		fi;
		L_HEARS();
		q.seq = 0; q.heard = 0; q.applied = 0; q.held = 0
	}
	od
}

init { atomic { run Owner(); run Leader() } }
