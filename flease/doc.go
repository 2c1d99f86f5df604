// Package flease provides leases that the processes of a group agree on among themselves,
// without a lock server, disk or leader. Any member can acquire the lease of a resource, which
// is a name that the application chooses. At any time at most one member holds it, and another
// can take over after the holder fails.
//
//	node, err := flease.Start(flease.Config{
//		Self: 1,
//		Members: []flease.Member{
//			{ID: 1, Addr: "10.0.0.1:7001"},
//			{ID: 2, Addr: "10.0.0.2:7001"},
//			{ID: 3, Addr: "10.0.0.3:7001"},
//		},
//		Key: secret.New(key), // the same on all members
//	})
//	...
//	lease, err := node.Acquire(ctx, "reports/nightly") // waits until it holds the lease
//	...
//	if !lease.Valid() { // before each act
//		return
//	}
//	write(row, lease.Fence()) // external writes carry the fence
//	...
//	err = lease.Release(ctx) // others can acquire it at once
//
// It implements Flease (Kolbeck, Högqvist, Stender and Hupfeld, "Flease - Lease Coordination
// without a Lock Server"). An acquisition takes two round trips to a majority of the group, a
// renewal one. Many leases share a packet.
//
// # Requirements on the application
//
//  1. Call [Lease.Valid] before each act that only the holder may do. It is local,
//     and costs a fifth more than time.Now. The node renews a lease until it is
//     released. If fewer than a majority of the members reply, the lease expires, and
//     Valid returns false in time.
//
//  2. Fence external effects. A process may pause between Valid and the act for
//     longer than the lease lasts. A write to a store or a request to a service must
//     carry [Lease.Fence], and the receiver must reject it if it has seen a higher
//     fence for the resource. Each holder's fence is higher than those before.
//
//  3. Synchronize goroutines. A process has at most one [Lease] of a resource at a
//     time: a second Acquire waits for the release of the first, like a mutex.
//     Goroutines that share a Lease need a lock of their own.
//
//  4. Give every member a unique ID, and run one process per member: see "Equal IDs".
//     Members, lease time, epsilon, drift bound, label and key must be the same on
//     all members: see "Membership changes".
//
//  5. Wait for about a lease before acquiring a resource again that others should
//     get. Members do not queue: the first request after a release succeeds, and the
//     releasing process is usually the first. Calls within a process are served in
//     order.
//
// # Availability
//
// A group is available while a majority is: three members survive the loss of one, five of two.
// All state is in memory. A member that starts does not take part until all promises that it
// may have made before a restart have expired: the lease times the drift bound, or the lease
// and twice epsilon if that is longer, 12 s by default. [Node.Ready] waits for it. If all
// members restart at once, no member acquires a lease for that time, and no lease is held
// twice.
//
// The leases of a failed holder are free when they have expired on all clocks: within the lease
// time and epsilon, times the drift bound. Shorter leases are free sooner, and are renewed more
// often.
//
// # Membership changes
//
// Majorities of different sets of members need not overlap: two of three and three of five
// members can hold the same lease. So to change the members of a group or its times, stop all
// members before the first one starts with the new configuration:
//
//  1. Stop all members. Their leases are released or expire.
//  2. Start all members with the new configuration. No member acquires a lease for the
//     time that a started member waits, 12 s with the default times. No other wait is
//     required, because that is longer than any lease.
//
// Addresses can change one member at a time: stop the member, restart all others with its new
// address, one after the other, and start the member there last. To rotate the key see
// [Config.OtherKeys]. Members with different keys drop each other's packets, so the protection
// below does not detect them.
//
// Mixed configurations are detected as far as packets arrive. Every packet has a fingerprint of
// the members' IDs, lease, epsilon, drift and [Config.Label]. A process with the same key and
// another fingerprint is a stranger: a member drops its messages, logs an error, and shows it
// in [Status]. While a member waits after its start, it greets all members of its configuration
// about twenty times, and strangers reply, even if their configuration does not include the
// sender. While a waiting member receives packets of a stranger that takes part, it continues
// to wait, until there were none for as long as the wait after a start. A member that takes
// part continues: a misconfigured newcomer does not stop it. So the members that start last
// give way. If all start at once, a member waits if it sees at least as many strangers as
// members of its own group, including itself, unless one of its group takes part.
//
// Two groups that exchange packets cannot both have a majority. Suppose that both do. Of two
// strangers that take part, one started later, and for some seconds before that the other
// replied to each of its greetings. If a reply had stated that its sender takes part, the later
// one would have waited. So both started to take part at the same moment, and so did all
// members of both groups, each seeing more members of its own group than of the other. That
// cannot be true of both. So a change of members one by one is safe: the new ones wait until
// the last of the old ones has stopped.
//
// Do not rely on this detection. It fails if packets between old and new members do not arrive:
// after a network partition, a change of the key, or a reuse of addresses. And one old member
// that still runs keeps all new ones waiting.
//
// # Equal IDs
//
// Two processes that run as one member are one vote with two memories: each can grant the same
// lease to another holder. So the second one is stopped. While it waits after its start, it
// greets all members and the address of its own ID. A member that receives packets of two
// incarnations of one member sends a challenge to both. If both reply, it requests one of them
// to give way, at the address that its packets come from. A waiting process gives way to one
// that takes part. If both take part, because they started at the same time or were
// partitioned, all members choose the same one. That process drops all leases and does not take
// part again: [Node.Done] is closed, and Ready, Acquire and [Node.Err] return an error of kind
// [leasehold.ErrNameTaken]. It and the members that detected it log an error.
//
// A restarted member is not a duplicate, even within the same second or at another address: its
// former process has ended and cannot reply to challenges. A duplicate is not detected if no
// member receives packets of both processes. So do not rely on this detection either: stop a
// member before starting it elsewhere.
//
// # Clocks
//
// Leases are exclusive if the wall clocks of any two members differ by at most
// [Config.Epsilon], or the rates of their monotonic clocks by at most the factor
// [Config.Drift]. One of the two is enough: a lease is valid only while both clocks of its
// holder allow it, and no member takes over before the lease has expired on both of its own
// clocks.
//
// A process drops all leases, and logs it, when its wall clock jumps, when the other members'
// clocks disagree with it, or after the computer was suspended, which stops the monotonic
// clock. A host that pauses a virtual machine with all of its clocks cannot be detected from
// within: use the fence.
//
// # Concurrency and cost
//
// All methods of a [Node] and of a [Lease] are safe for concurrent use. A node has one lock
// around its state; Valid, Fence and Until do not take it. Acquiring resources one by one costs
// two round trips each; [Node.AcquireAll] and [Node.TryAcquireAll] put many into one packet and
// take a few microseconds each. A node has a goroutine for its timer, one that detects
// suspends, and those of its transport; none per resource.
//
// # Security
//
// Packets are encrypted and authenticated with the shared key. A process with the key can
// acquire or break any lease. Without a key all addresses must be on the loopback, or the
// transport must be [TCP] with certificates on both sides.
package flease
