package faults

func network() []Case {
	return []Case{
		{
			Number: 13, What: "a manager cannot reach an owner, which reaches it", Tries: "I1",
			Must: "the owner's lease ends before anybody else has its keys",
			Proofs: by(simulated("link-one-way", "isolate"), chaos("owner-deaf", "leader-mute"),
				tests("internal/core/machine/owner", "TestPaperLostRenewals"), tests("owner", "TestLeasesExpireWithoutALeader")),
		},
		{
			Number: 14, What: "an owner cannot reach a manager, which reaches it", Tries: "I1 I6",
			Must: "its lease ends, and its keys have another owner in time",
			Proofs: by(simulated("link-one-way", "isolate", "manager: expired"), chaos("owner-mute", "leader-deaf"),
				tests("internal/core/machine/manager", "TestPaperRemovalOfAnOwner", "TestPaperKeepsALeaseFor65Seconds")),
		},
		{
			Number: 15, What: "owners and callers cannot reach each other", Tries: "I1",
			Must: "who is asked in error refuses, and tables are refreshed",
			Proofs: by(simulated("misroute"), chaos("owners-callers-cut"),
				tests("lookup", "TestDoRefreshes"), tests("leasehttp", "TestMovedAway", "TestDeadServer", "TestRefusedByAll"),
				tests("leasegrpc", "TestRefusedIsRetried", "TestOwnerRefusesEverything")),
		},
		{
			Number: 16, What: "a lookup hears of no manager for an hour", Tries: "I4 I5",
			Must: "contact is lost at the bound; afterwards it catches up, and reports exactly what was lost",
			Proofs: by(simulated("lookup-pause", "lookup: contact lost", "lookup: contact back"), chaos("caller-cut"),
				tests("lookup", "TestLosesContact", "TestOutageWithoutLoss"),
				tests("internal/core/machine/lookup", "TestCallerLosesContact", "TestCallerConservativeRecovery", "TestPaperLookupWithoutContactReportsEverything")),
		},
		{
			Number: 17, What: "messages arrive twice", Tries: "I1 I2 I5",
			Must: "the second is not acted upon",
			Proofs: by(simulated("duplicate", "owner: duplicate", "manager: duplicate"), leased("duplicate"), chaos("duplicate"),
				tests("internal/runtime/fleasenet", "TestReplays")),
		},
		{
			Number: 18, What: "messages overtake each other", Tries: "I1 I2 I5",
			Must: "the older one is not acted upon",
			Proofs: by(simulated("delay", "owner: late reply", "lookup: overlap"), leased("delay"), chaos("reorder", "delay"),
				tests("internal/core/machine/lookup", "TestPaperLookupAppliesChangesInOrder"),
				tests("lab/sim/explore", "TestExplore")),
		},
		{
			Number: 19, What: "what an owner gives back crosses what it is granted", Tries: "I1",
			Must: "both are dropped, and said again after a random time",
			Proofs: by(simulated("owner: race", "manager: race"),
				tests("internal/core/machine/manager", "TestPaperRecallAcknowledgementThatCrossesAGrant", "TestPaperRacingRequestIsDropped"),
				tests("internal/core/machine/owner", "TestPaperRacingMessageIsDropped", "TestPaperRecallIsAcknowledgedAfterTheDrop"),
				tests("lab/transcript", "TestTranscripts")),
		},
		{
			Number: 20, What: "a message of an earlier session comes late", Tries: "I1 I2",
			Must: "it gives nobody anything, and prolongs nothing",
			Proofs: by(simulated("owner: foreign message", "delay"),
				tests("internal/core/machine/manager", "TestPaperLateMessageOfAnEarlierSession", "TestOlderSessionSpeaks"),
				tests("internal/core/machine/owner", "TestPaperMessageForAnotherSessionIsDropped"),
				tests("manager", "TestReplayedSession", "TestReplayDoesNotProlong"), tests("lab/tests/attacks", "TestReplay")),
		},
		{
			Number: 21, What: "1 to 50 % of messages are lost", Tries: "I1 I6",
			Must: "one owner at a time; leases that end by it are counted, and renewed once it is over",
			Proofs: by(simulated("loss", "owner: suspended", "owner: leader silent"), leased("loss"), chaos("loss"),
				tests("internal/core/machine/owner", "TestPaperLostRenewals")),
		},
		{
			Number: 22, What: "a frame makes no sense", Tries: "I8",
			Must: "its connection is closed, and nothing crashes",
			Proofs: by(simulated("hostile", "manager: bad message", "owner: bad message"), chaos("connection-storm"),
				tests("lab/tests/attacks", "TestFrames", "TestFramesOverTLS", "TestHandshakes"),
				tests("internal/runtime/fleasenet", "TestUDPDropsAndGoesOn", "TestTCPRefuses"), tests("internal/runtime/statemove", "TestHostileSource", "TestHostileTarget"),
				tests("owner", "TestNonsenseIsDropped")),
		},
		{
			Number: 23, What: "a frame of a gigabyte is announced", Tries: "I8",
			Must: "it is refused before memory is set aside",
			Proofs: by(tests("internal/runtime/wire", "TestHugeMessagesAreRefusedUnread", "TestManySmallPartsAreRefused", "TestRequestsAreBoundedAtBothEnds"),
				tests("lab/tests/attacks", "TestFrames", "TestCalls")),
		},
		{
			Number: 24, What: "a peer never reads", Tries: "I8",
			Must: "what waits for it is bounded, and nobody else waits",
			Proofs: by(tests("internal/runtime/broadcast", "TestSlowLookup", "TestWavesPassTheSlow", "TestNewestMessageWaitsForAnOwner"),
				tests("lab/tests/attacks", "TestFrames"), tests("internal/runtime/fleasenet", "TestTCPSlowPeer"),
				tests("internal/runtime/statemove", "TestSlowImporter", "TestTransferHasAWindow"), tests("server/dashboard", "TestSlowViewer"),
				tests("leasehttp", "TestStalledCallers")),
		},
		{
			Number: 25, What: "a peer never speaks", Tries: "I8",
			Must: "it is gone by a deadline, costs little, and is waited for by nobody",
			Proofs: by(chaos("connection-storm"), tests("lab/tests/attacks", "TestSilence", "TestSilenceOverTLS"),
				tests("internal/runtime/connlimit", "TestSilence", "TestOldestGoesFirst"), tests("internal/runtime/managerconn", "TestDeadConnectionIsReplaced", "TestSilentManagerIsSpared"),
				tests("lookup", "TestOpenGivesSilentManagersTime"), tests("internal/runtime/statemove", "TestStreamsThatDoNotOpen", "TestIdleConnectionsAreClosed"),
				tests("owner", "TestSilentConnectionCostsNoLease")),
		},
	}
}
