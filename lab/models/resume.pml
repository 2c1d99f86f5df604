/*
 * Resume: an owner keeps an expired lease and continues it after an outage.
 *
 * Problem. A lease expires when no leader renews it in time. During an outage of the managers
 * every lease expires although no owner has failed. An owner that drops its leases loses its
 * state without need. An owner that continues a lease on its own risks dual ownership.
 *
 * Idea. At its deadline a lease is suspended: checks fail, and the owner keeps the lease, its
 * generation and its state, and goes on claiming it. The leader renews the claim only if the
 * stored table still assigns the range to this session under this generation. Every grant is
 * stored before it is revealed, so no other owner has had the range since.
 *
 * A store that was restored from a backup breaks that argument: it may have lost a grant. A leader
 * that cannot exclude a restore waits until every lost lease has expired, and then resumes. An
 * owner that claims a generation which the table never had is evidence of lost history. From
 * then on the leader resumes nothing, and it recalls what was resumed, also by leaders before it:
 * owners report which of their leases were resumed.
 *
 * The model has one range, two sessions, a store, and one leader at a time that can crash at
 * any step. Sessions are those of two owners, or of one owner before and after a restart. All
 * messages can be lost, delayed and repeated. The store can be restored once, from a backup of
 * any earlier state, while no leader runs.
 *
 * Properties:
 *
 *   I1   at most one session's check succeeds
 *   I2   no generation is granted twice
 *   I3   a check that succeeds implies that no other session has had the range since the first
 *        check under the same generation. Exception: the store was restored, and the leader
 *        that sent the reply had no evidence of that.
 *   I11  a session that lives loses its lease only if another session could take the range, or
 *        after evidence of lost history
 *
 *   here                     internal/core/machine/...
 *   ----------------------   -----------------------------------------------------------
 *   gen, until, newest       owner: held, view.Until, newest. Suspended: gen != 0, until == 0
 *   asked                    owner: renewal.sentAt; the remaining time of a lease that counts from the
 *                            newest request
 *   claimed                  owner: renewal.claimsSuspended; protocol.LeaseRequest: Suspended
 *   wasResumed, reported     owner: resumedUpTo; protocol.LeaseRequest: Resumed
 *   RECEIVE                  owner/reply.go: adopt, exchange; owner/suspend.go: resume
 *   holder, tableGen         the stored table
 *   pending                  manager: a batch that is decided and not yet stored; ending
 *   fresh                    manager/peer.go: fresh
 *   hold                     manager/peer.go: until; the remaining time before a silent session
 *                            expires
 *   member                   manager/peer.go: member; manager/acks.go: proven
 *   inherit                  manager: inheritUntil; the remaining time of leases from earlier terms
 *   doubt                    manager/history.go: doubted; stored as storage.Record.Floor
 *   evidence                 manager/history.go: proven
 *   resumed                  manager/peer.go: resumed, resumedUpTo
 *   gapLow, gapHigh          table.Gap
 *   ANSWER                   manager/request.go: request; manager/history.go: defers; manager/restored.go:
 *                            resume, recallResumed
 *
 * Abstractions. All clocks have the same rate, and two leaders never act at the same time:
 * takeover.pml covers both. A request replaces earlier requests of its session, and a reply
 * counts only if it answers the newest request: recall.pml covers the filter behind that. There
 * are no moves of state, and no recalls other than those after evidence. A leader that takes
 * over knows whether the store may have been restored since a manager last saw its record
 * change: the election decides that. The gap is one write that happens at once.
 *
 * Each rule can be removed. Spin must find a violation then, unless lab/models/check says that
 * another rule covers it.
 *
 *   Owner
 *   -DSERVE_SUSPENDED     checks of a suspended lease succeed
 *   -DDROP_EXPIRED        the owner drops its lease at the deadline
 *   -DNO_CLAIMED          the answer to a request that was sent before the deadline resumes
 *   -DFROM_RECEIPT        a resumed lease counts from the receipt of the reply
 *   -DNO_REPORT           the owner does not report that its lease was resumed
 *   Leader
 *   -DNO_GENERATION       a claim of any generation is renewed while the table assigns the range to
 *                         the session
 *   -DNO_SESSION          a claim is renewed while the table has its generation, for any session
 *   -DNO_HOLD             a renewed claim does not extend the time before the session expires
 *   -DIGNORE_PENDING      a claim is renewed while its end is decided and not yet stored
 *   -DEARLY_OFFER         a grant is revealed before it is stored
 *   -DEXPIRE_ALWAYS       a silent session expires although no other session could take the range
 *   Restored store
 *   -DTRUST_STORE         a leader takes a restored store for current
 *   -DFORGET_DOUBT        the next leader does not learn that the store may be restored
 *   -DRESUME_AT_ONCE      claims are resumed while a lost lease may be valid
 *   -DGRANT_AT_ONCE       the range is granted while a lost lease may be valid
 *   -DNO_GAP              generations continue where the backup ends
 *   -DDOUBT_IS_EVIDENCE   a leader that cannot exclude a restore recalls all claims
 *   -DIGNORE_EVIDENCE     suspended claims are resumed after evidence
 *   -DKEEP_RESUMED        resumed leases are not recalled after evidence
 */

