; The heart of the protocol as a transition system, with an inductive invariant.
;
; The expressions are SMT-LIB. inductive.go reads the other forms:
;
;   (sort S) (const C S) (assume E)       parameters
;   (state F S... R)                      a state variable: a function, or a constant if there is one sort
;   (define F (PARAMETERS) E)             an abbreviation
;   (init E)                              a condition of the first state
;   (conjunct NAME E)                     a part of the invariant
;   (property NAME E)                     must follow from the invariant
;   (action NAME (PARAMETERS) E... (set (F X...) E)...)
;                                         conditions, then updates; all of them read the old state
;   (before ACTION NAME E)                must hold whenever the action can happen
;   (walk NAME (ACTION...) E)             these actions are possible, and E can hold after them
;   (rule NAME E)                         E, as a rule that a mutant can replace
;   (mutant NAME RULE E)                  z3 must find a counterexample with E in place of the rule
;
; Bounds. There is one key: the leases of different keys share deadlines and messages, and every message has the
; complete lease set. Sessions, managers, terms, messages and time are unbounded. Messages in flight are functions of
; their numbers that never change: any message can be lost, late, or repeated.
;
; Time. An instant of a process's clock is represented by the true instant at which the clock shows it. A wait for D on
; any clock lasts from D to H, and a wait for the stretched D, which is D x drift, at least H. T and W are the same for
; the TTL. So the argument holds for every drift bound and every ratio of lease and TTL.
;
; Not here: diskless managers, promises of agents, changes of the lease time, two processes with one session, sleeping
; computers, evidence of lost history (resume.pml). A store is restored only while no manager has authority, and the
; terms after it are higher than the lost ones.

(sort Session)
(const D Real) (const H Real) (const T Real) (const W Real)
(assume (and (< 0.0 D) (<= D H) (< 0.0 T) (<= T W)))

(state now Real)

; ---- The store: the leader record and the table ----

(state term Int)          ; of the record
(state beat Real)         ; when the newest write of the record was sent
(state live Int)          ; the generation in the table, 0 if the key is vacant
(state newest Int)        ; the newest generation of the table
(state doubt Bool)        ; the store may have been restored, and the gap is not stored
(state grantee Int Session) ; of each generation
; Ghosts.
(state issued Int)        ; the newest generation that was ever granted
(state lost Int)          ; the generation of a lease that may be valid although the restored table lacks it, 0 if none
(state start Real)        ; of the term

; ---- Leaders, by term (machine/leadership/byrecord, machine/manager) ----

(state leads Int Bool)    ; a manager has won the term
(state auth Int Real)     ; lead.authority
(state trying Int Bool)   ; a write of the record is in flight,
(state tried Int Real)    ;   sent then,
(state written Int Bool)  ;   and stored
(state own Int Int)       ; the generation that it considers held, 0 if none
(state pend Int Bool)     ; a grant is decided and not recorded,
(state pendTo Int Session)
(state stored Int Bool)   ;   and stored,
(state pendGen Int Int)   ;   with this generation
(state lseq Int Int)      ; lead.seq, the newest message
(state echo Int Session Int)    ; acks.echo, the newest accepted request; 0 if none
(state sent Int Session Int)    ; acks.sent, the newest message to the session; 0 if none
(state member Int Session Bool) ; acks.proven and incumbent
(state lastReq Int Session Real) ; renewal.lastRequest
(state hold Int Session Real)   ; renewal.until

; ---- Messages of leaders, by term and number ----

(state repTo Int Int Session)
(state repEcho Int Int Int)
(state repGen Int Int Int)   ; the offered generation, 0 if none
(state repFresh Int Int Bool) ; it is a grant, or has a ticket

; ---- Owners (machine/owner) ----

(state over Session Bool)    ; the process has ended, or accepts no lease any more
(state oterm Session Int)    ; leader.term
(state received Session Int) ; leader.received, of that term
(state seq Session Int)      ; renewal.seq
(state gen Session Int)      ; the lease, 0 if none; it is suspended from until on
(state until Session Real)   ; view.Until

; ---- Requests, by session and number ----

