/*
 * Takeover: a leader becomes silent, another one takes over, and owners receive messages of both.
 *
 * Two managers and a store, one range, two owners. M0 leads at the beginning, and A holds the
 * range. Any process can stop at any moment for any time: it does nothing while time passes.
 * Messages can arrive late or never; requests of the leader to the store can be executed late,
 * and their replies can arrive late.
 *
 * Time advances in ticks. In one tick, the clocks of M0, A and B, which are slow, advance by
 * SLOW units, and that of M1, which is fast, by FAST: the ratio is the drift bound, and the
 * processes with an authority or a lease use it for longest. The model keeps the remaining time
 * of each deadline.
 *
 * Properties: no two managers act at the same time, and no two owners hold the range.
 *
 *   here             internal/core/machine/...
 *   -------------    ----------------------------------------------------------------
 *   version, term    storage.Record: Version, Term
 *   swapLeft         election: attempt.sent; the remaining time of the authority that the swap
 *                    in flight will give, which counts from when it was sent
 *   auth0, auth1     election: lead.until; manager: lead.authority
 *   stood            election: seenAt; the remaining time for which the record must stand still
 *   M1 takes over    election: vacant, swap, won
 *   hold1            manager: inheritUntil, renewal.until; the remaining time for which M1 keeps the range for A
 *   asked            owner: renewal.sentAt; the remaining time of a lease that counts from A's newest
 *                    request
 *   leaseA, leaseB   owner: view.Until
 *   termA            owner: term
 *   reply0, reply1   replies in flight to A that echo its newest request: of M0, of M1
 *   stale0           a long-delayed offer of M0
 *
 * Messages have no sequence numbers here; recall.pml has them. So only the term rejects stale0,
 * while in the code the sequence numbers do so too.
 *
 * Mutants, for each of which Spin must find a violation:
 *
 *   -DNO_WAIT        M1 takes over although the record has not stood still
 *   -DNO_DRIFT       it waits for the TTL on its own clock, without the drift bound
 *   -DFROM_ANSWER    the leader's authority counts from the store's reply
 *   -DNO_HOLD        M1 treats the ranges in the table as free
 *   -DSHORT_HOLD     it keeps them for the lease duration on its own clock
 *   -DFROM_RECEIPT   a lease counts from the receipt of the reply
 *   -DNO_TERMS       the owner accepts messages of an earlier leader
 *   -DNO_CHECK       the leader does not check its authority before it replies
 */

#ifndef SLOW
#define SLOW 5
#define FAST 6
#endif

#define TTL 30   /* duration of a leader's authority, in units of its clock */
#define WAIT 36  /* TTL times the drift bound: FAST/SLOW */
#define LEASE 30 /* duration of a lease */
#define HOLD 36  /* LEASE times the drift bound */

#ifdef NO_DRIFT
#define PATIENCE TTL
#else
#define PATIENCE WAIT
#endif
#ifdef SHORT_HOLD
#define KEEP LEASE
#else
#define KEEP HOLD
#endif

#define NOBODY 0
#define A 1
#define B 2

#ifndef VERSIONS
#define VERSIONS 4
#endif

/* The store: the leader record, and the table. */
byte version = 1, term = 1, holder = A;
/* M0. */
byte auth0 = TTL, swapLeft, swapPrev;
bool swapping, swapDone; /* in flight; executed, with the reply in flight */
/* M1, with the record that it has read. */
byte auth1, seen = 1, stood = WAIT, hold1;
bool leads1, loaded, recalled1;
/* The owners. */
byte leaseA = LEASE, leaseB, asked, termA = 1;
bool request, reply0, reply1, stale0;
bool renews1; /* M1's reply renews; otherwise it recalls */

#define SAFE assert(!(auth0 > 0 && auth1 > 0)); assert(!(leaseA > 0 && leaseB > 0))
#define LESS(x, by) x = (x > by -> x - by : 0)

active proctype Clock() {
end:	do
	:: atomic {
		LESS(auth0, SLOW); LESS(swapLeft, SLOW);
		LESS(leaseA, SLOW); LESS(leaseB, SLOW); LESS(asked, SLOW);
		LESS(auth1, FAST); LESS(stood, FAST); LESS(hold1, FAST)
	}
	od
}

