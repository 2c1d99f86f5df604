// Package transcript holds walks through the protocol that are meant to be
// read: the figures of the Centrifuge and PRS papers, and the situations that
// this implementation treats differently or in addition. It has no code of its
// own; the scripts are in testdata, and its tests play them.
//
// A script wires real machines by hand. It decides when time passes, which
// message arrives, is lost, or waits, and what the store answers; the machines
// do the rest, and the transcript records every message and every decision. To
// write the expected output anew after an intended change, and then to read
// the difference:
//
//	go test ./lab/transcript -rewrite
//	git diff lab/transcript/testdata
//
// # Reading a transcript
//
// A line that starts at the margin is something that happens; the lines
// indented below it are what follows. Lease messages carry the pair that the
// papers draw, <owner's sequence number, manager's sequence number>: what the
// sender numbers its message with, and the newest number that it has heard
// from the other side. Where there is more than one manager the term, which
// scopes the manager's numbers, stands in front.
//
// The key space is cut into as many units as the script says, and written in
// units: [1-3] is the keys of units 1 and 2. A lease is a range and its
// generation, [1-3]@7. A row of the lease table is written as in Centrifuge's
// figure 4: [1-3: Owner=B, LGN=7].
//
// "for 7s" after a set of leases is how long the owner may still use them, on
// its own clock. "at 2.5s" is true time, which no process can see: every clock
// starts somewhere else and may run at another rate.
//
// # Writing a script
//
// Several commands may stand above one ----; their outputs follow each other.
// A block that starts with "quietly" prints nothing but ok.
//
// The setting:
//
//	keys 9                    cut the key space into 9 units
//	timing paper              60 s leases; also: lease=4s renew=1s drift=65/60
//	plan A=0-1 B=1-3,4-9      who is to have what, of those that are there
//	generations from 14       the first generation to be granted
//	manager M log=2 age=5m    start a manager process; it leads if nobody does.
//	                          Also: seams=1 and moves=1, see its machine's Config
//	owner A clock=0.9         start an owner, whose clock runs at that rate
//	owner A2 named A          another process with A's name
//	owner A mover             one that can move state; "named" comes first
//	lookup L poll=5s stale=30s recovery=conservative
//	draws A 0.5               what A's random numbers come to, of 0 to 1
//	begin again               forget everything
//
// Time and messages:
//
//	advance 2.5s              time passes; what is sent stays under way
//	run 10s                   time passes on a perfect network and store
//	settle                    everything under way arrives
//	deliver A->M              the oldest message from A to M arrives
//	deliver A->M last         the newest one does: they are reordered
//	drop A->M                 it is lost
//	hold A->M, release A->M   run and settle leave this link alone
//	cut A->M, heal A->M       what is sent on this link is lost
//	commit M                  the store does what M asked first, and M hears
//	timeout M                 M gives up waiting; its request may yet arrive
//
// Store requests are messages too, from M to store and back; one that is
// dropped on either way leaves M with an unknown outcome. A manager's election
// and its loading of tables and of the configuration go through at once, unless
// M->store is cut.
//
// Processes:
//
//	crash A, restart A        the same name and address, a new session
//	sleep A 5s                its clock stands still meanwhile
//	leave A                   it closes gracefully
//	part A                    it wants to leave, when nothing is left to move
//	prove A2                  its host finds that its predecessor is gone
//	resign M                  it gives up leadership
//	configure M lease=4s renew=1s
//	                          an operator asks it, who leads, for other leases
//	rethink M                 it asks for the plan again, as if owners had
//	                          come or gone
//	clock A 1.1               its clock runs at that rate from now on
//	without filter            messages pass for ones that crossed no other
//
// Moves of state are called t1, t2 and so on, in the order in which they appear:
//
//	drain M A, undrain M A    an operator wants A to hold nothing, or no longer
//	move M 1-2 B              an operator wants B to have unit 1
//	copied A t1               A's application has copied, while it served
//	installed B t1            B's application has put what came in its place
//	fails A t1                the application fails to do so
//	gives up A t1             A has waited long enough for its target
//
// What an application is asked to do is a message from A to app: settle and run
// let it do everything at once, unless A->app is held. What owners say to each
// other are messages too: the rest of the state, and that it has arrived.
//
// Questions:
//
//	check 3, check A 3        who may act on the first key of unit 3
//	held A 3 @7               has A held it under generation 7 all along
//	find L 3                  where L sends requests for it
//	write 3 blue, read 3      a caller does so, wherever it is served
//	show table                the leader's; also: show M2, L, A, store, messages
//
// After every step the harness makes sure that no key has two holders, and
// fails the test if one has; only a script that said "without filter" may
// show it.
package transcript
