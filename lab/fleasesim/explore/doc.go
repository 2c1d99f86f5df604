// Package explore explores all behaviour of a small group of the real Flease machine, up to a number of
// steps, and looks for two holders of one lease.
//
// # DESIGN
//
// There are three processes, all of them acceptors, two of them proposers, and one resource. These are the
// steps: Deliver a packet. Deliver it, and keep a duplicate in flight. Let a proposer acquire, try or release
// the lease. Restart a process without memory. Advance the time by one of a few coarse amounts. A lost packet
// is one that is not delivered; timers are late because the time advances in coarse amounts.
//
// Machines are cloned before a step. Package sim/explorer does the search. Steps that need no other step
// before, such as crashes, are limited, because they would crowd out all others.
//
// The clocks differ in a fixed way, which a [Scenario] defines. There is one scenario for each of the
// assumptions under which the machine is safe.
package explore