(state reqSent Session Int Real)
(state reqGen Session Int Int)   ; the claimed generation
(state reqTerm Session Int Int)
(state reqHeard Session Int Int)
(state reqSusp Session Int Bool) ; it claims a suspended lease

(define valid ((s Session)) (and (not (over s)) (not (= (gen s) 0)) (< now (until s))))
(define request ((s Session) (q Int)) (and (<= 1 q) (<= q (seq s))))
(define reply ((t Int) (n Int)) (and (<= 1 t) (<= t term) (<= 1 n) (<= n (lseq t))))
; The only generation that can be valid.
(define cur () (ite (= lost 0) (own term) lost))
; A reply that its owner would apply.
(define receivable ((t Int) (n Int)) (and (not (over (repTo t n))) (<= 1 (repEcho t n)) (= (repEcho t n) (seq (repTo t n)))
	(or (< (oterm (repTo t n)) t) (and (= (oterm (repTo t n)) t) (< (received (repTo t n)) n)))))
; It makes its lease valid, until the lease time after the request.
(define adoptable ((t Int) (n Int)) (and (receivable t n) (not (= (repGen t n) 0))
	(or (repFresh t n)
		(and (= (gen (repTo t n)) (repGen t n)) (or (< now (until (repTo t n))) (reqSusp (repTo t n) (repEcho t n)))))))
(define validity ((t Int) (n Int)) (+ (reqSent (repTo t n) (repEcho t n)) H))

; ---- The first state: a first leader, and nothing else ----

(init (and (= term 1) (= beat now) (= start now) (<= (auth 1) (+ now W))))
(init (and (= live 0) (= newest 0) (= issued 0) (= lost 0) (not doubt)))
(init (forall ((t Int)) (and (= (leads t) (= t 1)) (= (lseq t) 0) (not (trying t)) (not (pend t)) (not (stored t)) (= (own t) 0))))
(init (forall ((t Int) (s Session)) (and (= (echo t s) 0) (= (sent t s) 0) (not (member t s)))))
(init (forall ((s Session)) (and (= (oterm s) 0) (= (received s) 0) (= (seq s) 0) (= (gen s) 0))))

; ---- The property ----

(property one-valid-lease (forall ((a Session) (b Session)) (=> (and (valid a) (valid b)) (= a b))))

; ---- The invariant: the argument ----

; A valid lease is the one that the leader considers held, or that a restored store has lost.
(conjunct ended-lease-is-invalid (forall ((s Session)) (=> (valid s) (= (gen s) cur))))
; No message makes another lease valid.
(conjunct ended-lease-stays-invalid (forall ((t Int) (n Int)) (=>
	(and (reply t n) (adoptable t n) (not (= (repGen t n) cur)))
	(<= (validity t n) now))))
; The leader waits for longer than the lease is valid, or can become valid by a message in flight.
(conjunct hold-covers-lease (forall ((s Session)) (=>
	(and (leads term) (valid s) (= (gen s) (own term)))
	(<= (until s) (hold term s)))))
(conjunct hold-covers-reply (forall ((t Int) (n Int)) (=>
	(and (leads term) (reply t n) (adoptable t n) (= (repGen t n) (own term)))
	(<= (validity t n) (hold term (repTo t n))))))
; It would wait long enough for the next message, too.
(conjunct hold-covers-request (forall ((s Session)) (=>
	(and (member term s) (not (= (echo term s) 0)))
	(<= (+ (reqSent s (echo term s)) H) (hold term s)))))
; A request that acknowledges the newest message has every lease that its owner has.
(conjunct release-is-final (forall ((s Session) (q Int)) (=>
	(and (request s q) (= (reqTerm s q) term) (not (= (sent term s) 0)) (= (reqHeard s q) (sent term s)))
	(or (= (gen s) 0) (= (gen s) (reqGen s q))))))
; Authority ends before the next term begins.
(conjunct authority-is-exclusive (forall ((t Int)) (=> (and (<= 1 t) (< t term)) (<= (auth t) now))))
; What the restored store has lost expires in the term's first wait.
(conjunct lost-lease-expires (and
	(forall ((s Session)) (=> (and (valid s) (not (= lost 0)) (= (gen s) lost)) (<= (until s) (+ start H))))
	(forall ((t Int) (n Int)) (=> (and (reply t n) (<= 1 (repEcho t n)) (not (= lost 0)) (= (repGen t n) lost))
		(<= (validity t n) (+ start H))))))
