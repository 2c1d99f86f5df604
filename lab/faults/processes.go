package faults

func processes() []Case {
	return []Case{
		{
			Number: 1, What: "an owner is killed with -9", Tries: "I1 I2 I4",
			Must: "its keys go to others once its lease is over, and each range is lost once",
			Proofs: by(simulated("owner-crash"), chaos("owner-kill"),
				tests("lab/tests/e2e", "TestOwnerKilled"), tests("leaseholdtest", "TestKill")),
		},
		{
			Number: 2, What: "an owner is restarted at once, at its address", Tries: "I2 I4",
			Must: "it refuses to renew what its predecessor had, and gets new generations",
			Proofs: by(simulated("owner-crash", "owner: renewal refused", "manager: predecessor gone"), chaos("owner-restart"),
				tests("lab/tests/e2e", "TestOwnerRestarted"), tests("owner", "TestPredecessorIsProvenGone"),
				tests("internal/core/machine/owner", "TestPaperRestartedOwnerRefusesARenewal"),
				tests("internal/core/machine/manager", "TestPaperRestartedOwnerGetsNewLeases")),
		},
		{
			Number: 3, What: "two owners have one name", Tries: "I1",
			Must: "the later one waits, and hears why",
			Proofs: by(simulated("owner-twin", "owner: name taken", "manager: name taken"),
				tests("owner", "TestNameTaken"), tests("internal/core/machine/manager", "TestTwoSessionsInTheTable")),
		},
		{
			Number: 4, What: "an owner stands still for longer than its lease, between its check and its write", Tries: "I3 I9",
			Must: "its next check fails, and the late write is fenced off",
			Proofs: by(simulated("owner-pause", "store: write fenced"), chaos("owner-pause-long"),
				tests("lab/tests/e2e", "TestOwnerStoppedForLong"), tests("fence", "TestPostgreSQL"),
				tests("fence/fenceredis", "TestRedis"), tests("fence/fenceetcd", "TestEtcd")),
		},
		{
			Number: 5, What: "an owner stands still for less than its lease", Tries: "I4",
			Must: "nothing is lost",
			Proofs: by(simulated("owner-pause"), chaos("owner-pause-short"),
				tests("lab/tests/e2e", "TestOwnerStoppedForShort"), tests("leaseholdtest", "TestPause")),
		},
		{
			Number: 6, What: "an owner gets too little of a processor", Tries: "I1 I3",
			Must: "leases end by the clock, and need no event for it",
			Proofs: by(simulated("starve"), chaos("owner-stutter"),
				tests("owner", "TestChecksEndInTime"), tests("internal/core/machine/owner", "TestPaperLeaseEndsWithoutAnEvent")),
		},
		{
			Number: 7, What: "clocks run as differently as the drift bound allows, either way", Tries: "I1",
			Must: "one owner at a time",
			Proofs: by(simulated("clock-rate", "clock: at the slow end", "clock: at the fast end"), leased("rate"), chaos("clock-rate"),
				tests("lab/sim", "TestRatesAreWithinTheDriftBound", "TestEqualClocksAreNoticed"),
				tests("internal/core/mono", "TestStretchOutlastsTheLease")),
		},
		{
			Number: 8, What: "clocks run more differently than that", Tries: "I9",
			Must: "fencing holds, and an owner that can tell drops its leases and says so",
			Proofs: by(simulated("clock-beyond", "owner: clock too slow"), chaos("owner-clock-beyond", "manager-clocks-beyond"),
				tests("lab/chaos", "TestClocksBeyondTheBound"), tests("internal/core/machine/owner", "TestClockBeyondTheBound"),
				tests("lab/sim/explore", "TestClocksBeyondTheBoundAreFound"), tests("cmd/leasehold", "TestDoctorFindsRunawayClock")),
		},
		{
			Number: 9, What: "wall clocks are set, by an hour, either way", Tries: "I1 I4",
			Must: "nothing changes; in Flease leases end, and fences rise",
			Proofs: by(leased("step", "slew"), chaos("wall-clock"),
				tests("owner", "TestSetClocksChangeNothing"), tests("internal/runtime/clock", "TestDetectorTellsSleepFromSetClock", "TestWatchFollowsDrift"),
				tests("flease", "TestClockStep", "TestWrongClock"),
				tests("internal/core/machine/flease", "TestClockStepDropsLeases", "TestSlewingIsNoStep", "TestFencesDoNotOutrunTheClock", "TestOneClockYearsAhead"),
				tests("manager", "TestClocksSetBackAndAllRestarted")),
		},
		{
			Number: 10, What: "a computer is suspended for longer than a lease", Tries: "I1 I3",
			Must: "the first check after it fails",
			Proofs: by(simulated("owner-suspend", "manager-suspend", "lookup-suspend", "owner: slept"),
				tests("owner", "TestSleepEndsAllLeases", "TestWhatIsPublishedAfterASleepIsNotBelieved"),
				tests("internal/core/machine/owner", "TestAnswersFromBeforeASleepAreNotBelieved"),
				tests("internal/core/machine/leadership/byrecord", "TestPaperALeaderThatSleptStops"), tests("flease", "TestSleepEndsLeases")),
		},
		{
			Number: 11, What: "a snapshot of a computer is started beside it", Tries: "I1 I2",
			Must: "what the copy had ends with its lease; after that at most one of the two has anything",
			Open: "while both believe in one lease only fences help, since nothing in a copy can tell that it is one; a census of managers without a disk does not tell them apart",
			Proofs: by(leased("rewind"), tests("lab/sim", "TestCopiedOwner"),
				tests("manager", "TestReplayedSession", "TestNobodySpeaksForAnothersSession")),
		},
		{
			Number: 12, What: "a manager is killed with -9, the leader or another", Tries: "I1 I2 I5",
			Must: "no lease is lost",
			Proofs: by(simulated("manager-crash", "manager: takeover renews"), chaos("leader-kill", "manager-kill"),
				tests("lab/tests/e2e", "TestLeaderKilled", "TestRollingKill", "TestLoneManagerKilled", "TestDisklessLeaderKilled"),
				tests("manager", "TestFailoverKeepsLeases"), tests("internal/core/machine/manager", "TestPaperFailoverLosesNothing")),
		},
	}
}
