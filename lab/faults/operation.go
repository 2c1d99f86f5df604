package faults

func operation() []Case {
	return []Case{
		{
			Number: 37, What: "1,000 owners join within a second", Tries: "I6 I8",
			Must:   "all have their part in time, with few writes",
			Proofs: by(tests("internal/core/machine/manager", "TestThousandOwnersJoin", "TestGatherWaitsForOthers"), tests("internal/runtime/broadcast", "TestBatch")),
		},
		{
			Number: 38, What: "half of all owners die at once", Tries: "I4 I6",
			Must:   "their losses are told together, and their keys have owners in time",
			Proofs: by(chaos("owners-kill"), tests("internal/core/machine/manager", "TestHalfOfAllDie")),
		},
		{
			Number: 39, What: "10,000 clients connect again at once", Tries: "I6 I8",
			Must: "they come at different times, and no lease is lost",
			Proofs: by(tests("internal/core/machine/lookup", "TestLookupsDoNotMarchInStep"), tests("internal/core/machine/owner", "TestOwnersDoNotMarchInStep"),
				tests("lab/tests/attacks", "TestFloods", "TestSilence"), tests("access", "TestStreamsAreLimited")),
		},
		{
			Number: 40, What: "a lookup reads slowly", Tries: "I5 I8",
			Must: "a bounded queue waits for it, and then a snapshot",
			Proofs: by(simulated("lookup-pause", "lookup: gap", "manager: snapshot sent"), chaos("bandwidth"),
				tests("internal/runtime/broadcast", "TestSlowLookup", "TestWavesPassTheSlow", "TestQueue"), tests("lookup", "TestSlowReaderMissesNothing")),
		},
		{
			Number: 41, What: "the source of a move dies on the way", Tries: "I4 I7",
			Must: "its state is lost, and said to be lost",
			Proofs: by(simulated("move-crash"), tests("internal/runtime/statemove", "TestIncompleteImport"),
				tests("internal/core/machine/manager", "TestMoveEndsWithItsLease", "TestLostUnlessDone"), pointed("leaseholdtest", "TestEveryPoint")),
		},
		{
			Number: 42, What: "the target of a move dies on the way", Tries: "I4 I7",
			Must: "the source goes on with the range",
			Proofs: by(simulated("move-crash"), tests("owner", "TestTargetDies"),
				tests("internal/core/machine/manager", "TestTargetIsGone", "TestFailedMoveStays"), pointed("leaseholdtest", "TestEveryPoint")),
		},
		{
			Number: 43, What: "the target of a move dies after it has confirmed", Tries: "I4 I7",
			Must: "there is one loss, and it is told",
			Proofs: by(simulated("move-crash", "manager: target gone"),
				tests("internal/core/machine/manager", "TestTargetGoesBeforeItIsRecorded", "TestTargetGoesWhileItIsRecorded", "TestSuccessorKnowsTheTargetIsGone"),
				pointed("leaseholdtest", "TestEveryPoint")),
		},
		{
			Number: 44, What: "a function of the application hangs or panics", Tries: "I1",
			Must: "the lease ends in time all the same, and the log names the function",
			Proofs: by(simulated("upcalls"), tests("owner", "TestHangingCallback", "TestCloseWithAHangingCallback", "TestCloseWithAnExportThatHangs", "TestFailedMovesCostNothing", "TestFailedInstallIsALoss"),
				tests("internal/core/machine/owner", "TestInstallFails", "TestInstallingLeaseEnds"), tests("leasemap", "TestPanic")),
		},
		{
			Number: 45, What: "processes are upgraded one by one, either way", Tries: "I1 I5",
			Must: "builds of one version of the protocol work together, and read what the version before has written",
			Proofs: by(chaos("upgrade"), tests("internal/runtime/wire", "TestReadsARequestOfVersion1", "TestReadsAGrantOfVersion1", "TestReadsTheChangesOfVersion1",
				"TestWritesChangesWithoutMovesAsVersion1Did", "TestUnknownFieldsAreIgnored", "TestVectors", "TestNamespaceOfOldReadsAsItWas"),
				tests("lab/tests/e2e", "TestRollingRestart"), tests("cmd/leasehold", "TestOldManager")),
		},
		{
			Number: 46, What: "a certificate expires, or is replaced, while leases are held", Tries: "I4",
			Must:   "no connection and no lease ends by it",
			Proofs: by(tests("secure", "TestRotation", "TestExpiryCutsNothing", "TestReload"), tests("manager", "TestCertificatesChangeUnderLeases")),
		},
		{
			Number: 47, What: "Flease: members forget within tmax + 2e, answer twice, have one id; a write comes late", Tries: "I1",
			Must: "one holder at a time",
			Proofs: by(leased("crash", "crash-all", "orphan", "duplicate", "delay", "rewind"),
				tests("internal/core/machine/flease", "TestAmnesiaDoesNotBreakALease", "TestRecoveryIsLongEnough", "TestRecoveryIsSilent", "TestEachAcceptorCountsOnce",
					"TestEqualBallots", "TestEqualIDs", "TestExpiryIsCheckedAgainAfterTheWrite", "TestLatePromise", "TestFencesRise"),
				tests("flease", "TestSecondProcessWithAnIDIsRefused", "TestReplayedPackets", "TestForgetfulMemberHearsOfALease", "TestChaos"),
				tests("lab/fleasesim/explore", "TestExplore")),
		},
	}
}
