package mutant

const (
	outageFile = "internal/machine/manager/outage.go"
	viewFile   = "internal/machine/owner/view.go"
	gapFile    = "internal/table/gap.go"
	outages    = "--faults=default,outage=8"
)

// suspensions are bugs that show when leases reach their deadline without a leader: they lose
// what living owners keep, or serve what another owner may have.
var suspensions = []Mutant{
	{
		Name:  "suspension-drops-leases",
		Why:   "an owner drops its leases at their deadline, although the table still assigns them to it",
		World: outages,
		File:  suspendFile,
		Old:   "		m.emit(SuspendedLeases{m.held})\n",
		New:   "		m.emit(SuspendedLeases{m.held})\n		m.dropAll(leasehold.CauseExpired)\n",
	},
	{
		Name: "suspended-leases-served",
		Why:  "checks of a suspended lease succeed, while the leader may grant its range to another owner",
		File: viewFile,
		Old:  "if now >= v.Until {",
		New:  "if false {",
	},
	{
		Name:  "claims-renewed-unchecked",
		Why:   "a leader renews every suspended claim, whatever the table says",
		World: outages,
		File:  requestFile,
		Old:   "	if len(p.leases) == 0 {\n		return nil\n	}\n	offers := make([]protocol.Offer, 0, len(p.leases))\n",
		New: "	if p.suspended {\n		var claims []protocol.Offer\n		for _, l := range p.claims {\n			claims = append(claims, protocol.Offer{Lease: l})\n		}\n		return claims\n	}\n" +
			"	offers := make([]protocol.Offer, 0, len(p.leases))\n",
	},
	{
		Name:  "resumed-lease-not-held",
		Why:   "a leader renews a suspended claim without extending the deadline at which it expires the owner",
		World: outages,
		File:  requestFile,
		Old:   "		p.until = max(p.until, now.Add(m.patience(p)))\n",
		New:   "		if !r.Suspended {\n			p.until = max(p.until, now.Add(m.patience(p)))\n		}\n",
	},
	{
		Name:  "refused-claim-resumed",
		Why:   "an owner resumes its suspended leases although the reply omits them",
		World: outages,
		File:  replyFile,
		Old:   "	if len(offers) != len(m.held) {\n",
		New:   "	if len(offers) > len(m.held) || len(offers) < len(m.held) && !m.suspended {\n",
	},
	{
		Name:  "census-resumes-claims",
		Why:   "a leader without a table renews suspended leases, whose ranges another owner may have had since",
		World: "--diskless",
		Seeds: 2500,
		File:  censusFile,
		Old:   "if r.Suspended {",
		New:   "if false {",
	},
	{
		Name:  "uncertain-leader-resumes-at-once",
		Why:   "a leader whose store may be restored resumes suspended leases while another owner may hold their ranges",
		World: restored,
		Seeds: 12000,
		File:  restoredFile,
		Old:   "return p.suspended && !p.valid && m.undecided() && now < m.decideAt",
		New:   "return false",
	},
	{
		Name:  "resumed-despite-evidence",
		Why:   "a leader resumes suspended leases although an owner has shown that the store has lost history",
		World: restored,
		Seeds: 2000,
		File:  restoredFile,
		Old:   "	case m.proven && suspended:\n		m.recallUpTo(p, m.found.generation)\n",
		New:   "",
	},
	{
		Name:  "silent-owners-always-expired",
		Why:   "a leader expires owners that an outage has cut off, although no other owner can take their ranges",
		World: outages,
		File:  outageFile,
		Old:   "return !m.cfg.Deleted && !slices",
		New:   "return false && !slices",
	},
	{
		Name:  "leaving-member-counts-as-taker",
		Why:   "a leader expires silent owners for the sake of one that is about to leave",
		World: "--faults=owner-leave=10,drain=6,isolate=10,owner-pause=6,link-one-way=6,loss=4 --owners=2 --namespaces=1",
		Seeds: 8000,
		File:  outageFile,
		Old:   "p.member() && !p.parting",
		New:   "p.member()",
	},
	{
		Name:  "gap-ignored-by-lookups",
		Why:   "a lookup takes the table after a gap for a later state of one from a history that was lost",
		World: restored,
		File:  gapFile,
		Old:   "	if !t.follows(lsn) {\n",
		New:   "	if false {\n",
	},
	{
		Name:  "crossing-adopts-everything",
		Why:   "a lookup that crosses a gap takes ranges for adopted whose owners the leader has not heard",
		World: outages,
		File:  gapFile,
		Old:   "return !silent[e.Holder.Session]\n",
		New:   "return true\n",
	},
	{
		Name:  "record-witnessed-at-first-sight",
		Why:   "a manager that has seen the leader record once takes the store for current, and reuses lost numbers",
		World: restored,
		File:  electionFile,
		Old:   "	case m.known:\n		m.witnessed = true\n",
		New:   "	default:\n		m.witnessed = true\n",
	},
	{
		Name:  "same-beat-counts-as-change",
		Why:   "a record that a restore has put in the place of one with the same beat is taken for a leader's next",
		World: restored,
		Seeds: 12000,
		File:  electionFile,
		Old:   "r.Beat <= than.Beat)",
		New:   "r.Beat < than.Beat)",
	},
	{
		Name:  "late-message-replaces",
		Why:   "a silent owner is expired for the sake of a session that has sent one message, which may be late",
		World: "--faults=owner-crash=8,owner-pause=8,duplicate=8,delay=8 --owners=1 --namespaces=1",
		Seeds: 8000,
		File:  outageFile,
		Old:   "s.contender != nil && s.contender.proven",
		New:   "s.contender != nil",
	},
	{
		Name:  "kept-owners-take-room",
		Why:   "silent owners that are kept in the table count as connected, so that those who could take their ranges are refused",
		World: "--faults=owner-crash=8,owner-pause=8,duplicate=8,delay=8 --owners=1 --namespaces=1",
		File:  outageFile,
		Old:   "if m.heard-len(kept) >= m.cfg.MaxOwners {",
		New:   "if m.heard >= m.cfg.MaxOwners {",
	},
}
