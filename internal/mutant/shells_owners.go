package mutant

// shellsOfOwners are bugs of what is around the owner and lookup machines.
var shellsOfOwners = []Mutant{
	{
		Name: "owner-answers-before-publishing",
		Why:  "an owner acknowledges a recall while its checks still succeed",
		File: "owner/act.go",
		Old: `			failpoint.Here("owner/before-publishing")
			o.publish(a.View)
`,
		New:     "			defer func() { failpoint.Here(\"owner/before-publishing\"); o.publish(a.View) }()\n",
		Package: "./leaseholdtest",
		Test:    "TestEveryPoint/owner/before-publishing",
	},
	{
		Name: "check-ignores-time",
		Why:  "a check succeeds after the lease has run out, until the driver gets round to dropping it",
		File: "owner/owner.go",
		Old: `	now := o.clock.Now()
	if now >= h.until || o.detector.Epoch(now) != h.epoch {
		return nil, now
	}
`,
		New: `	now := o.clock.Now()
	if o.detector.Epoch(now) != h.epoch {
		return nil, now
	}
`,
		Package: "./owner",
		Test:    "TestChecksEndInTime",
	},
	{
		Name: "check-ignores-sleep",
		Why:  "a check succeeds after the computer has slept",
		File: "owner/owner.go",
		Old: `	now := o.clock.Now()
	if now >= h.until || o.detector.Epoch(now) != h.epoch {
		return nil, now
	}
`,
		New: `	now := o.clock.Now()
	if now >= h.until {
		return nil, now
	}
`,
		Package: "./owner",
		Test:    "TestWhatIsPublishedAfterASleepIsNotBelieved",
	},
	{
		Name:    "view-of-the-wrong-epoch",
		Why:     "what the machine decided before it heard of a sleep is published as if it knew",
		File:    "owner/act.go",
		Old:     "epoch: o.machine.Epoch(), areas",
		New:     "epoch: o.detector.Epoch(o.clock.Now()), areas",
		Package: "./owner",
		Test:    "TestWhatIsPublishedAfterASleepIsNotBelieved",
	},
	{
		Name:    "joined-too-early",
		Why:     "Join returns when a leader has spoken, although the owner has not accepted what it said",
		File:    "owner/session.go",
		Old:     "return s.seq != 0 && r.Term == s.term && r.Applied == s.seq && !r.Leaving",
		New:     "return s.seq != 0 && !r.Leaving",
		Package: "./owner",
		Test:    "TestJoinNeedsAnAnswerThatCounts",
	},
	{
		Name: "stop-does-not-wait",
		Why:  "an Export takes what it reads for final while the range is still served",
		File: "owner/migrate_out.go",
		Old: `	select {
	case <-e.departure.quiet:
		failpoint.Here("owner/stopped")
		e.stopped = true
		return nil
`,
		New: `	select {
	default:
		failpoint.Here("owner/stopped")
		e.stopped = true
		return nil
`,
		Package: "./owner",
		Test:    "TestStopReturnsBeyondThePointOfPublishing",
	},
	{
		Name: "imported-before-import",
		Why:  "a target counts as having the state before the application has it",
		File: "owner/migrate_in.go",
		Old:  "	put, err := m.take(a, in)\n",
		New: `	m.post(machine.Imported{Ticket: a.Ticket})
	put, err := m.take(a, in)
`,
		Package: "./owner",
		Test:    "TestFailedMovesCostNothing",
	},
	{
		Name: "installed-before-install",
		Why:  "a lease is acted on before its state is in its place",
		File: "owner/migrate_in.go",
		Old:  "	err := m.call(ctx, \"install\", a.Range, func() error {\n",
		New: `	tell(nil)
	err := m.call(ctx, "install", a.Range, func() error {
`,
		Package: "./owner",
		Test:    "TestAwaitWaitsUntilTheStateIsInItsPlace",
	},
	{
		Name:    "promise-outlives-lease",
		Why:     "somebody may rely on a lease for longer than it lasts",
		File:    "owner/promise.go",
		Old:     "return min(p.most, h.until.Sub(now)/2)",
		New:     "return p.most",
		Package: "./owner",
		Test:    "TestPromiseIsBounded",
	},
	{
		Name:    "promise-not-kept",
		Why:     "the leader hears that leases are free while somebody relies on them",
		File:    "owner/promise.go",
		Old:     "		if !o.sleepUntil(o.ctx, mono.Instant(o.promises.until.Load())) {\n",
		New:     "		if false {\n",
		Package: "./owner",
		Test:    "TestPromisesAreKept",
	},
	{
		Name:    "promise-ignores-drift",
		Why:     "somebody with a slow clock relies on a lease for too long",
		File:    "owner/promise.go",
		Old:     "return time.Duration(float64(d) / float64(f))",
		New:     "return d",
		Package: "./owner",
		Test:    "TestPromiseIsBounded",
	},
	{
		Name:    "losses-replace-losses",
		Why:     "losses that nobody has read yet are forgotten when more come",
		File:    "lookup/publish.go",
		Old:     "	o.losses = append(o.losses, losses...)\n",
		New:     "	o.losses = losses\n",
		Package: "./lookup",
		Test:    "TestNoReaderMissesALoss",
	},
	{
		Name: "question-not-passed-on",
		Why:  "a lookup asks one manager, and waits for it, whatever that one says",
		File: "lookup/ask.go",
		Old: `	a.pass()
	return true
`,
		New:     "	return true\n",
		Package: "./lookup",
		Test:    "TestOpenPassesOver",
	},
	{
		Name:    "lookup-clings-to-leader",
		Why:     "a lookup that the leader has answered never leaves it to owners",
		File:    "lookup/ask.go",
		Old:     "return others > 0 && (a.led || ",
		New:     "return others > 0 && !a.led && (",
		Package: "./lookup",
		Test:    "TestLeavesTheLeaderToOwners",
	},
	{
		Name:    "lookup-follows-who-spoke-last",
		Why:     "a lookup that has left the leader is back with it as soon as that tells it something",
		File:    "lookup/ask.go",
		Old:     "a.rest = slices.Insert(a.round(a.answerer), 0, a.answerer)",
		New:     "a.rest = slices.Insert(a.round(to), 0, to)",
		Package: "./lookup",
		Test:    "TestLeavesTheLeaderToOwners",
	},
	{
		Name:    "lookups-meet-again",
		Why:     "all lookups of a standby leave it for the same other one, and then for this, and never spread",
		File:    "lookup/ask.go",
		Old:     "(a.led || rand.IntN(others+1) > 0)",
		New:     "(a.led || others+rand.IntN(others+1) > 0)",
		Package: "./lookup",
		Test:    "TestLeavesTheLeaderToOwners",
	},
	{
		Name:    "dated-answer-is-enough",
		Why:     "a lookup that tries another manager is content with what that knew long ago",
		File:    "lookup/ask.go",
		Old:     "if dated && !a.dated && len(a.rest) > 0 {",
		New:     "if dated && a.dated && len(a.rest) > 0 {",
		Package: "./lookup",
		Test:    "TestStaysWithLeaderIfNobodyIsBetter",
	},
	{
		Name: "silent-for-ever",
		Why:  "a lookup never follows a hint to a manager that was once silent",
		File: "internal/machine/lookup/lookup.go",
		Old: `		m.silent, m.leader = m.leader, ""
`,
		New: `		if m.leader != "" {
			m.silent, m.leader = m.leader, ""
		}
`,
		Package: "./lookup",
		Test:    "TestLeaderThatIsNotListed",
	},
	{
		Name:    "agent-promises-more",
		Why:     "a program relies on what its agent said for longer than the agent does",
		File:    "internal/agent/answers.go",
		Old:     "return held, d.Milliseconds()",
		New:     "return held, d.Milliseconds() + 3000",
		Package: "./internal/agent",
		Test:    "TestLifeOfAProgram",
	},
	{
		Name:    "ghosts",
		Why:     "what an owner has said arrives long after it was killed, and keeps its keys from others",
		File:    "internal/link/dial.go",
		Old:     "_ = tcp.SetLinger(0)",
		New:     "_ = tcp",
		Package: "./internal/link",
		Test:    "TestNothingIsLeftBehind",
	},
	{
		Name:    "urgent-waits",
		Why:     "what a leader hears from its store waits behind all owners",
		File:    "internal/driver/driver.go",
		Old:     "return d.put(ctx, d.urgent, item[E]{event: event})",
		New:     "return d.put(ctx, d.inbox, item[E]{event: event})",
		Package: "./internal/driver",
		Test:    "TestUrgency",
	},
	{
		Name:    "patient-before-all",
		Why:     "owners that renew wait behind all lookups that ask",
		File:    "internal/driver/driver.go",
		Old:     "return d.put(ctx, d.patient, item[E]{take: take})",
		New:     "return d.put(ctx, d.inbox, item[E]{take: take})",
		Package: "./internal/driver",
		Test:    "TestPatientEvents",
	},
	{
		Name:    "patient-for-ever",
		Why:     "lookups are not answered as long as there is an owner to be answered",
		File:    "internal/driver/driver.go",
		Old:     "	if d.ahead < mostAhead {\n",
		New:     "	if true {\n",
		Package: "./internal/driver",
		Test:    "TestPatientEvents",
	},
	{
		Name:    "overtaking",
		Why:     "what an owner says overtakes what it has said before, or what the store says",
		File:    "internal/driver/driver.go",
		Old:     "if !d.running || d.waiting.Load() != 0 {",
		New:     "if !d.running {",
		Package: "./internal/driver",
		Test:    "TestTry",
	},
	{
		Name:    "alarm-put-off",
		Why:     "a machine that is to wake sooner than was thought sleeps on",
		File:    "internal/driver/driver.go",
		Old:     "	if d.armed && d.alarm <= wake {\n",
		New:     "	if d.armed {\n",
		Package: "./internal/driver",
		Test:    "TestAlarm",
	},
	{
		Name:    "beat-after",
		Why:     "owners renew on the beat after they should have, and lookups ask then",
		File:    "internal/mono/beats.go",
		Old:     "return not.Add(-past)",
		New:     "return not.Add(length - past)",
		Package: "./internal/mono",
		Test:    "TestBeats",
	},
	{
		Name:    "sleep-not-told",
		Why:     "a machine does not hear that the computer has slept",
		File:    "internal/driver/wake.go",
		Old:     "	if epoch == w.epoch {\n",
		New:     "	if true {\n",
		Package: "./internal/driver",
		Test:    "TestWokenHearsOfSleepFirst",
	},
	{
		Name: "link-sends-the-oldest",
		Why:  "a message that was never sent is preferred to the newest",
		File: "internal/link/peer.go",
		Old: `	select {
	case <-p.mailbox:
	default:
	}
	p.mailbox <- message
`,
		New: `	select {
	case p.mailbox <- message:
	default:
	}
`,
		Package: "./internal/link",
		Test:    "TestNewestMessageReplacesWaitingOnes",
	},
	{
		Name:    "mover-takes-any-order",
		Why:     "chunks of state may be missing",
		File:    "internal/mover/incoming.go",
		Old:     "if number != in.next || in.end {",
		New:     "if in.end {",
		Package: "./internal/mover",
		Test:    "TestHostileSource",
	},
	{
		Name: "mover-checks-no-sum",
		Why:  "state that is not what was sent is taken for it",
		File: "internal/mover/incoming.go",
		Old: `	if err := in.sum.check(e); err != nil {
		return err
	}
`,
		New:     "",
		Package: "./internal/mover",
		Test:    "TestChecksum",
	},
	{
		Name:    "mover-lets-anyone-in",
		Why:     "whoever comes with any ticket brings the state",
		File:    "internal/mover/server.go",
		Old:     "if subtle.ConstantTimeCompare(t[:], ticket) == 1 {",
		New:     "if subtle.ConstantTimeCompare(t[:], ticket) >= 0 {",
		Package: "./internal/mover",
		Test:    "TestStrangersAreTurnedAway",
	},
	{
		Name: "losses-of-one-lsn-joined",
		Why:  "losses of one LSN are reported as one span, with what lies between them and was not lost",
		File: "lookup/losslog.go",
		Old:  "	for i := range losses {\n",
		New: `	for i := len(losses) - 1; i > 0; i-- {
		if losses[i].LSN == losses[i-1].LSN {
			losses[i-1].Range.Limit = losses[i].Range.Limit
			losses = slices.Delete(losses, i, i+1)
		}
	}
	for i := range losses {
`,
		Package: "./manager",
		Test:    "TestDisklessLossesAreExact",
	},
	{
		Name:    "resume-between-losses-of-one-lsn",
		Why:     "a reader that stops between losses of one LSN resumes after all of them",
		File:    "lookup/losslog.go",
		Old:     "			loss.Resume--\n",
		New:     "",
		Package: "./lookup",
		Test:    "TestNoReaderMissesALoss",
	},
	{
		Name:    "contact-without-its-losses",
		Why:     "contact is restored before the losses are passed on that happened meanwhile",
		File:    "lookup/losses.go",
		Old:     "			case len(batch) > 0:\n",
		New:     "			case len(batch) > 0:\n				if now.Lost != last.Lost {\n					last = now\n					contact(now)\n				}\n",
		Package: "./lookup",
		Test:    "TestLosesContact",
	},
}
