package faults

func outages() []Case {
	return []Case{
		{
			Number: 48, What: "all managers are down, from a second to a day, stopped or crashed, while owners and lookups run", Tries: "I11",
			Must: "no lease ends, no generation changes, and no loss is reported",
			Open: "managers without a store lose their tables with the leader's term, and suspended leases end with it",
			Proofs: by(simulated("outage", "owner: suspended", "owner: resumed"), chaos("managers-kill", "managers-pause"),
				tests("manager", "TestManagerOutage"), tests("lab/tests/e2e", "TestOutageLosesNothing", "TestPresenceSurvivesItsManagers"),
				tests("cmd/leasehold", "TestDemoOutage"), tests("leasemap", "TestOutageKeepsValues", "TestOutageInTheMiddleOfMoves"),
				tests("owner", "TestOutageSuspends"), tests("lab/sim", "TestOutagesLoseNothing"),
				tests("lab/sim/explore", "TestSuspendedLeasesAreExplored")),
		},
		{
			Number: 49, What: "the store has no quorum for as long", Tries: "I11",
			Must: "no lease ends, and leases resume when the store answers",
			Proofs: by(simulated("outage", "store-down"), chaos("store-outage-kill", "store-outage-pause"), tests("manager", "TestStoreOutage"),
				tests("lab/tests/e2e", "TestEtcdQuorumLostForLong"), tests("lab/sim", "TestOutagesLoseNothing")),
		},
		{
			Number: 50, What: "managers run, and the network between them and all owners is cut", Tries: "I11",
			Must: "the leader keeps silent owners in the table, and no lease ends",
			Proofs: by(simulated("outage", "manager: outage", "manager: outage over"), chaos("managers-cut"), tests("lab/chaos", "TestDroppedLeasesAreNoticed"), tests("manager", "TestOwnersCutOff", "TestOutageIsShown"),
				tests("internal/core/machine/manager", "TestOutageOfAnyLength"), tests("lab/sim", "TestOutagesLoseNothing")),
		},
		{
			Number: 51, What: "one manager's writes of the leader record are slow: constantly, more and more, or in bursts", Tries: "I6",
			Must: "a healthy manager leads within the bound, and keys stay owned",
			Open: "a leader whose writes are slow in bursts of less than three renewals keeps leading, with gaps in its authority; keys stay owned",
			Proofs: by(simulated("store-lag", "election: limping"), tests("manager", "TestLimpingLeader", "TestLimpingLeaderVaries", "TestLimpingAlone"),
				tests("internal/core/machine/leadership/byrecord", "TestLimpingLeaderYields", "TestLimpingInVain", "TestLimpingLeaderIsTheLastOne", "TestOutageIsNoLimp", "TestLimpingSteps")),
		},
		{
			Number: 52, What: "a manager's wall clock is minutes, months or years off, steps, runs at a wrong rate, or is corrected later", Tries: "I1 I2 I6 I11",
			Must: "timestamps differ, and nothing else: no lease ends, and leases are granted as ever",
			Proofs: by(tests("manager", "TestWildWallClock", "TestSuccessorsClockAhead", "TestClocksSetBackAndAllRestarted"),
				tests("internal/core/machine/leadership/byrecord", "TestUncertain")),
		},
		{
			Number: 53, What: "a peer passes validation and reports a term, LSN or generation that was never issued", Tries: "I6 I10",
			Must: "the group keeps its leader and its numbers, and other namespaces are not delayed",
			Open: "in a group without a store that is younger than 20 minutes, an owner that reports a later term costs a few elections",
			Proofs: by(simulated("hostile", "election: disbelieved"),
				tests("manager", "TestLookupDoesNotMoveNumbers", "TestOwnerDoesNotMoveOtherNamespaces", "TestLookupAheadMovesNothing", "TestOwnerAheadIsDisbelieved", "TestOwnerAheadOfAYoungGroup"),
				tests("internal/core/machine/manager", "TestLookupsAreNoEvidence", "TestClaimsDoNotUseGenerationsUp", "TestForgottenGenerations")),
		},
		{
			Number: 54, What: "a store is restored from a backup of seconds to days, under running or stopped managers, twice, with resigned and unresigned records", Tries: "I1 I2 I3 I5",
			Must: "no number is issued twice; suspended leases resume after every lost lease has expired, and are recalled on evidence of lost history",
			Proofs: by(simulated("store-restore", "election: uncertain", "manager: forgotten", "manager: rebased"), chaos("store-restore"), tests("manager", "TestRestoredStore", "TestCopiedStore"),
				tests("internal/core/machine/leadership/byrecord", "TestUncertain", "TestRestoredWhileWeRun", "TestCopiedStore"), tests("server/store/etcd", "TestIdentity"),
				tests("internal/core/machine/manager", "TestSuspendedClaimWaits", "TestEvidenceAfterResume", "TestEvidenceAfterFailover", "TestMoveAfterEvidence", "TestEvidenceBelowNewest", "TestRestoredWhileItWrites"),
				tests("lab/sim", "TestRestores")),
		},
		{
			Number: 55, What: "owners return after an outage at the same time, and some of them late", Tries: "I11",
			Must: "all resume; late ones have the time of a lease after the first one returned",
			Proofs: by(simulated("outage"), tests("manager", "TestOwnersReturnTogether"),
				tests("internal/core/machine/manager", "TestOutageOfAnyLength", "TestTakeoverWaitsForTheSecond", "TestPartingBesideADeadOwner", "TestLateMessageReplacesNobody", "TestKeptOwnersLeaveRoom")),
		},
		{
			Number: 56, What: "the range of a suspended owner is granted to another owner before the outage ends, with and without a store", Tries: "I1 I3 I11",
			Must: "the lease of the first ends and never resumes; the other owner keeps the range",
			Proofs: by(simulated("outage", "owner: suspended"), tests("manager", "TestReplacedWhileSuspended"), tests("owner", "TestSuspensionEndsIfAnotherHasTheRange"),
				tests("leasemap", "TestSuspendedServerIsReplaced"), tests("internal/core/machine/manager", "TestSuspendedClaim"),
				tests("internal/core/machine/owner", "TestSuspensionEndsInPart", "TestSuspensionEndsInACensus"),
				tests("lab/sim/explore", "TestSuspendedLeasesAreExplored")),
		},
	}
}
