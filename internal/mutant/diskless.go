package mutant

const (
	censusFile   = "internal/machine/manager/census.go"
	findingsFile = "internal/machine/manager/findings.go"
	councilFile  = "internal/machine/council/lead.go"
	numbersFile  = "internal/storage/unknown.go"
	entryFile    = "internal/table/table.go"
	backingFile  = "internal/machine/owner/backing.go"
)

// diskless are bugs of managers that have no store.
var diskless = []Mutant{
	{
		Name:  "census-cut-short",
		Why:   "a new leader grants what nobody has reported while its owner may still believe in it",
		World: "--diskless",
		File:  censusFile,
		Old:   "end: now.Add(max(cfg.Timing.Hold(), cfg.Promised)),",
		New:   "end: now.Add(cfg.Timing.Lease/2),",
	},
	{
		Name:  "nothing-is-asked-for",
		Why:   "a new leader takes namespaces for new that it has found",
		World: "--diskless",
		File:  leadFile,
		Old:   "	fresh := m.catalog != nil // what is new in it",
		New:   "	fresh := true",
	},
	{
		Name:  "census-ignores-drift",
		Why:   "a new leader waits for as long as leases last on its own clock, which may be a fast one",
		World: "--diskless --faults=manager-resign=10,owner-pause=15 --owners=8 --namespaces=1",
		Seeds: 5000,
		File:  censusFile,
		Old:   "end: now.Add(max(cfg.Timing.Hold(), cfg.Promised)),",
		New:   "end: now.Add(max(cfg.Timing.Lease, cfg.Promised)),",
	},
	{
		Name:  "census-ignores-promise",
		Why:   "a new leader waits only for leases as they are configured now, although owners were given longer ones",
		World: "--diskless --faults=reconfigure=12,manager-crash=5,manager-resign=5,isolate=6,owner-pause=6",
		Seeds: 4000,
		File:  censusFile,
		Old:   "end: now.Add(max(cfg.Timing.Hold(), cfg.Promised)),",
		New:   "end: now.Add(cfg.Timing.Hold()),",
	},
	{
		Name:  "census-believes-old-messages",
		Why:   "what an owner said before it heard the leader is taken for what it has",
		World: "--diskless --faults=duplicate=10,delay=10,manager-resign=10,owner-leave=10",
		Seeds: 4000,
		File:  censusFile,
		Old:   "w.exact = r.Term == c.term || r.Leaving",
		New:   "w.exact = true",
	},
	{
		Name:  "census-of-the-deposed",
		Why:   "a manager that may no longer lead ends its census, and begins a log",
		World: "--diskless",
		File:  censusFile,
		Old:   "	case now < c.authority:\n		c.over",
		New:   "	default:\n		c.over",
	},
	{
		Name:  "census-forgets-what-it-renewed",
		Why:   "what was renewed late in a census counts as over when the census would have been",
		World: "--diskless --faults=manager-crash=8,isolate=8,link-one-way=8,link-cut=8",
		File:  findingsFile,
		Old:   "return max(c.end, c.witnesses[s].until)",
		New:   "return c.end",
	},
	{
		Name:  "hearsay-counts-as-kept",
		Why:   "lookups are told that nothing was lost where an owner has only said so before it heard the leader",
		Seeds: 5000,
		World: "--diskless --faults=duplicate=10,delay=10,manager-resign=10,owner-leave=10",
		File:  findingsFile,
		Old:   "		if cl.exact {\n			e.Adopted",
		New:   "		if true {\n			e.Adopted",
	},
	{
		Name:  "moves-without-backing",
		Why:   "a range is given to where its state was sent, although a leader had given up on that long ago",
		World: "--diskless --faults=isolate=10,move-range=20,drain=6,manager-crash=6,owner-crash=4 --owners=4 --namespaces=1",
		Seeds: 5000,
		File:  backingFile,
		Old:   "	if now < b.until {\n		return b.term\n	}\n	return 0\n",
		New:   "	return max(b.term, 1)\n",
	},
	{
		Name:  "generations-start-anew",
		Why:   "a leader that remembers nothing numbers its grants from the start",
		World: "--diskless",
		File:  numbersFile,
		Old:   "leasehold.Generation(t) * perTerm",
		New:   "leasehold.Generation(0 * perTerm)",
	},
	{
		Name:  "log-starts-anew",
		Why:   "a leader that remembers nothing numbers its changes from the start, and lookups take them for old",
		World: "--diskless",
		File:  numbersFile,
		Old:   "return leasehold.LSN(t) * perTerm,",
		New:   "return leasehold.LSN(perTerm),",
	},
	{
		Name:  "lookup-trusts-adoption",
		Why:   "a lookup takes a range that someone holds for one that was held all along, whoever it knew there",
		World: "--diskless",
		File:  entryFile,
		Old:   "(e.Adopted == 0 || e.Adopted != before.Generation)",
		New:   "e.Adopted == 0",
	},
	{
		Name:  "catalog-of-a-minority",
		Why:   "a new leader leads by what the first that answers remembers",
		World: "--diskless --faults=manager-crash=6,isolate=8,link-cut=8,reconfigure=12",
		File:  councilFile,
		Old:   "	if !m.majority(informed) {\n",
		New:   "	if informed == 0 {\n",
	},
	{
		Name:  "blank-counts",
		Why:   "managers that were restarted count among those who know the catalog",
		World: "--diskless --faults=manager-crash=12,isolate=8,link-cut=8,reconfigure=12",
		File:  councilFile,
		Old:   "		if c == nil {\n			continue\n		}\n		informed++\n",
		New:   "		informed++\n		if c == nil {\n			continue\n		}\n",
	},
	{
		Name:  "blank-takes-old-catalog",
		Why:   "a manager that was restarted takes the catalog of a leader whose time is over, and counts among those who know",
		World: "--diskless --managers=3 --faults=manager-relapse=5,reconfigure=10,delay=2",
		File:  "internal/machine/council/council.go",
		Old:   "		meant := m.have != nil || r.To == m.cfg.Process\n",
		New:   "		meant := true\n",
	},
	{
		Name:  "forgotten-leases-not-waited-for",
		Why:   "a group that has forgotten its catalog leads on while owners have leases that were longer",
		World: "--diskless --faults=manager-crash=10,owner-pause=15 --managers=1 --owners=8 --namespaces=1",
		Seeds: 5000,
		File:  councilFile,
		Old:   "l.waitUntil = now.Add(m.cfg.Longest)",
		New:   "l.waitUntil = now",
	},
	{
		Name:  "catalog-said-too-early",
		Why:   "an operator is told that a change is there to stay when only the leader has it",
		World: "--diskless --faults=isolate=10,reconfigure=20 --owners=1",
		File:  councilFile,
		Old:   "l.done = l.done || m.majority(kept)",
		New:   "l.done = l.done || kept > 0",
	},
}
