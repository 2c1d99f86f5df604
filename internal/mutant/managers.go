package mutant

const (
	managerFile = "internal/machine/manager/manager.go"
	requestFile = "internal/machine/manager/request.go"
	planFile    = "internal/machine/manager/plan.go"
	commitFile  = "internal/machine/manager/commit.go"
	tableFile   = "internal/table/table.go"
	logFile     = "internal/changelog/changelog.go"
	leadFile    = "internal/machine/node/lead.go"
)

// managers are bugs of the leader, of the table, and of the process around it.
var managers = []Mutant{
	{
		Name:  "hello-gives-back",
		Why:   "a new leader believes that an owner lacks a lease before the owner has stopped listening to the old leader",
		Seeds: 5000,
		World: "--faults=delay=15,manager-resign=15,owner-leave=10,duplicate=5 --managers=3 --namespaces=1 --owners=6",
		File:  requestFile,
		Old: `		// It has not heard us. What it lacks, a message of our predecessor that
		// is still under way may yet give it.
		return`,
		New: `		m.settle(now, p, r)
		return`,
	},
	{
		Name: "no-new-generation",
		Why:  "a grant reuses the generation of the one before",
		File: planFile,
		Old:  "		granted++\n",
		New:  "",
	},
	{
		Name: "generations-counted-from-the-table",
		Why:  "a leader numbers grants after the ranges in the table, and so reuses numbers",
		File: planFile,
		Old:  "return m.newest() + leasehold.Generation(grants) + 1",
		New:  "return leasehold.Generation(m.table.Len()) + leasehold.Generation(grants) + 1",
	},
	{
		Name: "seams-never-mended",
		Why:  "leases of different generations pile up side by side, and the table with them",
		File: "internal/machine/manager/compact.go",
		Old:  "	if !m.crowded() || now < m.mendAt {\n",
		New:  "	if m.crowded() || true {\n",
	},
	{
		Name:  "stolen-session",
		Why:   "whoever knows the session of an owner can say goodbye for it",
		World: "--faults=hostile=20",
		File:  requestFile,
		Old:   "	case m.anothers(r.Holder):\n",
		New:   "	case false:\n",
	},
	{
		Name: "takeover-without-waiting",
		Why:  "a new leader gives away what the old one's owners still hold",
		File: managerFile,
		Old:  "until := now.Add(max(m.cfg.Timing.Hold(), m.cfg.Promised))",
		New:  "until := now",
	},
	{
		Name: "grant-before-commit",
		Why:  "an owner hears of a grant that is not stored",
		File: planFile,
		Old:  "		m.commit(now, &storage.Batch{Namespace: m.cfg.Namespace, Term: m.term, Prev: m.table.LSN(), Changes: changes})\n",
		New: `		m.commit(now, &storage.Batch{Namespace: m.cfg.Namespace, Term: m.term, Prev: m.table.LSN(), Changes: changes})
		for i := range changes {
			m.hand(&changes[i])
		}
`,
	},
	{
		Name: "authority-ignored",
		Why:  "a leader goes on renewing after its time, while another one takes over",
		File: managerFile,
		Old:  "func (m *Machine) leads(now mono.Instant) bool { return now < m.authority }",
		New:  "func (m *Machine) leads(now mono.Instant) bool { return true }",
	},
	{
		Name: "recall-not-waited-for",
		Why:  "a recalled range is granted to the next owner before it has come back",
		File: planFile,
		Old:  "if first, fresh := p.fresh[l.Generation]; fresh && first == 0 && !moved {\n		m.note(NoteWithdrawn",
		New:  "if !moved {\n		m.touch(p)\n		m.note(NoteWithdrawn",
	},
	{
		Name: "released-lease-offered-again",
		Why:  "the leader still counts a lease that came back as its former holder's",
		File: requestFile,
		Old:  "	p.drop(leasesOf(given))\n	m.pruneMoves(p)\n",
		New:  "",
	},
	{
		Name: "renewal-does-not-hold",
		Why:  "the leader renews a lease and forgets to wait for it",
		File: requestFile,
		Old:  "	if p.proven && !waits {\n",
		New:  "	if p.proven && waits {\n",
	},
	{
		Name: "same-name-not-waited-out",
		Why:  "a newcomer takes over the leases of a live owner with its name",
		File: requestFile,
		Old:  "	p.seat.contender = p\n",
		New:  "	p.seat.contender = p\n	m.remove(p.seat.incumbent, leasehold.CauseRestarted)\n",
	},
	{
		Name: "any-predecessor-will-do",
		Why:  "the proof that some process is gone is taken for the proof that the incumbent is",
		File: requestFile,
		Old:  "!r.Gone.IsZero() && r.Gone == s.incumbent.holder.Session {",
		New:  "!r.Gone.IsZero() {",
	},
	{
		Name: "expired-leases-kept",
		Why:  "what a dead owner held is never granted again",
		File: managerFile,
		Old:  "		m.free(freed{Lease: l, holder: p.holder, cause: cause})\n	}\n	p.setLeases(nil)",
		New:  "		_ = l\n	}\n	p.setLeases(nil)",
	},
	{
		Name: "unknown-commit-taken-for-done",
		Why:  "a batch whose outcome is unknown counts as stored",
		File: commitFile,
		Old:  "if o == storage.Done {",
		New:  "if o != storage.Conflict {",
	},
	{
		Name: "unknown-commit-taken-for-failed",
		Why:  "a batch whose outcome is unknown is forgotten, although it may be stored",
		File: commitFile,
		Old:  "	m.doubt = true\n	if m.fails++; m.fails == 1 {\n",
		New:  "	m.batch, m.rescan = nil, true\n	if m.fails++; m.fails == 1 {\n		return\n	}\n	if m.batch == nil {\n		return\n",
	},
	{
		Name:  "orphaned-grant-forgotten",
		Why:   "a range granted to an owner that died meanwhile belongs to nobody for ever",
		World: "--faults=store-slow=5,owner-crash=5,owner-leave=5",
		File:  commitFile,
		Old:   "		m.free(freed{Lease: l, holder: c.Holder, cause: leasehold.CauseExpired})\n",
		New:   "",
	},
	{
		Name: "stale-snapshot-served",
		Why:  "lookups get a copy of the table from before the last change",
		File: commitFile,
		Old:  "	m.table, m.batchTable, m.snapshot = m.batchTable, nil, nil\n",
		New:  "	m.table, m.batchTable = m.batchTable, nil\n",
	},
	{
		Name: "log-skips-a-change",
		Why:  "a lookup that is behind misses the first change",
		File: logFile,
		Old:  "tail := l.changes[lsn-l.base:]",
		New:  "tail := l.changes[min(lsn-l.base+1, leasehold.LSN(len(l.changes))):]",
	},
	{
		Name: "log-never-truncated",
		Why:  "the changes kept for lookups grow without bound",
		File: logFile,
		Old:  "for len(l.batches) > 0 && (len(l.changes) > l.most || now.Sub(l.batches[0].at) > l.age) {",
		New:  "for false {",
	},
	{
		Name:  "answers-lookups-without-authority",
		Why:   "a deposed leader tells lookups that they are up to date",
		Seeds: 4000,
		World: "--faults=store-cut=5,link-cut=3,owner-leave=5",
		File:  commitFile,
		Old:   "	case !m.leads(now):",
		New:   "	case false:",
	},
	{
		Name:  "age-of-doubt-hidden",
		Why:   "a leader that does not know whether its commit has happened tells lookups that they know everything",
		World: "--faults=store-slow=6,store-unknown=6,owner-leave=6,manager-crash=2",
		File:  commitFile,
		Old:   "		reply.Age = m.cfg.Timing.Drift.Stretch(now.Sub(m.sentAt))\n",
		New:   "",
	},
	{
		Name: "loss-not-marked",
		Why:  "the table does not say when state was lost, so that a snapshot hides it",
		File: tableFile,
		Old:  "		next.Lost = c.LSN\n",
		New:  "",
	},
	{
		Name: "grant-hides-the-loss",
		Why:  "a new grant wipes out the mark of the loss before it",
		File: tableFile,
		Old:  "			next.Lost = max(next.Lost, e.Lost)\n",
		New:  "",
	},
	{
		Name: "authority-never-extended",
		Why:  "the namespaces do not hear that their leader goes on leading",
		File: leadFile,
		Old:  "					m.manage(now, n, manager.Authority{Until: a.Until})\n",
		New:  "",
	},
	{
		Name:  "broken-policy-not-asked-again",
		Why:   "after the policy has failed once, nobody gets anything until the members change",
		World: "--faults=policy-broken=5,owner-crash=5",
		File:  planFile,
		Old:   "		m.replan = true\n		m.replanAt",
		New:   "		m.replanAt",
	},
	{
		Name:  "policy-not-validated",
		Why:   "an assignment to someone who does not exist is followed",
		World: "--faults=policy-broken=5,owner-crash=5",
		File:  planFile,
		Old:   "want, err := partition.Apply(m.cfg.Policy, in)\n	if err != nil {",
		New:   "want, err := m.cfg.Policy.Assign(in)\n	if err != nil {",
	},
	{
		Name:  "successor-on-short-notice",
		Why:   "a session that waited for its name gets leases, and is taken for dead after the patience that one has with those who wait",
		World: "--faults=owner-twin=10,owner-leave=6,isolate=10 --namespaces=1",
		File:  managerFile,
		Old:   "	s.incumbent.until = max(s.incumbent.until, s.incumbent.heard.Add(m.patience(s.incumbent)))\n",
		New:   "",
	},
}