#ifndef GENS
#define GENS 3 /* the newest generation */
#endif
#define LEASE 2 /* ticks */

#define NONE 2
#define OTHER(s) (1 - s)

typedef Session {
	byte gen, until, newest;        /* the lease; gen 0: none */
	byte asked, claim;              /* the newest request: remaining validity, claimed generation */
	bool request, claimed, reported; /* it is in flight; the claim is suspended; it was resumed */
	bool reply, offerFresh, warned; /* the reply: in flight, a new grant, sent after evidence */
	byte offer;                     /* the offered generation; 0: none */
	bool wasResumed;                /* the lease was suspended and resumed */
	bool spoiled                    /* ghost: another session has had the range since gen was granted */
}

Session s[2];

/* The store. */
byte holder, tableGen = 1, stored = 1; /* the holder, its generation, the newest generation */
byte gapLow, gapHigh;                  /* generations in (gapLow, gapHigh] are of a lost history */
bool doubt;                            /* the store may be restored, and the gap is not stored */
byte pending, pendingTo;               /* the write in flight */
#define VACATE 1
#define GRANT 2
/* Ghosts. */
byte issued = 1;         /* the newest generation that was ever granted */
bool restored, lost;     /* the store was restored; the gap is not stored since */
bool witnessed;          /* a manager has seen the leader record change since the restore */
bool needless;           /* the lease has ended although no other session could take the range */

/* The leader. */
bool leads, evidence, fresh;
byte inherit, hold[2];
bool member[2], resumed[2];

#ifdef SERVE_SUSPENDED
#define VALID(x) (s[x].gen != 0)
#else
#define VALID(x) (s[x].until > 0)
#endif
#define I1 assert(!(VALID(0) && VALID(1)))
#define I3(x) assert(!s[x].spoiled || restored && !s[x].warned)
#define I11(x) assert(!needless || restored)
#define LESS(x) x = (x > 0 -> x - 1 : 0)

#ifdef DROP_EXPIRED
#define EXPIRED(x) (s[x].gen != 0 && s[x].until == 0)
#define ASSIGNED(x) (holder == x && tableGen == s[x].gen)
#define DROP(x) if :: EXPIRED(x) -> assert(!ASSIGNED(x) || restored); s[x].gen = 0; s[x].spoiled = false; s[x].wasResumed = false :: else fi
#endif

active proctype Clock() {
end:	do
	:: d_step {
		LESS(s[0].until); LESS(s[1].until); LESS(s[0].asked); LESS(s[1].asked);
		LESS(hold[0]); LESS(hold[1]); LESS(inherit);
#ifdef DROP_EXPIRED
		DROP(0); DROP(1);
#endif
		I1
	}
	od
}

inline END(x) { s[x].gen = 0; s[x].until = 0; s[x].spoiled = false; s[x].wasResumed = false }

/* The lease is valid: the other session's lease, if it has one, is no longer exclusive. */
inline ACT(x) {
	if
	:: s[OTHER(x)].gen != 0 -> s[OTHER(x)].spoiled = true
	:: else
	fi;
	I1; I3(x)
}

