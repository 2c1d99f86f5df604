package mutant

const (
	electionFile = "internal/machine/election/election.go"
	limpingFile  = "internal/machine/election/limping.go"
)

// elections are bugs of the election.
var elections = []Mutant{
	{
		Name: "takeover-ignores-drift",
		Why:  "a standby waits for the leader's time on its own clock only",
		File: electionFile,
		Old:  "	wait := m.wait()\n	if",
		New:  "	wait := m.cfg.TTL\n	if",
	},
	{
		Name: "authority-from-receipt",
		Why:  "a leader counts its time from when the store's answer arrives",
		File: electionFile,
		Old:  "m.until = try.sent.Add(m.cfg.TTL)",
		New:  "m.until = now.Add(m.cfg.TTL)",
	},
	{
		Name: "term-not-raised",
		Why:  "a new leader has the term of the old one",
		File: electionFile,
		Old:  "Term: max(m.record.Term+leasehold.Term(missed), m.heardTerm) + 1,",
		New:  "Term: max(m.record.Term+leasehold.Term(missed), m.heardTerm, 1),",
	},
	{
		Name: "resigned-leader-goes-on",
		Why:  "a leader that has resigned still acts",
		File: electionFile,
		Old:  "		m.leading = false\n		m.emit(StepDown{})\n",
		New:  "",
	},
	{
		Name: "unknown-swap-taken-for-won",
		Why:  "a manager that does not know whether it was elected acts as if it was",
		File: electionFile,
		Old:  "if e.Outcome == storage.Done {",
		New:  "if e.Outcome != storage.Conflict {",
	},
	{
		Name: "lost-swap-taken-for-won",
		Why:  "a manager that was beaten acts as leader",
		File: electionFile,
		Old:  "	default:\n		m.beaten(now, r)\n",
		New:  "	default:\n		m.won(now, r.Version)\n",
	},
	{
		Name:  "term-led-twice",
		Why:   "a leader that stepped down goes on in the same term, and numbers its messages anew",
		World: "--faults=manager-suspend=8,store-slow=4",
		File:  electionFile,
		Old:   "	case rec.Term == m.led && !m.leading:\n",
		New:   "	case false:\n",
	},
	{
		Name:  "leader-ignores-sleep",
		Why:   "a leader whose clock stood still acts on, although another has long taken over",
		World: "--faults=manager-suspend=8",
		File:  electionFile,
		Old:   "	if m.leading {\n		m.stepDown(m.record.Term)\n	}\n",
		New:   "",
	},
	{
		Name:  "swap-from-before-sleep",
		Why:   "a manager whose clock stood still counts its authority from a swap that it sent before",
		World: "--faults=manager-suspend=5,store-slow=5",
		File:  electionFile,
		Old:   "		m.try.sent = now.Add(-m.cfg.TTL)\n",
		New:   "		_ = m.try\n",
	},
	{
		Name:  "predecessor-taken-for-self",
		Why:   "a manager that was started again takes what its predecessor wrote for what it has just written",
		Seeds: 4000,
		World: "--faults=manager-crash=5,store-stale=5",
		File:  electionFile,
		Old:   "	ours.Version = 0\n",
		New:   "	ours.Version, ours.Session, ours.At = 0, a.rec.Session, a.rec.At\n",
	},
	{
		Name: "every-look-counts-as-first",
		Why:  "a standby starts to count again each time it looks, and so never takes over",
		File: electionFile,
		Old:  "if m.try != nil || (m.known && r.Version == m.record.Version) {",
		New:  "if m.try != nil {",
	},
	{
		Name: "takeover-at-first-sight",
		Why:  "a standby does not wait for the record to stand still",
		File: electionFile,
		Old:  "if now < m.seenAt.Add(wait) {",
		New:  "if now < m.seenAt {",
	},
	{
		Name:  "own-record-seen-in-vain",
		Why:   "a leader whose store is slow to answer has no authority, although a watch has shown its renewal",
		World: "--faults=store-lag=5",
		File:  electionFile,
		Old:   "try != nil && (try.doubt || try.wrote(r)) {",
		New:   "try != nil && try.doubt {",
	},
	{
		Name:  "late-answer-counts-for-the-next-swap",
		Why:   "a leader takes the answer to an earlier renewal, which a watch had shown already, for that to the one under way",
		Seeds: 4000,
		World: "--faults=store-slow=8,store-cut=4,manager-pause=2",
		File:  electionFile,
		Old:   " || e.Swap != (Swap{m.try.prev, m.try.rec}) {",
		New:   " {",
	},
	{
		Name:  "limping-leader-stays",
		Why:   "a leader whose renewals always arrive too late keeps those from leading that could",
		World: "--faults=store-lag=5",
		Seeds: 3000,
		File:  limpingFile,
		Old:   "	return l.spent >= tooSpent || l.late >= tooLate && !m.rests(now)\n",
		New:   "	return false\n",
	},
	{
		Name:  "limping-leader-comes-back-at-once",
		Why:   "a leader that has resigned because its renewals arrive too late leaves no other the time to take over",
		World: "--faults=store-lag=5",
		File:  limpingFile,
		Old:   "	if !m.record.Resigned || m.record.Session != m.cfg.Session {\n",
		New:   "	if true {\n",
	},
}