; Generations continue above all that were granted.
(conjunct generations-rise (=> (not doubt) (= newest issued)))

; ---- The invariant: bookkeeping ----

(conjunct lease-has-a-grantee (forall ((s Session)) (and (<= 0 (gen s)) (<= (gen s) issued)
	(=> (not (= (gen s) 0)) (= (grantee (gen s)) s)))))
(conjunct offer-has-a-grantee (forall ((t Int) (n Int)) (=> (reply t n) (and
	(<= 0 (repGen t n)) (<= (repGen t n) issued)
	(=> (not (= (repGen t n) 0)) (= (grantee (repGen t n)) (repTo t n)))))))
(conjunct claim-was-held (forall ((s Session) (q Int)) (=> (request s q) (and
	(<= 0 (reqTerm s q)) (<= (reqTerm s q) (oterm s)) (<= 0 (reqHeard s q))
	(=> (= (reqTerm s q) (oterm s)) (<= (reqHeard s q) (received s)))
	(<= (reqSent s q) now)))))
(conjunct numbers-rise (forall ((s Session)) (and
	(<= 0 (oterm s)) (<= (oterm s) term) (<= 0 (received s)) (<= (received s) (lseq (oterm s))) (<= 0 (seq s)))))
(conjunct acks-exist (forall ((t Int) (s Session)) (and
	(<= 0 (echo t s)) (<= (echo t s) (seq s)) (<= 0 (sent t s)) (<= (sent t s) (lseq t))
	(=> (not (= (echo t s) 0)) (<= (reqSent s (echo t s)) (lastReq t s))))))
(conjunct newest-message (forall ((t Int) (n Int)) (=>
	(and (reply t n) (not (= (sent t (repTo t n)) 0)))
	(<= n (sent t (repTo t n))))))
(conjunct replies-echo-requests (forall ((t Int) (n Int)) (=> (reply t n) (and
	(<= 0 (repEcho t n)) (<= (repEcho t n) (seq (repTo t n)))))))
(conjunct lease-time (forall ((s Session)) (=> (not (= (gen s) 0)) (<= (until s) (+ now H)))))
(conjunct authority-counts-from-the-write (and
	(<= beat now) (<= start now) (<= 1 term)
	(<= (auth term) (+ beat W))
	(forall ((t Int)) (=> (trying t) (<= (tried t) now)))
	(=> (and (trying term) (written term)) (<= (tried term) beat))
	(forall ((t Int)) (=> (and (<= 1 t) (< t term) (trying t) (written t)) (<= (+ (tried t) W) now)))))
(conjunct table (and
	(<= 0 live) (<= live newest) (<= newest issued) (<= 0 lost) (<= lost issued) (<= 0 (own term))
	(=> (not (= (own term) 0)) (= (own term) live))
	(=> (not (= lost 0)) (and doubt (not (= lost live))))))
(conjunct decided-grant (and
	(=> (pend term) (and (= (own term) 0) (not doubt)))
	(=> (stored term) (and (pend term) (= (pendGen term) live) (not (= live 0)) (= (grantee live) (pendTo term))
		(forall ((s Session)) (not (= (gen s) live)))
		(forall ((t Int) (n Int)) (=> (reply t n) (not (= (repGen t n) live))))))))
(conjunct other-terms-are-blank (and
	(forall ((t Int)) (=> (or (< t 1) (< term t)) (and
		(= (lseq t) 0) (not (leads t)) (not (trying t)) (not (pend t)) (not (stored t)))))
	(forall ((t Int) (s Session)) (=> (< term t) (and (= (echo t s) 0) (= (sent t s) 0) (not (member t s)))))))

; ---- Time ----

(action advance ((to Real)) (<= now to) (set (now) to))

; ---- Owners ----