active proctype Store() {
end:	do
	/* M0's swap is executed, or refused for ever. M0 gets no reply to the latter. */
	:: atomic { swapping && !swapDone && swapPrev == version && version < VERSIONS -> version++; swapDone = true }
	:: atomic { swapping && !swapDone && swapPrev != version -> swapping = false; swapLeft = 0 }
	od
}

active proctype M0() {
end:	do
	/* It renews its authority, with at most one swap in flight. */
	:: atomic { auth0 > 0 && !swapping && term == 1 -> swapping = true; swapPrev = version; swapLeft = TTL }
	:: atomic {
		swapping && swapDone ->
		swapping = false; swapDone = false;
#ifdef FROM_ANSWER
		auth0 = TTL;
#else
		auth0 = swapLeft;
#endif
		swapLeft = 0;
		SAFE
	}
	/* It replies to A, and renews its lease. */
#ifdef NO_CHECK
	:: atomic { request -> request = false; reply0 = true }
#else
	:: atomic { request && auth0 > 0 -> request = false; reply0 = true }
#endif
	od
}

active proctype M1() {
end:	do
	/* It reads the record. */
	:: atomic { !leads1 && seen != version -> seen = version; stood = PATIENCE }
	/* It takes over. */
#ifdef NO_WAIT
	:: atomic { !leads1 && seen == version && version < VERSIONS ->
#else
	:: atomic { !leads1 && stood == 0 && seen == version && version < VERSIONS ->
#endif
		version++; term = 2; leads1 = true; auth1 = TTL; SAFE }
	/* Its swap took so long that it has no authority: it renews. */
	:: atomic { leads1 && auth1 == 0 -> auth1 = TTL; SAFE }
	/* It reads the table, and keeps each range for its holder. */
	:: atomic { leads1 && auth1 > 0 && !loaded -> loaded = true;
#ifndef NO_HOLD
		hold1 = KEEP
#endif
	}
	/* It receives a request of A: it renews A's lease, or recalls it. */
	:: atomic { loaded && auth1 > 0 && request && holder == A -> request = false; reply1 = true; renews1 = !recalled1; hold1 = KEEP }
	:: atomic { loaded && holder == A && !recalled1 -> recalled1 = true }
	/* A's lease has expired: the range is free, and is granted to B. */
	:: atomic { loaded && auth1 > 0 && holder == A && hold1 == 0 -> holder = B; leaseB = LEASE; SAFE }
	/* B renews. */
	:: atomic { loaded && auth1 > 0 && holder == B -> leaseB = LEASE; SAFE }
	od
}

active proctype OwnerA() {
end:	do
	/* It sends a request; the reply to an earlier one crosses that, and is dropped. It can
	   still be in flight when A has accepted another leader. */
	:: atomic { stale0 = stale0 || reply0; request = true; reply0 = false; reply1 = false; asked = LEASE }
	:: atomic {
		reply0 -> reply0 = false;
		if
#ifndef NO_TERMS
		:: termA > 1 /* of an earlier leader */
#endif
		:: else ->
			/* A renewal extends a held lease, and does not restore an expired one. */
#ifdef FROM_RECEIPT
			leaseA = (leaseA > 0 && asked > 0 -> LEASE : leaseA)
#else
			leaseA = (leaseA > 0 -> (asked > leaseA -> asked : leaseA) : 0)
#endif
		fi;
		SAFE
	}
	:: atomic {
		reply1 -> reply1 = false; termA = 2;
		if
		:: renews1 -> leaseA = (leaseA > 0 -> (asked > leaseA -> asked : leaseA) : 0)
		:: else ->
			/* A recall: A releases the lease, and acknowledges that. M1 receives it at some time. */
			leaseA = 0
		fi;
		SAFE
	}
	/* The acknowledgement of a recall reaches M1, and the range is free. */
	:: atomic { termA == 2 && leaseA == 0 && recalled1 && holder == A && loaded && auth1 > 0 -> holder = B; leaseB = LEASE; SAFE }
#ifdef NO_TERMS
	/* An old offer of M0 gives A the range. */
	:: atomic { stale0 -> stale0 = false; leaseA = asked; SAFE }
#endif
	od
}