inline RECEIVE(x) {
	s[x].reply = false;
	if
#ifndef FROM_RECEIPT
	:: s[x].asked == 0 /* too late */
#endif
#ifndef NO_CLAIMED
	:: s[x].asked > 0 && s[x].gen != 0 && s[x].until == 0 && !s[x].claimed
#endif
	:: else ->
		if
		:: s[x].gen != 0 && s[x].offer == s[x].gen ->
#ifndef NO_REPORT
			s[x].wasResumed = s[x].wasResumed || s[x].until == 0;
#endif
#ifdef FROM_RECEIPT
			s[x].until = LEASE;
#else
			s[x].until = s[x].asked;
#endif
			ACT(x)
		:: else ->
			if
			:: s[x].gen != 0 -> I11(x); END(x)
			:: else
			fi;
			if
			:: s[x].offerFresh && s[x].offer > s[x].newest && s[x].asked > 0 ->
				s[x].gen = s[x].offer; s[x].newest = s[x].offer; s[x].until = s[x].asked;
				ACT(x)
			:: else
			fi
		fi
	fi;
	s[x].offer = 0; s[x].offerFresh = false; s[x].warned = false; s[x].asked = 0; s[x].claimed = false
}

proctype Owner(byte me) {
end:	do
	/* It sends its next request, which claims what it has. */
	:: d_step {
		s[me].request = true; s[me].asked = LEASE;
		s[me].claim = s[me].gen; s[me].claimed = s[me].gen != 0 && s[me].until == 0;
		s[me].reported = s[me].wasResumed;
		s[me].reply = false; s[me].offer = 0; s[me].offerFresh = false; s[me].warned = false
	}
	:: atomic { s[me].reply -> RECEIVE(me) }
	/* It drops its lease: the process slept, or kept it for too long. */
	:: d_step { s[me].gen != 0 -> END(me) }
	od
}

inline OFFER(x, g, isFresh) {
	s[x].offer = g; s[x].offerFresh = isFresh; s[x].warned = evidence;
	s[x].request = false; s[x].claim = 0; s[x].reported = false; s[x].reply = true;
	member[x] = true
}

#define LOST(g) (g > gapLow && g <= gapHigh || doubt && g > stored)

#ifdef NO_GENERATION
#define MATCHES(x) (s[x].claim != 0 && holder == x && !fresh)
#else
#ifdef NO_SESSION
#define MATCHES(x) (s[x].claim != 0 && holder != NONE && s[x].claim == tableGen)
#else
#define MATCHES(x) (s[x].claim != 0 && holder == x && s[x].claim == tableGen)
#endif
#endif

/* The end of the lease is decided and not yet stored. */
#ifdef IGNORE_PENDING
#define ENDING(x) false
#else
#define ENDING(x) (pending == VACATE && holder == x)
#endif

/* A suspended claim is answered later: a lost lease may be valid. */
#ifdef RESUME_AT_ONCE
#define DEFERRED(x) false
#else
#define DEFERRED(x) (s[x].claimed && doubt && !evidence && inherit > 0)
#endif

/* After evidence a lease is neither resumed nor kept if it was resumed. */
#ifdef IGNORE_EVIDENCE
#define REFUSED(x) (evidence && resumed[x])
#else
#ifdef KEEP_RESUMED
#define REFUSED(x) (evidence && s[x].claimed)
#else
#define REFUSED(x) (evidence && (s[x].claimed || resumed[x]))
#endif
#endif

inline ANSWER(x) {
	resumed[x] = resumed[x] || MATCHES(x) && s[x].reported;
	if
	:: LOST(s[x].claim) -> evidence = true
	:: else
	fi;
	if
	:: DEFERRED(x) || ENDING(x)
	:: else ->
		if
		:: MATCHES(x) && REFUSED(x) -> needless = needless || !restored; OFFER(x, 0, false)
		:: MATCHES(x) && !REFUSED(x) ->
			resumed[x] = resumed[x] || s[x].claimed && !fresh;
			fresh = false;
			OFFER(x, s[x].claim, false)
		:: else ->
			if
			/* The grant was not received yet. */
			:: holder == x && fresh -> OFFER(x, tableGen, true)
#ifdef EARLY_OFFER
			:: pending == GRANT && pendingTo == x -> OFFER(x, stored + 1, true)
#endif
			/* The session has given it back. */
			:: holder == x && !fresh && !doubt && pending == 0 ->
				pending = VACATE; OFFER(x, 0, false)
			:: else -> OFFER(x, 0, false)
			fi
		fi;
#ifdef NO_HOLD
		if :: !s[x].claimed -> hold[x] = LEASE :: else fi
#else
		hold[x] = LEASE
#endif
	fi
}