; owner.go: send
(action send-request ((s Session)) (not (over s))
	(set (seq s) (+ (seq s) 1))
	(set (reqSent s (+ (seq s) 1)) now)
	(set (reqGen s (+ (seq s) 1)) (gen s))
	(set (reqTerm s (+ (seq s) 1)) (oterm s))
	(set (reqHeard s (+ (seq s) 1)) (received s))
	(set (reqSusp s (+ (seq s) 1)) (and (not (= (gen s) 0)) (<= (until s) now))))

; reply.go: relevant. A reply that crosses a request is only acknowledged.
(action receive-crossed ((t Int) (n Int))
	(reply t n) (not (over (repTo t n)))
	(or (< (oterm (repTo t n)) t) (and (= (oterm (repTo t n)) t) (< (received (repTo t n)) n)))
	(set (oterm (repTo t n)) t) (set (received (repTo t n)) n))

; reply.go: adopt, exchange; suspend.go: resume. to is the end of the lease on the owner's clock.
(action receive ((t Int) (n Int) (to Real))
	(reply t n) (not (over (repTo t n)))
	(rule newer-term (<= (oterm (repTo t n)) t))
	(rule in-order (=> (= (oterm (repTo t n)) t) (< (received (repTo t n)) n)))
	(<= 1 (seq (repTo t n))) (rule answers-the-newest-request (= (repEcho t n) (seq (repTo t n))))
	(<= 1 (repEcho t n))
	(rule counts-from-the-request (<= to (+ (reqSent (repTo t n) (repEcho t n)) H)))
	(< now to)
	(rule resumes-suspended-claims (=> (and (not (= (gen (repTo t n)) 0)) (<= (until (repTo t n)) now)) (reqSusp (repTo t n) (repEcho t n))))
	(set (oterm (repTo t n)) t) (set (received (repTo t n)) n)
	(set (until (repTo t n)) to)
	(set (gen (repTo t n)) (ite (rule keeps-what-it-has (or (repFresh t n) (= (gen (repTo t n)) (repGen t n)))) (repGen t n) 0)))

; It gives up its lease: a refusal, a sleep, a slow clock, or a completed move (departures.go: confirmed).
(action drop ((s Session)) (set (gen s) 0))

(action process-ends ((s Session)) (set (over s) true))

; ---- Leaders ----

; request.go: accept, applyRequest. A session without an acknowledged message, or that waits for its name, is no member;
; h is its deadline. releases: reconcile frees the lease that the request lacks.
(action accept ((t Int) (s Session) (q Int) (joins Bool) (releases Bool) (h Real))
	(leads t) (rule has-authority (< now (auth t)))
	(request s q) (<= (reqTerm s q) t)
	(< (echo t s) q)
	(=> (not (= (sent t s) 0)) (and (= (reqTerm s q) t) (rule acknowledges-the-newest-message (= (reqHeard s q) (sent t s)))))
	(=> joins (not (= (sent t s) 0)))
	(<= (hold t s) h)
	(=> (or joins (member t s)) (rule holds-for-the-lease (<= (+ now H) h)))
	(=> releases (and (not (= (own t) 0)) (= (grantee (own t)) s) (not (= (reqGen s q) (own t)))
		(rule released-after-a-message (not (= (sent t s) 0)))
		(not doubt)))
	(set (echo t s) q) (set (lastReq t s) now) (set (hold t s) h)
	(set (member t s) (or joins (member t s)))
	(set (own t) (ite releases 0 (own t))))

; request.go: sendLeases. Without offers it recalls. An undecided leader defers the reply to suspended claims, and offers
; nothing that the owner does not claim.
(action send-reply ((t Int) (s Session) (offers Bool) (fresh Bool))
	(leads t) (rule has-authority (< now (auth t)))
	(=> offers (and (not (= (own t) 0)) (= (grantee (own t)) s) (member t s)))
	(rule undecided-leader-resumes-nothing (=> (and doubt offers) (not (reqSusp s (echo t s)))))
	(rule undecided-leader-grants-nothing (=> (and doubt offers) (not fresh)))
	(set (lseq t) (+ (lseq t) 1))
	(set (sent t s) (+ (lseq t) 1))
	(set (repTo t (+ (lseq t) 1)) s)
	(set (repEcho t (+ (lseq t) 1)) (echo t s))
	(set (repGen t (+ (lseq t) 1)) (ite offers (own t) 0))
	(set (repFresh t (+ (lseq t) 1)) fresh))

