package mutant

const (
	restoredFile = "internal/machine/manager/restored.go"
	restored     = "--faults=default,store-restore=8"
)

// restores are bugs that show when the store is restored from an old backup.
var restores = []Mutant{
	{
		Name:  "old-store-believed",
		Why:   "a leader that finds a record of long ago goes on as if nothing had been forgotten",
		World: restored,
		File:  electionFile,
		Old:   "m.doubtful || m.restored || m.copied() || !witnessed && !m.young(now)",
		New:   "m.doubtful || m.restored || m.copied() || false && witnessed",
	},
	{
		Name:  "copied-store-taken-for-original",
		Why:   "a leader goes on from the record of another cluster, and reuses numbers that were lost with it",
		World: restored,
		Seeds: 4000,
		File:  electionFile,
		Old:   "return differ(m.record.Store.Cluster, m.store.Cluster)",
		New:   "return false && differ(m.record.Store.Cluster, m.store.Cluster)",
	},
	{
		Name:  "young-backup-leads-in-a-lost-term",
		Why:   "an uncertain leader starts with the term after that of the record, which was led in a history that was lost",
		World: restored,
		Seeds: 8000,
		File:  electionFile,
		Old:   "Term: max(m.record.Term+leasehold.Term(missed), m.heardTerm) + 1",
		New:   "Term: max(m.record.Term+leasehold.Term(0*missed), m.heardTerm) + 1",
	},
	{
		Name:  "copied-directory-taken-for-original",
		Why:   "a manager takes its own record for young, although its data directory was replaced by a copy",
		World: restored,
		File:  electionFile,
		Old:   "|| m.woken || m.replaced() {",
		New:   "|| m.woken {",
	},
	{
		Name:  "evidence-ends-with-its-leader",
		Why:   "a leader that has found the record of another cluster is replaced, and its successor resumes leases whose ranges may have been another owner's",
		World: "--faults=store-restore=10,manager-crash=14,owner-pause=15,link-cut=10,owner-twin=4 --namespaces=1",
		Seeds: 20000,
		File:  electionFile,
		Old:   "LostBelow: m.record.LostBelow,",
		New:   "",
	},
	{
		Name:  "identity-is-no-evidence",
		Why:   "a leader that finds the record of another cluster resumes suspended leases, whose ranges may have been another owner's since",
		World: restored,
		Seeds: 20000,
		File:  restoredFile,
		Old:   "unfinished || !m.cfg.Volatile && uint64(m.table.LSN()) < m.cfg.LostBelow",
		New:   "unfinished",
	},
	{
		Name:  "floor-forgotten",
		Why:   "what a leader has noticed of a restored store ends with it",
		World: restored,
		File:  electionFile,
		Old:   "Floor: m.record.Floor, LostBelow",
		New:   "Floor: 0, LostBelow",
	},
	{
		Name:  "forgotten-leases-given-to-others",
		Why:   "a leader gives away what owners have by leases that the store has forgotten",
		World: restored,
		File:  restoredFile,
		Old:   "	if now < m.decideAt {\n		m.wakeAt(m.decideAt)\n		return false\n	}\n	complete",
		New:   "	complete",
	},
	{
		Name:  "old-table-taken-for-true",
		Why:   "lookups believe that what an old table says was so all along",
		World: restored,
		File:  restoredFile,
		Old:   "return p != nil && p.answered && e.Generation <= m.found.generation && slices",
		New:   "return true || slices",
	},
	{
		Name:  "old-table-told",
		Why:   "lookups are told that they have missed nothing, by a leader that knows nothing of what they missed",
		World: restored,
		File:  "internal/machine/manager/commit.go",
		Old:   "	if m.doubted() && r.LSN != 0 {\n		return // it will get the whole table\n	}\n",
		New:   "	if m.doubted() {\n		defer func(was uint64) { m.base = was }(m.base)\n		m.base = 0\n	}\n",
	},
}
