package mutant

const (
	relayFile = "internal/machine/relay/relay.go"
	nodeFile  = "internal/machine/node/node.go"
)

// standbys are bugs of managers that answer lookups without leading.
var standbys = []Mutant{
	{
		Name:  "standby-claims-to-be-current",
		Why:   "a standby that has lost the leader tells lookups that they know everything",
		World: "--faults=link-cut=6,isolate=4,owner-leave=6,owner-crash=4 --managers=3",
		File:  relayFile,
		Old:   "Age: m.cfg.Drift.Stretch(age),",
		New:   "Age: 0 * age,",
	},
	{
		Name:  "standby-age-not-stretched",
		Why:   "a standby whose clock is slow says that its knowledge is younger than it is",
		Seeds: 5000,
		World: "--faults=isolate=10,owner-leave=10,owner-crash=10 --managers=2 --lookups=6 --namespaces=1",
		File:  relayFile,
		Old:   "Age: m.cfg.Drift.Stretch(age),",
		New:   "Age: age,",
	},
	{
		Name:  "first-table-counts-as-fresh",
		Why:   "who asks for the first time counts what it hears from then, however old the answer says it is",
		World: "--faults=store-slow=6,store-unknown=6,owner-leave=6,manager-crash=2 --managers=3",
		File:  lookupFile,
		Old:   "	if m.unsure || known > m.fresh {\n		m.fresh, m.unsure = known, false\n	}\n",
		New:   "	m.fresh, m.unsure = max(m.fresh, known), false\n",
	},
	{
		Name:  "standby-ignores-sleep",
		Why:   "a standby whose clock stood still tells lookups what it knew before, as if it were new",
		Seeds: 5000,
		World: "--faults=manager-suspend=10,owner-leave=8,owner-crash=6,isolate=10 --managers=3 --lookups=6 --namespaces=1",
		File:  nodeFile,
		Old:   "		m.sleptRelays(now)\n",
		New:   "",
	},
}
