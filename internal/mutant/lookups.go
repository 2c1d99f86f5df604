package mutant

const lookupFile = "internal/machine/lookup/lookup.go"

// lookups are bugs of the lookup machine.
var lookups = []Mutant{
	{
		Name: "loss-dropped-on-snapshot",
		Why:  "a lookup that takes over a snapshot does not report what was lost in between",
		File: lookupFile,
		Old:  "m.publish(s, nil, missed(m.table, s))",
		New:  "m.publish(s, nil, nil)",
	},
	{
		Name: "loss-dropped-on-change",
		Why:  "a lookup does not report the loss of what was given back",
		File: lookupFile,
		Old:  "if loss, lost := c.Loss(); lost {",
		New:  "if loss, lost := c.Loss(); lost && loss.Cause != leasehold.CauseReleased {",
	},
	{
		Name: "lost-contact-not-reported",
		Why:  "a lookup that hears from nobody says nothing",
		File: lookupFile,
		Old:  "if m.table == nil || now < m.contactDue() {",
		New:  "if m.table == nil || now >= 0 {",
	},
	{
		Name:  "lost-contact-reported-once",
		Why:   "what is lost while a lookup has no contact, after it said so, is never covered",
		World: "--faults=isolate=5,link-cut=5,owner-leave=5",
		File:  lookupFile,
		Old:   "		return m.reported.Add(m.cfg.Stale)\n",
		New:   "		return mono.Never\n",
	},
	{
		Name: "contact-lost-not-emitted",
		Why:  "a lookup that hears from no manager notices it, and does not emit it",
		File: lookupFile,
		Old:  "		m.emit(Contact{Lost: true, Age: now.Sub(m.fresh)})\n",
		New:  "",
	},
	{
		Name: "contact-restored-by-old-proof",
		Why:  "an answer restores contact though what it proves is too old",
		File: lookupFile,
		Old:  "if m.lost && now < m.fresh.Add(m.cfg.Stale) {",
		New:  "if m.lost {",
	},
	{
		Name: "loss-invented-without-contact",
		Why:  "a lookup that is not conservative reports everything as lost when contact is",
		File: lookupFile,
		Old:  "	if m.cfg.ConservativeRecovery {\n",
		New:  "	if m.lost {\n",
	},
	{
		Name:  "knowledge-counted-from-receipt",
		Why:   "a lookup counts an answer as proof of what was committed after it had asked",
		World: "--faults=delay=10,manager-crash=10,owner-leave=10 --namespaces=1 --managers=1 --lookups=8 --owners=6",
		File:  lookupFile,
		Old:   "known, age := m.sentAt.Add(-r.Age), now.Sub(m.fresh)",
		New:   "known, age := now.Add(-r.Age), now.Sub(m.fresh)",
	},
	{
		Name:  "any-answer-will-do",
		Why:   "a lookup takes an answer to an older request for one to its newest",
		Seeds: 2000,
		World: "--faults=duplicate=8,delay=6,isolate=6,owner-leave=6 --managers=1 --lookups=6 --namespaces=1",
		File:  lookupFile,
		Old:   "if r.Echo == m.seq {",
		New:   "if r.Echo > 0 {",
	},
	{
		Name: "lookup-ignores-sleep",
		Why:  "a lookup whose clock stood still believes that its knowledge is fresh",
		File: lookupFile,
		Old:  "	m.fresh, m.reported = now.Add(-m.cfg.Stale), now.Add(-m.cfg.Stale)\n	m.checkContact(now)\n",
		New:  "",
	},
	{
		Name: "lookup-goes-back",
		Why:  "an old snapshot replaces a newer table",
		File: lookupFile,
		Old:  "if s.LSN() <= m.table.LSN() {",
		New:  "if s.LSN() == m.table.LSN() {",
	},
	{
		Name:  "lookup-takes-foreign-namespace",
		Why:   "a lookup takes over the table of another namespace",
		World: "--faults=misroute=5,owner-crash=2 --namespaces=2",
		File:  lookupFile,
		Old:   "	case r.Namespace != m.cfg.Namespace:",
		New:   "	case false:",
	},
}
