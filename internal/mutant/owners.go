package mutant

const (
	ownerFile   = "internal/machine/owner/owner.go"
	replyFile   = "internal/machine/owner/reply.go"
	suspendFile = "internal/machine/owner/suspend.go"
)

// owners are bugs of the owner machine, and of what it shares with the leader.
var owners = []Mutant{
	{
		Name:  "validity-from-receipt",
		Why:   "a lease counts from when the reply arrives, not from when the request was sent, and so outlives the leader's patience",
		World: "--faults=delay=5,owner-pause=5,owner-crash=2,isolate=5",
		File:  replyFile,
		Old:   "until := m.sentAt.Add(r.Timing.Lease)",
		New:   "until := now.Add(r.Timing.Lease)",
	},
	{
		Name:  "expiry-not-noticed",
		Why:   "the owner does not suspend leases whose time is over: it claims them as valid, and the leader of a restored store renews them",
		World: restored,
		Seeds: 2000,
		File:  suspendFile,
		Old:   "case len(m.held) == 0 || now < m.view.Until:",
		New:   "case true:",
	},
	{
		Name:  "old-term-accepted",
		Why:   "an owner that has heard a new leader still believes the old one",
		Seeds: 5000,
		World: "--faults=manager-resign=10,duplicate=20,loss=5",
		File:  replyFile,
		Old:   "if r.Term < m.term {",
		New:   "if false {",
	},
	{
		Name: "owner-race-filter-off",
		Why:  "an owner acts on a reply that crossed its own message",
		File: replyFile,
		Old:  "if r.Echo != m.seq {",
		New:  "if r.Echo > m.seq {",
	},
	{
		Name: "owner-accepts-reordered",
		Why:  "an owner acts on a message of the leader that is older than one it has heard",
		File: replyFile,
		Old:  "if r.Seq <= m.heard {",
		New:  "if false {",
	},
	{
		Name: "unknown-renewal-accepted",
		Why:  "an owner takes a renewal of a lease that it does not hold for a grant, although it has lost the state",
		File: replyFile,
		Old: `		case !o.Fresh:
			m.note(NoteRefused, uint64(o.Generation), 0)
			refused = true
		case o.Generation <= m.newest && o.Ticket.IsZero():`,
		New: `		case o.Fresh && o.Generation <= m.newest && o.Ticket.IsZero():`,
	},
	{
		Name: "recall-acknowledged-before-the-drop",
		Why:  "the owner says that it has given a lease back while its checks still succeed",
		File: replyFile,
		Old:  "	m.publish(next, until)",
		New:  "	m.view = &View{Leases: next, Until: until}",
	},
	{
		Name: "sleep-ignored",
		Why:  "an owner whose clock stood still keeps its leases",
		File: ownerFile,
		Old: `	m.dropAll(leasehold.CauseExpired)
	m.loseContact()
	m.rate = rateGuard{}`,
		New: `	m.rate = rateGuard{}`,
	},
	{
		Name: "sleep-keeps-request",
		Why:  "an owner whose clock stood still believes the answer to what it sent before",
		File: ownerFile,
		Old: `	m.nextSend = now
	m.awaiting = false
}

func (m *Machine) predecessorGone`,
		New: `}

func (m *Machine) predecessorGone`,
	},
	{
		Name:  "owner-takes-foreign-namespace",
		Why:   "an owner acts on a reply for another namespace of its process",
		World: "--faults=misroute=5,owner-crash=2 --namespaces=2",
		File:  replyFile,
		Old:   "if r.Namespace != m.cfg.Namespace || r.Session != m.cfg.Holder.Session {",
		New:   "if r.Session != m.cfg.Holder.Session {",
	},
	{
		Name:  "owner-takes-foreign-session",
		Why:   "a restarted owner acts on what was meant for its predecessor",
		World: "--faults=owner-crash=5,delay=5,duplicate=5",
		File:  replyFile,
		Old:   "if r.Namespace != m.cfg.Namespace || r.Session != m.cfg.Holder.Session {",
		New:   "if r.Namespace != m.cfg.Namespace {",
	},
	{
		Name:  "race-number-forgotten",
		Why:   "an owner does not remember the number of a message that it dropped, and so never reflects it",
		Seeds: 6000,
		World: "--faults=loss=5,delay=5,link-one-way=5",
		File:  replyFile,
		Old:   "	m.heard = r.Seq\n",
		New:   "	if r.Echo == m.seq {\n		m.heard = r.Seq\n	}\n",
	},
	{
		Name: "slow-clock-keeps-leases",
		Why:  "an owner that has found its clock too slow goes on holding leases",
		File: "internal/machine/owner/rate.go",
		Old:  "	m.dropAll(leasehold.CauseExpired)\n	m.loseContact()",
		New:  "	_ = leasehold.CauseExpired\n	m.loseContact()",
	},
	{
		Name:  "slow-clock-takes-leases",
		Why:   "an owner that has found its clock too slow takes new leases at once",
		World: "--faults=clock-beyond=3,owner-leave=5,owner-crash=5,delay=3",
		File:  replyFile,
		Old:   "m.Quarantined(now) || m.muted() || !m.relevant",
		New:   "!m.relevant",
	},
	{
		Name: "drift-ignored",
		Why:  "the leader waits only as long as the lease lasts on its own clock",
		File: "internal/protocol/timing.go",
		Old:  "func (t Timing) Hold() time.Duration { return t.Drift.Stretch(t.Lease) }",
		New:  "func (t Timing) Hold() time.Duration { return t.Lease }",
	},
	{
		Name:  "promise-broken",
		Why:   "an owner says that it no longer has a lease while somebody relies on what it was told",
		World: "--agents",
		File:  ownerFile,
		Old:   "	if !m.muted() {",
		New:   "	if true {",
	},
	{
		Name:  "older-promise-counts",
		Why:   "an owner that waits for two promises speaks when the first is over",
		World: "--agents",
		File:  ownerFile,
		Old:   "m.settled = max(m.settled, min(e.Number, m.settling))",
		New:   "m.settled = m.settling",
	},
	{
		Name:  "muted-owner-listens",
		Why:   "an owner that holds a message back believes an answer from before a sleep",
		World: "--agents",
		File:  replyFile,
		Old:   "m.Quarantined(now) || m.muted() || !m.relevant(now, r)",
		New:   "m.Quarantined(now) || !m.relevant(now, r)",
	},
}
