// Package transcript has scripts of the protocol that are meant to be read: the figures of the Centrifuge and
// PRS papers, and cases that this implementation handles differently or in addition. The package has no code
// of its own; the scripts are in testdata, and its tests run them.
//
// A script connects real machines. It decides when time passes, which messages are delivered, lost or
// delayed, and how the store replies. The machines do the rest, and the transcript records every message and
// every decision. To rewrite the expected output after an intended change, and to review the difference:
//
//	go test ./lab/transcript -rewrite
//	git diff lab/transcript/testdata
//
// # Reading a transcript
//
// A line without indentation is an event; the lines indented below it are its consequences. Lease messages
// carry the pair of the papers, <owner's sequence number, manager's sequence number>: the sequence number of
// the message, and the highest one that the sender has received from the other side. With more than one
// manager the term, which scopes the manager's numbers, precedes the pair.
//
// The script divides the key space into units. [1-3] is the range of units 1 and 2. A lease is a range and
// its generation, [1-3]@7. A row of the lease table is written as in Centrifuge's figure 4: [1-3: Owner=B,
// LGN=7].
//
// "for 7s" after a set of leases is the time for which the owner may still use them, on its own clock. "at
// 2.5s" is true time, which no process can read: every clock has its own origin and may have its own rate.
//
// # Writing a script
//
// Several commands may stand above one ----; their outputs follow each other. A block that starts with
// "quietly" prints only ok.
//
// Settings:
//
//	keys 9                    divide the key space into 9 units
//	timing paper              60 s leases; also: lease=4s renew=1s drift=65/60
//	plan A=0-1 B=1-3,4-9      the assignment to those owners that are members
//	generations from 14       the first generation to be granted
//	manager M log=2 age=5m    start a manager process; it leads if no other does.
//	                          Also: seams=1 and moves=1, see its machine's Config
//	owner A clock=0.9         start an owner, whose clock has that rate
//	owner A2 named A          another process with A's name
//	owner A mover             one that can move state; "named" comes first
//	lookup L poll=5s stale=30s recovery=conservative
//	draws A 0.5               the value of A's random numbers, from 0 to 1
//	begin again               start again with an empty world
//
// Time and messages:
//
//	advance 2.5s              time passes; messages stay in flight
//	run 10s                   time passes on a perfect network and store
//	settle                    deliver all messages
//	deliver A->M              deliver the oldest message from A to M
//	deliver A->M last         deliver the newest one: they are reordered
//	drop A->M                 lose the oldest message
//	hold A->M, release A->M   run and settle do not deliver on this link
//	cut A->M, heal A->M       messages sent on this link are lost
//	commit M                  the store executes M's oldest request, and replies
//	timeout M                 M's request times out; it may still be executed
//
// Store requests are messages too, from M to store and back; after a loss on either way the outcome is
// unknown to M. A manager's election and its loading of tables and of the catalog take no time, unless
// M->store is cut.
//
// Processes:
//
//	crash A, restart A        the same name and address, a new session
//	sleep A 5s                its clock stands still for that time
//	leave A                   it closes gracefully
//	part A                    it leaves when all its state has moved
//	prove A2                  its host finds that its predecessor has ended
//	resign M                  it gives up leadership
//	configure M lease=4s renew=1s
//	                          an operator changes the lease duration at the leader
//	rethink M                 it requests a new plan, as if owners had
//	                          joined or left
//	clock A 1.1               its clock has that rate from now on
//	without filter            messages that crossed others are not recognised
//
// Moves of state are called t1, t2 and so on, in the order in which they appear:
//
//	drain M A, undrain M A    an operator drains A, or ends the drain
//	move M 1-2 B              an operator moves unit 1 to B
//	copied A t1               A's application has copied, while it served
//	installed B t1            B's application has installed the state
//	fails A t1                the application fails to do so
//	gives up A t1             A times out waiting for its target
//
// A call of an application is a message from A to app: settle and run complete it at once, unless A->app is
// held. Messages between owners are the final part of the state, and its confirmation.
//
// Queries:
//
//	check 3, check A 3        the owners whose check of the first key of unit 3 succeeds
//	held A 3 @7               whether A has held it under generation 7 without a gap
//	find L 3                  where L sends requests for it
//	write 3 blue, read 3      a caller's request to the owner of the key
//	show table                the leader's; also: show M2, L, A, store, messages
//
// After every step the test checks that no key has two holders, and fails if one has; only a script with
// "without filter" may show it.
package transcript
