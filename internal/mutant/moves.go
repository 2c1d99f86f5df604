package mutant

const (
	departuresFile = "internal/machine/owner/departures.go"
	arrivalsFile   = "internal/machine/owner/arrivals.go"
	handoverFile   = "internal/machine/manager/handover.go"
)

// moves are bugs in how state follows its lease.
var moves = []Mutant{
	{
		Name: "failed-move-said-done",
		Why:  "a source that has heard nothing from the target lets go of the range as if it had been confirmed",
		File: departuresFile,
		Old: `	d.state, d.said = protocol.MoveFailed, false
	m.note(NoteMoveFailed, 0, 0)`,
		New: `	m.confirmed(now, t)
	m.note(NoteMoveFailed, 0, 0)`,
	},
	{
		Name:  "failed-move-believed",
		World: "--faults=move-range=20,drain=10,owner-leave=10,upcalls=5",
		Seeds: 4000,
		Why:   "the leader takes any report about a range for the news that its state has arrived",
		File:  handoverFile,
		Old:   "if rep.State != protocol.MoveDone || f.Generation > rep.Newest || !unmarked(parts, rep.Range) {",
		New:   "if f.Generation > rep.Newest || !unmarked(parts, rep.Range) {",
	},
	{
		Name:  "never-stops-serving",
		World: "--faults=move-range=10,drain=5",
		Seeds: 4000,
		Why:   "a source sends the last of the state while it goes on serving the range",
		File:  departuresFile,
		Old:   "if d.state == protocol.MoveStopped {",
		New:   "if false {",
	},
	{
		Name: "stopped-range-given-back",
		Why:  "while a source sends the last of the state it says that it has no lease, and may then serve again",
		File: ownerFile,
		Old:  "Leases: m.held, Suspended: m.suspended",
		New:  "Leases: m.view.Leases, Suspended: m.suspended",
	},
	{
		Name: "served-before-installed",
		Why:  "a target serves a range before the application has put the state in its place",
		File: arrivalsFile,
		Old:  "		if a.lease.Generation != 0 {",
		New:  "		if false {",
	},
	{
		Name: "install-forgotten",
		Why:  "a target forgets that the state is not in its place yet when the leader speaks of the move no more",
		File: arrivalsFile,
		Old: `		case a.lease.Generation != 0:
			return false`,
		New: `		case a.lease.Generation != 0:
			return true`,
	},
	{
		Name:  "install-lapses-with-a-part",
		World: "--faults=drain=30,owner-leave=30,upcalls=60",
		Seeds: 4000,
		Why:   "when a part of a lease is recalled whose state is not in its place yet, the rest is served without it",
		File:  arrivalsFile,
		Old:   "if a.lease.Generation == 0 || len(m.remains(a)) > 0 {",
		New:   "if a.lease.Generation == 0 || len(protocol.Missing([]leasehold.Lease{a.lease}, m.held)) == 0 {",
	},
	{
		Name: "moved-under-an-old-generation",
		Why:  "a lease keeps its generation when it moves to another owner",
		File: handoverFile,
		Old:  "generation := m.nextGeneration(len(m.batchTickets), changes)",
		New:  "generation := m.nextGeneration(len(m.batchTickets), changes) - 1",
	},
	{
		Name: "moved-to-two-owners",
		Why:  "what has moved is also granted to whoever the plan has it for",
		File: "internal/machine/manager/plan.go",
		Old:  "			changes = append(changes, m.transfer(m.freed[first:n], len(changes)))\n			continue",
		New:  "			changes = append(changes, m.transfer(m.freed[first:n], len(changes)))",
	},
	{
		Name: "move-forgets-losses",
		Why:  "a range that moves is taken for one that has never lost anything, which a lookup learns from a snapshot",
		File: "internal/table/table.go",
		Old:  "			next.Lost = max(next.Lost, e.Lost)",
		New:  "			if c.Kind == Granted {\n				next.Lost = max(next.Lost, e.Lost)\n			}",
	},
	{
		Name:  "old-import-used",
		Why:   "a leader that has just taken over offers a lease with state that came for the range before something was lost there",
		World: "--faults=move-range=10,upcalls=5,manager-crash=5,owner-crash=10,link-cut=5,loss=5",
		Seeds: 4000,
		File:  handoverFile,
		Old:   "if e.Generation != l.Generation || e.Generation <= in.Since.Newest || e.Lost > in.Since.LSN {",
		New:   "if e.Generation != l.Generation {",
	},
	{
		Name:  "superseded-import-kept",
		Why:   "a target keeps state that did not come into use, and may take it for the state of a later lease",
		World: "--faults=move-range=20,loss=10,upcalls=3,manager-crash=5",
		Seeds: 4000,
		File:  arrivalsFile,
		Old:   "		if !a.confirmed || a.lease.Generation != 0 || !a.Range.Overlaps(r) {",
		New:   "		if true {",
	},
	{
		Name:  "backlog-forgotten",
		Why:   "moves that the plan asks for are never begun, and a drain never ends",
		World: "--faults=drain=20,owner-crash=5",
		File:  "internal/machine/manager/backlog.go",
		Old:   "	ready := m.ready\n",
		New:   "	ready := m.ready[:0]\n",
	},
}
