/*
 * Takeover: a leader falls silent, another takes over, and owners hear both.
 *
 * Two managers and a store, one range, two owners. M0 leads at the beginning, and A has the
 * range. Any process may stand still at any moment for any time, which is that it does
 * nothing while time passes. What is sent may arrive late or never; what the leader asks of
 * the store may happen late, and its answer may come late.
 *
 * Time goes in ticks. In one, the clocks of M0, A and B, which are slow, advance by SLOW
 * units, and that of M1, which is fast, by FAST: as far apart as the drift bound allows,
 * and so that those who believe in something believe for longest. What has not run out is
 * kept as how much is left of it.
 *
 * What must never be: two managers that act at the same time, or two owners that have the
 * range.
 *
 *   here             internal/core/machine/...
 *   -------------    ----------------------------------------------------------------
 *   version, term    storage.Record: Version, Term
 *   swapLeft         election: attempt.sent; what is left of the authority that the swap
 *                    under way will give, which counts from when it was sent
 *   auth0, auth1     election: until; manager: authority
 *   stood            election: seenAt; how long M1 must still see the record stand still
 *   M1 takes over    election: vacant, swap, won
 *   hold1            manager: inherit, peer.until; how long M1 keeps the range for A
 *   asked            owner: sentAt; what is left of a lease that counts from A's newest
 *                    request
 *   leaseA, leaseB   owner: view.Until
 *   termA            owner: term
 *   reply0, reply1   replies under way to A, that echo its newest request: of M0, of M1
 *   stale0           an offer of M0 that is under way for very long
 *
 * Messages have no numbers here, which recall.pml is about. So what keeps stale0 out is the
 * term alone, where in the code the numbers do their part, too.
 *
 * Mutants, for each of which Spin must find a violation:
 *
 *   -DNO_WAIT        M1 takes over without having seen the record stand still
 *   -DNO_DRIFT       it waits for as long as the leader may act, on its own clock
 *   -DFROM_ANSWER    the leader's authority counts from the store's answer
 *   -DNO_HOLD        M1 takes what it finds in the table for free
 *   -DSHORT_HOLD     it keeps it for the time of a lease on its own clock
 *   -DFROM_RECEIPT   a lease counts from when the reply arrives
 *   -DNO_TERMS       the owner takes messages of an earlier leader
 *   -DNO_CHECK       the leader does not look at its time before it answers
 */

#ifndef SLOW
#define SLOW 5
#define FAST 6
#endif

#define TTL 30   /* how long a leader may act, in units of its clock */
#define WAIT 36  /* TTL times the drift bound: FAST/SLOW */
#define LEASE 30 /* how long a lease lasts */
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
bool swapping, swapDone; /* under way; it has happened, and the answer is under way */
/* M1: the record that it has seen. */
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
	/* M0's swap happens, or is refused for ever. M0 does not learn of that. */
	:: atomic { swapping && !swapDone && swapPrev == version && version < VERSIONS -> version++; swapDone = true }
	:: atomic { swapping && !swapDone && swapPrev != version -> swapping = false; swapLeft = 0 }
	od
}

active proctype M0() {
end:	do
	/* It renews its authority. Of a swap that is under way only one is. */
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
	/* It answers A, and renews its lease. */
#ifdef NO_CHECK
	:: atomic { request -> request = false; reply0 = true }
#else
	:: atomic { request && auth0 > 0 -> request = false; reply0 = true }
#endif
	od
}

active proctype M1() {
end:	do
	/* It looks at the record. */
	:: atomic { !leads1 && seen != version -> seen = version; stood = PATIENCE }
	/* It takes over. */
#ifdef NO_WAIT
	:: atomic { !leads1 && seen == version && version < VERSIONS ->
#else
	:: atomic { !leads1 && stood == 0 && seen == version && version < VERSIONS ->
#endif
		version++; term = 2; leads1 = true; auth1 = TTL; SAFE }
	/* Its swap took so long that it may not act yet: it renews. */
	:: atomic { leads1 && auth1 == 0 -> auth1 = TTL; SAFE }
	/* It reads the table, and keeps what is in it for whoever has it. */
	:: atomic { leads1 && auth1 > 0 && !loaded -> loaded = true;
#ifndef NO_HOLD
		hold1 = KEEP
#endif
	}
	/* It hears A: renews what it has, or asks for it back. */
	:: atomic { loaded && auth1 > 0 && request && holder == A -> request = false; reply1 = true; renews1 = !recalled1; hold1 = KEEP }
	:: atomic { loaded && holder == A && !recalled1 -> recalled1 = true }
	/* A's time is over: the range is free, and goes to B. */
	:: atomic { loaded && auth1 > 0 && holder == A && hold1 == 0 -> holder = B; leaseB = LEASE; SAFE }
	/* B goes on. */
	:: atomic { loaded && auth1 > 0 && holder == B -> leaseB = LEASE; SAFE }
	od
}

active proctype OwnerA() {
end:	do
	/* It speaks; the answer to what it said before crosses that, and is dropped. It may
	   still be under way when A has heard another leader. */
	:: atomic { stale0 = stale0 || reply0; request = true; reply0 = false; reply1 = false; asked = LEASE }
	:: atomic {
		reply0 -> reply0 = false;
		if
#ifndef NO_TERMS
		:: termA > 1 /* of an earlier leader */
#endif
		:: else ->
			/* A renewal extends what is held, and gives nothing back. */
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
			/* A recall: it lets go, and says so at once. M1 hears it at some time. */
			leaseA = 0
		fi;
		SAFE
	}
	/* What it says after a recall reaches M1, which makes the range free. */
	:: atomic { termA == 2 && leaseA == 0 && recalled1 && holder == A && loaded && auth1 > 0 -> holder = B; leaseB = LEASE; SAFE }
#ifdef NO_TERMS
	/* What M0 has offered at some time gives it the range. */
	:: atomic { stale0 -> stale0 = false; leaseA = asked; SAFE }
#endif
	od
}