; manager.go: expire
(action expire ((t Int))
	(leads t) (rule has-authority (< now (auth t)))
	(not (= (own t) 0)) (rule waits-for-the-deadline (<= (hold t (grantee (own t))) now))
	(set (own t) 0))

; death.go: died; request.go: goodbye
(action end-by-proof ((t Int))
	(leads t) (rule has-authority (< now (auth t)))
	(not (= (own t) 0)) (rule proof-of-the-end (over (grantee (own t))))
	(set (own t) 0))

; manager.go: remove. A session without a lease is forgotten; h is the deadline if it returns.
(action forget ((t Int) (s Session) (h Real))
	(=> (not (= (own t) 0)) (not (= (grantee (own t)) s)))
	(set (echo t s) 0) (set (sent t s) 0) (set (member t s) false) (set (hold t s) h))

; handover.go: target; manager.go: detach. The target of a move that an earlier leader ordered becomes a member, because the
; source reports that it has the state; a contender becomes the incumbent.
(action adopt-target ((t Int) (s Session) (h Real))
	(leads t) (<= (hold t s) h)
	(rule target-counts-from-its-request (=> (not (= (echo t s) 0)) (<= (+ (lastReq t s) H) h)))
	(set (member t s) true) (set (hold t s) h))

; commit.go: commit. The key is granted, or goes to the target of a move.
(action decide ((t Int) (s Session))
	(leads t) (rule has-authority (< now (auth t)))
	(rule grants-what-is-free (= (own t) 0)) (not (pend t)) (member t s)
	(rule undecided-leader-waits (not doubt))
	(set (pend t) true) (set (pendTo t) s) (set (stored t) false))

; commit.go: record, applyGrant
(action record ((t Int))
	(pend t) (rule commit-before-reply (stored t))
	(set (pend t) false) (set (stored t) false)
	(set (own t) (ite (member t (pendTo t)) (pendGen t) 0)))

; ---- The store ----

(action commit ((t Int))
	(pend t) (not (stored t)) (rule store-checks-the-term (= t term))
	(set (stored t) true)
	(set (pendGen t) (+ newest 1))
	(set (live) (+ newest 1)) (set (newest) (+ newest 1)) (set (issued) (+ newest 1))
	(set (grantee (+ newest 1)) (pendTo t)))
(before commit previous-lease-is-over (forall ((s Session)) (not (valid s))))
(before commit new-generation (< issued (+ newest 1)))

(action commit-vacant ((t Int))
	(= t term) (= (own t) 0) (not (pend t))
	(set (live) 0))

; byrecord: renew
(action send-write ((t Int)) (leads t) (not (trying t))
	(set (trying t) true) (set (tried t) now) (set (written t) false))
(action store-write ((t Int)) (trying t) (not (written t)) (= t term) (<= beat (tried t))
	(set (written t) true) (set (beat) (tried t)))
(action written-reply ((t Int) (to Real)) (trying t) (written t)
	(rule authority-counts-from-sending (<= to (+ (tried t) W)))
	(set (trying t) false) (set (auth t) to))

; byrecord: vacant, won; manager.go: inherit. The standby received the record at seen, and sent its write at sentAt. The
; table is read after that.
(action take-over ((seen Real) (sentAt Real) (to Real) (h Real))
	(<= beat seen) (rule waits-for-the-record (<= (+ seen W) sentAt)) (<= sentAt now)
	(<= to (+ sentAt W))
	(rule inherited-leases-are-held (<= (+ now H) h))
	(set (term) (+ term 1)) (set (beat) sentAt) (set (start) now)
	(set (leads (+ term 1)) true) (set (auth (+ term 1)) to)
	(set (own (+ term 1)) live)
	(set (hold (+ term 1) (grantee live)) h)
	(set (member (+ term 1) (grantee live)) (not (= live 0))))

