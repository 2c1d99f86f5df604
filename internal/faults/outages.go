package faults

func outages() []Case {
	return []Case{
		{
			Number: 48, What: "all managers are down or stand still, for seconds to minutes", Tries: "I11 I6",
			Must: "leases are suspended and resumed under the same generations; nothing is lost while the owners live",
			Open: "managers without a store lose their tables with the leader's term, and suspended leases end with it",
			Proofs: by(simulated("outage", "manager: outage"), chaos("managers-kill", "managers-pause"),
				tests("manager", "TestManagerOutage"), tests("internal/machine/manager", "TestOutageOfAnyLength"), tests("internal/e2e", "TestOutageLosesNothing")),
		},
		{
			Number: 49, What: "a store has no quorum for as long", Tries: "I11 I6",
			Must:   "as if the managers were down",
			Proofs: by(simulated("outage", "manager: outage"), chaos("store-outage-kill", "store-outage-pause"), tests("manager", "TestStoreOutage")),
		},
		{
			Number: 50, What: "the network between the managers and all owners and callers is cut", Tries: "I11 I6",
			Must: "the leader keeps silent owners whose ranges no other owner can take; all resume",
			Proofs: by(simulated("outage", "manager: outage"), chaos("managers-cut"), tests("internal/machine/manager", "TestOutageOfAnyLength"),
				tests("internal/chaos", "TestDroppedLeasesAreNoticed")),
		},
	}
}
