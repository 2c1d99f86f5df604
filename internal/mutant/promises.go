package mutant

// promises are bugs of how a namespace's leases are made longer or shorter.
var promises = []Mutant{
	{
		Name:  "promise-ignored",
		Why:   "a new leader waits only for leases as they are configured now, although owners were given longer ones",
		Seeds: 2000,
		World: "--faults=reconfigure=10,manager-resign=5,manager-crash=5,isolate=6,owner-pause=5",
		File:  managerFile,
		Old:   "until := now.Add(max(m.cfg.Timing.Hold(), m.cfg.Promised))",
		New:   "until := now.Add(m.cfg.Timing.Hold())",
	},
	{
		Name:  "promise-settled-at-once",
		Why:   "the promise to wait for longer leases is taken back while owners still have them",
		Seeds: 2000,
		World: "--faults=reconfigure=10,manager-resign=5,manager-crash=5,isolate=6,owner-pause=5",
		File:  leadFile,
		Old:   "		n.settleAt = now.Add(n.entry.Promised)\n",
		New:   "		n.settleAt = now\n",
	},
	{
		Name:  "promise-forgotten-by-the-next",
		Why:   "a namespace that is configured twice in a row forgets what owners were promised at first",
		Seeds: 5000,
		World: "--faults=reconfigure=20,manager-resign=10,owner-pause=10 --namespaces=1",
		File:  "internal/storage/catalog.go",
		Old:   "before := max(n.Drift.Stretch(n.Lease), n.Promised)",
		New:   "before := n.Drift.Stretch(n.Lease)",
	},
	{
		Name:  "longer-leases-not-waited-for",
		Why:   "a leader that renews for longer than before still waits for as long as when it accepted the request",
		Seeds: 2000,
		World: "--faults=reconfigure=20,owner-leave=6,owner-crash=6,owner-pause=5,isolate=6",
		File:  managerFile,
		Old:   "	if longer {\n",
		New:   "	if false && longer {\n",
	},
}