; A backup is restored: the table goes back. Its term has no leader.
(action restore ((old Int) (oldNewest Int))
	(<= (+ beat W) now)
	(<= 0 old) (<= old oldNewest) (<= oldNewest newest)
	(set (live) old) (set (newest) oldNewest) (set (doubt) (rule takeover-is-uncertain true))
	(set (lost) (ite (= cur old) 0 cur))
	(set (term) (+ term 1)) (set (start) now)
	(set (own (+ term 1)) old) (set (auth (+ term 1)) beat))

; restored.go: rebase. The gap is stored, and generations continue above it. That base is above all generations: it is a
; clock's number, or above what owners report.
(action store-gap ((t Int) (base Int))
	(= t term) (leads t) doubt
	(rule waits-for-lost-leases (<= (+ start H) now))
	(rule generations-continue-above (<= issued base))
	(<= newest base)
	(set (doubt) false) (set (lost) 0) (set (newest) base) (set (issued) base))

; ---- The model is not empty ----

(define someone-has ((g Int)) (not (forall ((s Session)) (not (and (valid s) (= (gen s) g))))))

; An owner gets a lease, and renews it.
(walk renewal (
	send-request accept send-reply receive-crossed send-request accept decide commit record send-reply receive
	advance send-request accept send-reply receive)
	(someone-has 1))

; It is suspended, and a new leader resumes it.
(walk resume (
	send-request accept send-reply receive-crossed send-request accept decide commit record send-reply receive
	advance take-over send-request accept send-reply receive)
	(and (someone-has 1) (= term 2)))

; The next leader has a request of the target, and learns of the move from the source.
(walk inherited-move (
	send-request accept send-reply receive-crossed send-request accept decide commit record send-reply receive
	advance take-over send-request accept send-request accept send-reply receive
	drop send-request accept adopt-target decide commit record send-reply receive)
	(and (someone-has 2) (= term 2)))

; A store is restored, the lease that it has lost expires, and its generation is not used again.
(walk lost-lease (
	send-request accept send-reply receive-crossed send-request accept decide commit record send-reply receive
	send-write store-write advance restore take-over advance send-write store-write written-reply store-gap
	send-request accept send-reply receive-crossed send-request accept decide commit record send-reply receive)
	(and (someone-has 2) (= term 3)))

; ---- Planted bugs ----

(mutant takeover-without-waiting waits-for-the-record true)
(mutant takeover-ignores-drift waits-for-the-record (<= (+ seen T) sentAt))
(mutant takeover-at-first-sight inherited-leases-are-held true)
(mutant promise-ignores-drift inherited-leases-are-held (<= (+ now D) h))
(mutant authority-from-receipt authority-counts-from-sending (<= to (+ now W)))
(mutant authority-ignored has-authority true)
(mutant store-accepts-old-terms store-checks-the-term true)
(mutant drift-ignored holds-for-the-lease (<= (+ now D) h))
(mutant renewal-does-not-hold holds-for-the-lease true)
(mutant validity-from-receipt counts-from-the-request (<= to (+ now H)))
(mutant old-term-accepted newer-term true)
(mutant owner-accepts-reordered in-order true)
(mutant owner-race-filter-off answers-the-newest-request true)
(mutant refused-claim-resumed resumes-suspended-claims true)
(mutant unknown-renewal-accepted keeps-what-it-has true)
(mutant hello-gives-back released-after-a-message true)
(mutant race-filter-off acknowledges-the-newest-message true)
(mutant expires-early waits-for-the-deadline true)
(mutant death-while-the-process-lives proof-of-the-end true)
(mutant inherited-target-on-short-notice target-counts-from-its-request true)
(mutant recall-not-waited-for grants-what-is-free true)
(mutant grant-before-commit commit-before-reply true)
(mutant old-store-believed takeover-is-uncertain false)
(mutant uncertain-leader-resumes-at-once undecided-leader-resumes-nothing true)
(mutant uncertain-leader-offers undecided-leader-grants-nothing true)
(mutant uncertain-leader-grants undecided-leader-waits true)
(mutant forgotten-leases-not-waited-for waits-for-lost-leases true)
(mutant forgotten-generations-given-again generations-continue-above true)
