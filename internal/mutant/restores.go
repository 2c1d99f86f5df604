package mutant

const (
	forgottenFile = "internal/machine/manager/forgotten.go"
	restored      = "--faults=default,store-restore=8"
)

// restores are bugs that show when the store is restored from an old backup.
var restores = []Mutant{
	{
		Name:  "old-store-believed",
		Why:   "a leader that finds a record of long ago goes on as if nothing had been forgotten",
		World: restored,
		File:  electionFile,
		Old:   "wall-at <= most || wall-at > farthest {",
		New:   "wall-at <= most || wall-at > 0 {",
	},
	{
		Name:  "floor-forgotten",
		Why:   "what a leader has noticed of a restored store ends with it",
		World: restored,
		File:  electionFile,
		Old:   "At: m.clock(now), Floor: m.record.Floor,",
		New:   "At: m.clock(now), Floor: 0,",
	},
	{
		Name:  "forgotten-leases-given-to-others",
		Why:   "a leader gives away what owners have by leases that the store has forgotten",
		World: restored,
		File:  forgottenFile,
		Old:   "	if now < m.inheritUntil && !m.unmarked {\n		m.wakeAt(m.inheritUntil)\n		return\n	}\n	base",
		New:   "	base",
	},
	{
		Name:  "old-table-taken-for-true",
		Why:   "lookups believe that what an old table says was so all along",
		World: restored,
		File:  forgottenFile,
		Old:   "return p != nil && p.settled && e.Generation <= m.found.generation && slices",
		New:   "return true || slices",
	},
	{
		Name:  "old-table-told",
		Why:   "lookups are told that they have missed nothing, by a leader that knows nothing of what they missed",
		World: restored,
		File:  "internal/machine/manager/commit.go",
		Old:   "	if m.remindedBy(now, r); m.doubted() && r.LSN != 0 {\n		return // much may have been forgotten: it will get the whole table\n	}\n",
		New:   "	if m.remindedBy(now, r); m.doubted() {\n		defer func(was uint64) { m.renumber = was }(m.renumber)\n		m.renumber = 0\n	}\n",
	},
}