#ifdef EXPIRE_ALWAYS
#define TAKER(x) true
#else
#define TAKER(x) (member[OTHER(x)] && hold[OTHER(x)] > 0)
#endif

#ifdef GRANT_AT_ONCE
#define LOST_EXPIRED true
#else
#define LOST_EXPIRED (inherit == 0)
#endif

proctype Leader() {
end:	do
	/* It takes over. Every lease of earlier terms has expired in one lease. */
	:: atomic {
		!leads ->
		leads = true;
		if
		:: holder != NONE -> hold[holder] = LEASE
		:: else
		fi;
		pending = 0; /* its guard is the term */
#ifdef FORGET_DOUBT
		doubt = false;
#endif
		if
#ifndef TRUST_STORE
		:: doubt = true
#endif
#ifdef TRUST_STORE
		:: true
#else
		:: !lost || witnessed
#endif
		fi;
		inherit = (doubt -> LEASE : 0);
		witnessed = true;
#ifdef DOUBT_IS_EVIDENCE
		evidence = doubt
#endif
	}
	/* It crashes. A write in flight may still be stored. */
	:: d_step {
		leads -> leads = false; evidence = false; fresh = false; inherit = 0; hold[0] = 0; hold[1] = 0;
		member[0] = false; member[1] = false; resumed[0] = false; resumed[1] = false
	}
	:: atomic { leads && s[0].request -> ANSWER(0) }
	:: atomic { leads && s[1].request -> ANSWER(1) }
	/* A silent session expires. */
	:: atomic {
		leads && pending == 0 && !doubt && holder != NONE && hold[holder] == 0 && TAKER(holder) ->
		pending = VACATE;
		needless = !(member[OTHER(holder)] && hold[OTHER(holder)] > 0)
	}
	/* The range is free. */
	:: atomic { leads && pending == 0 && !doubt && holder == NONE && member[0] && issued < GENS -> pending = GRANT; pendingTo = 0 }
	:: atomic { leads && pending == 0 && !doubt && holder == NONE && member[1] && issued < GENS -> pending = GRANT; pendingTo = 1 }
	/* No lost lease is valid any more: generations continue above all that were granted. */
	:: d_step {
		leads && doubt && LOST_EXPIRED ->
		doubt = false; lost = false;
#ifndef NO_GAP
		if
		:: issued > stored -> gapLow = stored; gapHigh = issued; stored = issued
		:: else
		fi
#endif
	}
	od
}

#define RESTORED (!restored && !leads && pending == 0 && issued > 1)
#define LOSE restored = true; lost = true; witnessed = false; doubt = false; gapLow = 0; gapHigh = 0

proctype Store() {
end:	do
	:: atomic {
		pending == VACATE ->
		pending = 0; holder = NONE; tableGen = 0;
		resumed[0] = false; resumed[1] = false
	}
	:: atomic {
		pending == GRANT ->
		pending = 0; stored++; holder = pendingTo; tableGen = stored; pendingTo = 0;
		assert(stored > issued); /* I2 */
		issued = stored;
		fresh = leads; needless = false;
		hold[holder] = (leads -> LEASE : 0)
	}
	/* It is restored while no leader runs: from a backup of the beginning, or from before the
	   newest grant. */
	:: d_step { RESTORED -> holder = 0; tableGen = 1; stored = 1; LOSE }
	:: d_step { RESTORED -> holder = NONE; tableGen = 0; stored = issued - 1; LOSE }
	od
}

init {
	atomic {
		s[0].gen = 1; s[0].newest = 1; s[0].until = LEASE;
		leads = true; hold[0] = LEASE; witnessed = true;
		run Owner(0); run Owner(1); run Leader(); run Store()
	}
}
