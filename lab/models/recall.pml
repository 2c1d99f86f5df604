/*
 * The recall race: a release of an owner crosses a grant of the leader.
 *
 * One leader, in one term, and one range. Owner A is modelled completely: its requests and
 * received replies, and the filter of both sides. Of owner B the model only has whether it
 * holds the range, from the moment of the grant. The model has no time: the expiry of a lease
 * is a release by the owner, which can happen at any moment. Messages are lost, duplicated and
 * reordered without limit: a message that was sent can be received again and again until
 * another one replaces it.
 *
 * Properties: A and B never hold the range at the same time (I1), and A never holds a
 * generation again that it has released (I3).
 *
 *   here                  internal/core/machine/...
 *   ------------------    ------------------------------------------------------------
 *   seq, heard, applied   owner.Machine: leader.received, leader.applied
 *   held, newest          owner.Machine: held (0 is nothing), newest
 *   A_RECEIVES            owner/reply.go: relevant, exchange
 *   A_SENDS               owner/owner.go: send
 *   A releases            owner/owner.go: dropAll, after an expiry, a sleep, a slow clock
 *   sent, echo            manager/acks.go: sent, echo
 *   gen, holder           the table: the holder of the range, and the generation
 *   first, fresh          manager/peer.go: fresh[gen]; first is 0 until a message has offered it
 *   planned               manager/plan.go: desired; the range is recalled while it is false
 *   L_RECEIVES            manager/request.go: accept, reconcile, then sendLeases
 *   L_SENDS               manager/request.go: sendLeases, offersTo
 *
 * Each rule can be removed. Spin must then find a violation, or none if other rules cover for
 * it: see check.
 *
 *   -DNO_ECHO        the owner accepts a message that crossed its own
 *   -DNO_REORDER     the owner accepts a message that is older than one it has received
 *   -DNO_NEWEST      the owner accepts a fresh offer of a generation that is not new
 *   -DNO_FRESH       the owner treats a renewal of a lease that it does not hold as a grant
 *   -DNO_HEARD       the leader accepts a request that crossed its own message
 *   -DNO_APPLIED     the leader treats a grant that the owner has not applied as released
 *   -DACK_FIRST      the owner acknowledges a recall before it has released the lease
 *   -DHASTY          the leader treats a range as free as soon as it has recalled it
 */

#ifndef GENS
#define GENS 3 /* grants */
#endif
#ifndef MAX_REQUESTS
#define MAX_REQUESTS 3 /* messages of the owner */
#endif
#ifndef MAX_REPLIES
#define MAX_REPLIES 4 /* messages of the leader */
#endif
#define SLOTS 2 /* messages in flight, in each direction */

#define NOBODY 0
#define A 1
#define B 2

typedef Request { byte seq, heard, applied, held }
typedef Reply { byte seq, echo, offer; bool fresh }

Request requests[SLOTS];
Reply replies[SLOTS];

/* Owner A. */
byte seq, heard, applied, held, newest;
/* The leader, and its state of A. */
byte sent, echo, gen, holder, first;
bool fresh, planned;
/* Owner B. */
bool b;

#define SAFE assert(!(held != 0 && b)) /* I1 */
#define NEVER_AGAIN assert(r.offer > newest) /* I3: A does not get an earlier generation again */

inline A_SENDS(has) {
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

inline A_RECEIVES() {
	if
#ifdef NO_REORDER
	:: false
#else
	:: r.seq <= heard /* a duplicate, or reordered */
#endif
	:: else ->
		heard = (r.seq > heard -> r.seq : heard);
		if
#ifndef NO_ECHO
		:: r.echo != seq /* it crossed a request of A */
#endif
		:: else ->
			applied = r.seq;
			if
			:: r.offer == 0 && held != 0 -> /* a recall */
#ifdef ACK_FIRST
				if
				:: seq < MAX_REQUESTS -> A_SENDS(0); owing = true
				:: else -> held = 0
				fi
#else
				held = 0
#endif
			:: r.offer == 0 && held == 0
			:: r.offer != 0 && r.offer == held /* a renewal */
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
	:: atomic { !owing && seq < MAX_REQUESTS -> A_SENDS(held) }
	:: atomic { !owing && held != 0 -> held = 0 }
	:: atomic {
		!owing && (replies[0].seq != 0 || replies[1].seq != 0) ->
		if
		:: replies[0].seq != 0 -> r.seq = replies[0].seq; r.echo = replies[0].echo; r.offer = replies[0].offer; r.fresh = replies[0].fresh
		:: replies[1].seq != 0 -> r.seq = replies[1].seq; r.echo = replies[1].echo; r.offer = replies[1].offer; r.fresh = replies[1].fresh
		fi;
		A_RECEIVES();
		r.seq = 0; r.echo = 0; r.offer = 0; r.fresh = false; slot = 0;
		SAFE
	}
	od
}

inline L_SENDS() {
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

inline RECONCILE() {
	if
	:: holder != A
	:: holder == A && q.held == gen -> fresh = false; first = 0
	:: holder == A && q.held != gen ->
		if
#ifndef NO_APPLIED
		:: fresh && (first == 0 || first > q.applied) && planned /* A has not applied the grant, and it is offered again */
#endif
		:: else -> holder = NOBODY; fresh = false; first = 0
		fi
	fi
}

inline L_RECEIVES() {
	if
	:: q.seq <= echo /* a duplicate, or reordered */
#ifndef NO_HEARD
	:: q.seq > echo && sent != 0 && q.heard != sent /* it crossed a reply */
#endif
	:: else ->
		echo = q.seq;
		if
		:: sent != 0 -> RECONCILE()
		:: else /* A has received no reply yet, and its request proves nothing */
		fi;
		if
		:: sent < MAX_REPLIES -> L_SENDS()
		:: else
		fi
	fi
}

proctype Leader() {
	byte slot;
	Request q;
end:	do
	/* A free range is granted: committed, and then offered. */
	:: atomic { holder == NOBODY && gen < GENS && sent != 0 -> gen++; holder = A; fresh = true; first = 0; planned = true }
	:: atomic { holder == NOBODY && gen < GENS -> gen++; holder = B; b = true; SAFE }
	:: atomic { holder == B -> holder = NOBODY; b = false }
	/* The plan changes, and back. */
	:: atomic { holder == A -> planned = !planned }
	/* It sends at any time: after a change, or after a race. */
	:: atomic { echo != 0 && sent < MAX_REPLIES -> L_SENDS() }
	:: atomic {
		requests[0].seq != 0 || requests[1].seq != 0 ->
		if
		:: requests[0].seq != 0 -> q.seq = requests[0].seq; q.heard = requests[0].heard; q.applied = requests[0].applied; q.held = requests[0].held
		:: requests[1].seq != 0 -> q.seq = requests[1].seq; q.heard = requests[1].heard; q.applied = requests[1].applied; q.held = requests[1].held
		fi;
		L_RECEIVES();
		q.seq = 0; q.heard = 0; q.applied = 0; q.held = 0
	}
	od
}

init { atomic { run Owner(); run Leader() } }
