package mutant

// shellsOfManagers are bugs of what is around the machines of managers, of their stores, and of Flease; and of machines
// where something happens that the simulator does not do: computers are copied, stores are restored.
var shellsOfManagers = []Mutant{
	{
		Name:    "unknown-write-taken-for-done",
		Why:     "a leader takes whatever it writes for stored",
		File:    "manager/storeio.go",
		Old:     "Event: machine.Committed{Outcome: outcome}}",
		New:     "Event: machine.Committed{Outcome: storage.Done + 0*outcome}}",
		Package: "./leaseholdtest",
		Test:    "TestEveryPoint/store/before-append",
	},
	{
		Name:    "leader-does-not-say-so",
		Why:     "lookups take a leader for a standby, and stay with it",
		File:    "internal/machine/manager/commit.go",
		Old:     "reply := &protocol.LookupReply{Namespace: m.cfg.Namespace, Leader: m.cfg.Self, Leads: true, Term: m.term}",
		New:     "reply := &protocol.LookupReply{Namespace: m.cfg.Namespace, Leader: m.cfg.Self, Term: m.term}",
		Package: "./manager",
		Test:    "TestLookupsFollowStandbys",
	},
	{
		Name: "said-before-stored",
		Why:  "grants are heard of before they are stored, and the next leader knows nothing of them",
		File: "manager/storeio.go",
		Old: `		failpoint.Here("manager/before-commit")
		outcome, err := s.m.tables.Append(ctx, b)
`,
		New: `		s.m.driver.PostUrgent(ctx, node.Manager{Namespace: ns, Term: term, Event: machine.Committed{Outcome: storage.Done}})
		failpoint.Here("manager/before-commit")
		outcome, err := s.m.tables.Append(ctx, b)
`,
		Package: "./leaseholdtest",
		Test:    "TestEveryPoint/manager/before-commit",
	},
	{
		Name:    "append-ignores-term",
		Why:     "a deposed leader goes on writing the table",
		File:    "store/internal/kv/append.go",
		Old:     "Guards:  []Guard{termGuard(a.batch.Term), h.guard(a.k)},",
		New:     "Guards:  []Guard{h.guard(a.k)},",
		Package: "./store/mem",
		Test:    "TestStore/AppendGuards",
	},
	{
		Name:    "append-ignores-head",
		Why:     "a batch is written on top of changes that it does not know",
		File:    "store/internal/kv/append.go",
		Old:     "Guards:  []Guard{termGuard(a.batch.Term), h.guard(a.k)},",
		New:     "Guards:  []Guard{termGuard(a.batch.Term)},",
		Package: "./store/internal/kv",
		Test:    "TestFaults",
	},
	{
		Name:    "swap-ignores-version",
		Why:     "a leader record is overwritten by who has not seen the newest",
		File:    "store/internal/kv/record.go",
		Old:     "Guards: []Guard{unchanged, termGuard(next.Term)}",
		New:     "Guards: []Guard{termGuard(next.Term)}",
		Package: "./store/mem",
		Test:    "TestStore/SwapGuards",
	},
	{
		Name: "stream-not-replaced",
		Why:  "an owner that has connected anew is spoken to on its old stream",
		File: "manager/owners.go",
		Old: `	if before := o.streams[speaker]; before != nil {
		close(before.replaced)
	}
	s.speaker = speaker
	o.streams[speaker] = s
`,
		New: `	s.speaker = speaker
	if o.streams[speaker] == nil {
		o.streams[speaker] = s
	}
`,
		Package: "./manager",
		Test:    "TestNewestStreamIsASessions",
	},
	{
		Name:    "old-message-kept",
		Why:     "an owner that reads slowly gets the older of two messages",
		File:    "manager/outbox.go",
		Old:     "	b.newest = message\n",
		New:     "	if b.newest == nil {\n		b.newest = message\n	}\n",
		Package: "./manager",
		Test:    "TestNewestMessageWaitsForAnOwner",
	},
	{
		Name:    "lookups-among-owners",
		Why:     "owners that renew wait behind lookups that ask",
		File:    "manager/lookups.go",
		Old:     "h.m.driver.PostPatient(h.m.ctx, next)",
		New:     "h.m.driver.Post(h.m.ctx, next())",
		Package: "./manager",
		Test:    "TestLookupsLeaveRoomForOwners",
	},
	{
		Name:    "every-question-answered",
		Why:     "a manager that is late answers all that lookups have asked meanwhile, and becomes later",
		File:    "manager/questions.go",
		Old:     "	first = q.newest == nil\n",
		New:     "	first = true\n",
		Package: "./manager",
		Test:    "TestNewestQuestion",
	},
	{
		Name:    "nobody-told-who-serves",
		Why:     "owners that have asked a leader too soon wait until they ask again",
		File:    "internal/machine/node/lead.go",
		Old:     "		m.emit(Serves{n.name(), m.term})\n",
		New:     "",
		Package: "./internal/machine/node",
		Test:    "TestNamespaceIsAdded",
	},
	{
		Name:    "two-send-to-an-owner",
		Why:     "the listener and the handler of an owner's stream send at a time",
		File:    "manager/outbox.go",
		Old:     "	b.newest, b.attended = nil, message != nil\n",
		New:     "	b.newest, b.attended = nil, false\n",
		Package: "./manager",
		Test:    "TestOutbox",
	},
	{
		Name:    "nobody-sends-what-came-meanwhile",
		Why:     "what comes while a lookup's listener sends an answer waits until something else comes",
		File:    "manager/mail.go",
		Old:     "	if m.waiting() {\n		m.wake()\n	}\n",
		New:     "",
		Package: "./manager",
		Test:    "TestAttend",
	},
	{
		Name:    "news-among-what-waits",
		Why:     "news overtakes what a lookup is being sent, or goes into the midst of it",
		File:    "manager/mail.go",
		Old:     "m.claimed || m.taking || m.closed || m.slow > 0 || m.waiting()",
		New:     "m.claimed || m.closed || m.slow > 0",
		Package: "./manager",
		Test:    "TestClaim",
	},
	{
		Name:    "deaf-lookup-holds-up-all",
		Why:     "news waits for a lookup that does not read",
		File:    "manager/telling.go",
		Old:     "if t.next.Load() < before+tellingPace && t.at.Load() == tellers {",
		New:     "if t.next.Load() < before {",
		Package: "./manager",
		Test:    "TestWavesPassTheSlow",
	},
	{
		Name: "slow-lookup-misses-the-newest",
		Why:  "a lookup that reads slowly is not told that something is missing",
		File: "manager/mail.go",
		Old: `	m.news = append(m.news, out)
	m.wake()
`,
		New: `	if len(m.news) == 0 {
		m.news = append(m.news, out)
	}
	m.wake()
`,
		Package: "./manager",
		Test:    "TestSlowLookup",
	},
	{
		Name:    "lease-valid-after-release",
		Why:     "a lease of Flease is valid while another gets it",
		File:    "flease/acquire.go",
		Old:     "			l.end(released)\n",
		New:     "			_ = l\n",
		Package: "./flease",
		Test:    "TestAcquireRenewRelease",
	},
	{
		Name:    "lease-ignores-wall-clock",
		Why:     "a lease of Flease is valid although the wall clock says that it is over",
		File:    "flease/lease.go",
		Old:     "now.Mono < until.Mono && now.Wall <= until.Wall && sleeps == l.sleeps",
		New:     "now.Mono < until.Mono && sleeps == l.sleeps",
		Package: "./flease",
		Test:    "TestValid",
	},
	{
		Name:    "lease-ignores-sleep",
		Why:     "a lease of Flease is valid after the computer has slept",
		File:    "flease/lease.go",
		Old:     "now.Mono < until.Mono && now.Wall <= until.Wall && sleeps == l.sleeps",
		New:     "now.Mono < until.Mono && now.Wall <= until.Wall && sleeps >= 0",
		Package: "./flease",
		Test:    "TestValid",
	},
	{
		Name:    "leads-after-lease",
		Why:     "a manager without a store counts its time from when it hears of its lease, not from when it asked for it",
		File:    "internal/diskless/tenure.go",
		Old:     "	until := g.cfg.Clock.Now().Add(lease.Remaining())\n",
		New:     "	until := g.cfg.Clock.Now().Add(g.cfg.Lease)\n",
		Package: "./internal/diskless",
		Test:    "TestTimeCountsFromBeforeThePointOfAppointment",
	},
	{
		Name:    "catalog-said-by-the-deposed",
		Why:     "a manager without a store whose lease is over says that namespaces were changed for good, which its successor may not know of",
		File:    "internal/diskless/council.go",
		Old:     "if w.Outcome == storage.Done && !c.g.leads(next.Term) {",
		New:     "if w.Outcome == storage.Done && false {",
		Package: "./internal/diskless",
		Test:    "TestWrittenBeforeThePointOfDismissal",
	},
	{
		Name:    "copies-renewed",
		Why:     "two processes with one session are renewed by turns, and both hold the same keys",
		File:    "internal/machine/manager/request.go",
		Old:     "	p.copied = p.copied || ahead\n",
		New:     "	p.copied = false\n",
		Package: "./internal/machine/manager",
		Test:    "TestCopiedOwner",
	},
	{
		Name:    "forgotten-generations-given-again",
		Why:     "a store that was restored from an old backup gives generations a second time",
		File:    "internal/machine/manager/request.go",
		Old:     "max(m.cfg.After, g+forgettable)",
		New:     "max(m.cfg.After, 0*g)",
		Package: "./internal/machine/manager",
		Test:    "TestForgottenGenerations",
	},
	{
		Name:    "forgetful-store-believed",
		Why:     "after a store was restored from an old backup, owners listen to nobody",
		File:    "internal/machine/election/election.go",
		Old:     "	case m.leading && m.forgotten(now, try):\n",
		New:     "	case m.leading && m.forgotten(now, try) && false:\n",
		Package: "./manager",
		Test:    "TestRestoredStore",
	},
	{
		Name:    "packets-repeated",
		Why:     "a packet that was recorded is heard again",
		File:    "internal/fleasenet/window.go",
		Old:     "	return w.had[n/64%windowWords]&(1<<(n%64)) == 0\n",
		New:     "	return true\n",
		Package: "./internal/fleasenet",
		Test:    "TestReplays",
	},
}
