package faults

func stores() []Case {
	return []Case{
		{
			Number: 26, What: "a leader stands still for longer than its TTL, and then goes on granting", Tries: "I1 I2",
			Must: "its guarded write fails, and owners do not listen to its term",
			Proofs: by(simulated("manager-pause", "election: deposed", "owner: stale term"), chaos("leader-pause-long"),
				tests("internal/e2e", "TestLeaderStopped", "TestDisklessLeaderStopped"),
				tests("store/mem", "TestStore/AppendGuards"), tests("internal/machine/owner", "TestPaperMessageOfAnEarlierLeaderIsDropped"),
				pointed("leaseholdtest", "TestEveryPoint")),
		},
		{
			Number: 27, What: "a deposed leader goes on renewing", Tries: "I1",
			Must: "it stops at its own deadline, for which its successor waits",
			Proofs: by(simulated("store-cut", "manager: no authority", "election: authority lapsed"), chaos("leader-minority"),
				tests("internal/machine/election", "TestPaperTwoNeverLead", "TestDeposedWhileRenewing", "TestTakeoverWaitsForEachRecord"),
				tests("internal/machine/manager", "TestPaperOnlyTheLeaderResponds", "TestPaperFailoverWaitsForWhoDoesNotComeBack", "TestDeposedIsOver"),
				tests("internal/diskless", "TestAuthorityEndsWithTheLease"), pointed("internal/diskless", "TestWrittenBeforeThePointOfDismissal")),
		},
		{
			Number: 28, What: "a store loses its quorum", Tries: "I1 I6",
			Must: "nothing is granted, renewals end at the leader's deadline, and all recovers without help",
			Proofs: by(simulated("store-down"), chaos("quorum-kill", "quorum-pause", "store-quorum-kill", "store-quorum-pause"),
				tests("internal/e2e", "TestEtcdQuorumLostForLong", "TestEtcdQuorumLostForShort"), tests("store/etcd", "TestEmbedWithoutMajority"),
				tests("manager", "TestWithoutDiskMinority")),
		},
		{
			Number: 29, What: "a write to the store takes 5 to 30 s", Tries: "I1 I6",
			Must: "nobody hears of it before it is done, and leadership ends if it must",
			Proofs: by(simulated("store-slow"), chaos("store-stutter", "manager-stutter", "store-quorum-pause", "quorum-pause"),
				tests("internal/machine/election", "TestLapseAndRegain", "TestLapseAndLoss"),
				tests("internal/machine/manager", "TestPaperCommitsBeforeItResponds"), pointed("leaseholdtest", "TestEveryPoint")),
		},
		{
			Number: 30, What: "a store is full", Tries: "I1 I2",
			Must: "nobody ever hears of a grant that was not stored, and it goes on when there is room",
			Proofs: by(chaos("disk-full"), tests("manager", "TestFullStore", "TestFullStoreGrantsNothing"),
				tests("store/etcd", "TestQuota", "TestReserve", "TestExternalStoreIsFull"), tests("fence/fenceetcd", "TestFull")),
		},
		{
			Number: 31, What: "the outcome of a write is unknown", Tries: "I1 I2 I5",
			Must: "it is read before anything is decided",
			Proofs: by(simulated("store-unknown", "manager: commit found", "manager: commit retried", "election: swap found", "election: swap retried"),
				tests("internal/machine/election", "TestUnknownSwap", "TestPaperAnUnknownElectionIsReadBack"),
				tests("store/internal/kv", "TestFaults"), pointed("leaseholdtest", "TestEveryPoint")),
		},
		{
			Number: 32, What: "watches miss something, old revisions are gone, reads are old", Tries: "I5",
			Must: "nothing is decided by it, and lookups find the gap",
			Proofs: by(simulated("store-stale", "election: old record", "lookup: gap"),
				tests("store/internal/kv", "TestReadsBeginAgain", "TestTrim"),
				tests("store/mem", "TestStore"), tests("store/etcd", "TestExternalStore", "TestGroupStore"),
				tests("internal/machine/election", "TestStaleReadsAreIgnored", "TestWatchDuringSwap"),
				tests("internal/machine/lookup", "TestCallerGapWhileAsking"), tests("lookup", "TestAsksAboutGap")),
		},
		{
			Number: 33, What: "a store is restored from an old backup", Tries: "I2 I5",
			Must: "it is noticed, and said; a term above all begins, and no generation is given twice; lookups start over",
			Proofs: by(simulated("store-restore", "store: log renumbered", "manager: log forgotten"),
				tests("manager", "TestRestoredStore"), tests("internal/machine/election", "TestOldStore", "TestRestoredWhileWeRun", "TestForgetfulStore", "TestOutrankedSetsTheFloor"),
				tests("internal/machine/manager", "TestForgottenGenerations", "TestForgottenChanges", "TestBelowTheFloor", "TestTermLedTwice", "TestRestoredWhileItWrites", "TestGenerationsBeginAfter"),
				tests("cmd/leasehold", "TestBackupAndRestore"), tests("store/etcd", "TestAmnesia"), tests("internal/e2e", "TestLostDisk", "TestOldDataDirectory")),
		},
		{
			Number: 34, What: "a manager takes over in the middle of a recall, of a move, of a split", Tries: "I1 I7",
			Must: "what was begun is finished or undone, and nobody says that it was moved before it is",
			Proofs: by(simulated("move-crash", "manager-crash", "move-range"), chaos("leader-kill"),
				tests("internal/machine/manager", "TestSuccessorCutsALease", "TestSuccessorFindsAMoveInTheTable", "TestSuccessorHearsOfAMoveFromTheSource",
					"TestSuccessorWaitsForTheTarget", "TestSuccessorStartsNoMoveBlindly", "TestCensusGoesOnWithAMove"),
				pointed("leaseholdtest", "TestEveryPoint")),
		},
		{
			Number: 35, What: "leadership goes back and forth for an hour", Tries: "I1 I6",
			Must: "one owner at a time, and every key has one soon after",
			Proofs: by(simulated("manager-resign", "manager-crash", "election: elected"), chaos("flapping", "leader-flapping", "leader-restart"),
				tests("internal/sim", "TestRollingRestartsLoseNothing", "TestDisklessRollingRestartsLoseNothing"),
				tests("internal/sim", "TestLeadershipFlaps"), tests("internal/e2e", "TestRollingKill")),
		},
		{
			Number: 36, What: "the change log is cut while a lookup is away", Tries: "I4 I5",
			Must: "it gets a snapshot, and finds every loss in it",
			Proofs: by(simulated("lookup-pause", "manager: snapshot sent", "lookup: snapshot"),
				tests("internal/changelog", "TestForgetsByNumberAndAge", "TestTellPrefersTheSmaller"),
				tests("internal/machine/lookup", "TestPaperLookupFindsLossesInASnapshot", "TestPaperSnapshotMissesNoLoss"),
				tests("lookup", "TestLossesOfSkippedChanges")),
		},
	}
}
