// Package flease is leases that a group of processes agree upon among
// themselves: no lock server, no disk, no leader. Any process of the group can
// hold the lease of a resource, a name of the application's choosing; at any time
// at most one does, and when it dies another can take over.
//
//	node, err := flease.Start(flease.Config{
//		Self: 1,
//		Members: []flease.Member{
//			{ID: 1, Addr: "10.0.0.1:7001"},
//			{ID: 2, Addr: "10.0.0.2:7001"},
//			{ID: 3, Addr: "10.0.0.3:7001"},
//		},
//		Key: secret.New(key), // the same on all of them
//	})
//	...
//	lease, err := node.Acquire(ctx, "reports/nightly") // waits until it has it
//	...
//	if !lease.Valid() { // before each act
//		return
//	}
//	write(row, lease.Fence()) // what goes elsewhere carries the fence
//	...
//	err = lease.Release(ctx) // others can have it at once
//
// It follows Flease (Kolbeck, Högqvist, Stender and Hupfeld, "Flease - Lease
// Coordination without a Lock Server"). A lease is agreed upon in two round trips
// and renewed in one, with a majority of the group; many travel in one packet.
//
// # What a caller must do
//
//  1. Call [Lease.Valid] before each act that only the holder may do. It is local,
//     and costs a fifth more than time.Now. A lease is renewed by itself until it
//     is released, but it is lost when too few members answer, and then Valid says
//     so in time, whether or not anybody was told.
//
//  2. Fence what goes elsewhere. A process may pause between Valid and the act,
//     for longer than the lease lasts. Whatever has an effect outside, a write to
//     a store or a request to a service, carries [Lease.Fence], and is refused
//     there if a higher one was seen for the resource. Fences rise from holder to
//     holder.
//
//  3. Keep its own goroutines apart. There is one [Lease] of a resource in a
//     process at a time: a second Acquire waits for the first to be released,
//     like a mutex. Those who share a Lease need a lock of their own.
//
//  4. Give every member an ID of its own, and start each once: see "Equal IDs".
//     Members, lease time, epsilon, drift bound, label and key must be the same
//     everywhere: see "How to change the members".
//
//  5. Step aside. There is no queue between members: when a lease is released,
//     whoever asks first has it, and that is the one who has just released it, if
//     it asks again at once. To let others have it, wait for about a lease before
//     that. Within a process, calls are served in their order.
//
// examples/election is a program that does all of it.
//
// # What it is good for, and what not
//
// A group is as available as its majority: three members survive the loss of
// one, five of two. All state is in memory. A member that starts is silent until
// whatever it may have promised in its former life is over: the lease times the
// drift bound, or the lease and twice epsilon if that is longer, 12 s by default.
// [Node.Ready] waits for it. If all members restart at once, no member has a
// lease for as long, and none is held twice.
//
// After a holder has died its leases are free when they have run out on all
// clocks: within the lease time and epsilon, times the drift bound. Shorter
// leases are free sooner, and renewed more often.
//
// # How to change the members
//
// Majorities of different sets of members need not overlap: two of three and three
// of five can have a lease each. So the members of a system, and its times, are
// changed by stopping all members before the first is started with what is new:
//
//  1. Stop all members. What they held is released, or runs out.
//  2. Start them all with the new configuration. No member has a lease for as long as
//     a member that starts is silent, 12 s with the default times; no other wait
//     is needed, since that is longer than any lease.
//
// Addresses are not part of it, and can be changed one member at a time: stop the
// member, tell all others its new address, one after the other, and start it there
// last. The key cannot: members with different keys do not hear each other at all, so that what
// follows does not protect those who change it.
//
// Whoever forgets this is protected as far as members hear each other. Every packet
// carries a fingerprint of the members' IDs, lease, epsilon, drift and
// [Config.Label]. To a member, those with its key and another fingerprint are
// strangers: it does not listen to them, logs an error for each, and shows them in
// [Status]. While a member waits to take part, it greets all members that it was
// told of, some twenty times, and strangers answer, also those that were not told
// of it. While it hears a stranger that takes part it goes on waiting, until it has
// heard none for as long as it waits after a start. A member that takes part goes
// on: a misconfigured newcomer stops no member. The members that start last give way.
// If all start at once, a member waits if it hears as many strangers as members of
// its own kind, itself among them, or more, unless one of its kind takes part.
//
// Why two groups cannot both have a majority, if they hear each other: of two
// members that are strangers and take part, one began later, and for some seconds
// before that the other answered each of its greetings. If it had said that it
// takes part, the later one would have waited; so they began at the same moment,
// and so did all of both groups, each hearing more of its own kind than of the
// other, which cannot be true of both. A change of members one by one is safe then:
// the new ones wait until the last of the old ones is stopped.
//
// That is a net and not a way to go. It does not hold where the old and the new
// members cannot hear each other, for a network that is cut between them, other
// keys, or addresses that have changed hands; and one old member that was
// forgotten keeps all new ones from taking part.
//
// # Equal IDs
//
// Two processes that run as one member are one vote with two memories: each can
// help another to the same lease. So the second one is refused. While it waits to
// take part, it greets all members and the address that its own ID has; whoever
// hears two incarnations of a member lets both prove that they are alive, and tells
// one of them, wherever its packets come from, to give way. Who waits gives way to
// who takes part. Of two that both do, because they started at the same time or were
// cut off from each other, it is one for all who see them. Who is told drops all
// leases and never takes part again: [Node.Done] is closed, and Ready, Acquire and
// [Node.Err] return an error of the kind [leasehold.ErrNameTaken]. It and those who
// have seen two log an error.
//
// A member that starts anew, be it within the same second or at another address, is
// not taken for a second one: its former self is dead, and cannot answer what is
// said after the new one was heard. What cannot be found out is a second process
// that no member hears which hears the first; so this, too, is a net and not a way
// to go. Stop a member before you start it elsewhere.
//
// # What is assumed of clocks
//
// That two members' wall clocks differ by no more than [Config.Epsilon], or that
// their monotonic clocks run at the same rate within [Config.Drift]. One of the two is
// enough. A holder believes in a lease only while both of its clocks allow it,
// and no member takes over before both of its own clocks say that it is over.
//
// A wall clock that is found to be wrong, because it jumps or because the others
// disagree, costs its process all leases, and the log says so. So does a suspended
// computer, whose monotonic clock stood still. What cannot be found out from
// within is a virtual machine that its host stopped with all of its clocks: for
// that there is the fence.
//
// # Concurrency and cost
//
// All methods of a [Node] and of a [Lease] may be called from many goroutines at
// once. A node has one lock around all that it knows; Valid, Fence and Until do
// not take it. Acquiring many resources one by one costs a round trip each;
// [Node.AcquireAll] and [Node.TryAcquireAll] put many into one packet and take
// a few microseconds each. A node has a goroutine for time, one that notices
// sleep, and those of its transport; none for a resource.
//
// # Security
//
// Packets are encrypted and authenticated with the shared key. A process that has the
// key can take or break any lease. Without a key all addresses must be on the
// loopback, or the transport [TCP] with certificates on both sides.
package flease
