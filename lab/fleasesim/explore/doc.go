// Package explore tries all that can happen to a small group of the real Flease
// machine, up to a number of steps, and looks for two holders of one lease.
//
// # DESIGN
//
// There are three processes, all of them acceptors, two of them proposers, and
// one resource. A step is one of: a packet arrives; it arrives, and will arrive
// once more; a proposer asks for the lease, tries for it, or releases it; a
// process dies and starts anew without memory; time passes, by one of a few coarse
// amounts. That a packet is lost is that it never arrives; that an alarm is late
// is that time passes in coarse amounts.
//
// Machines are cloned before they are changed. Package sim/explorer searches. Steps that
// cost nothing in a real network, such as the deaths of processes, are rationed, or nothing
// else would ever be tried.
//
// The clocks differ in a fixed way, which a [Scenario] says: there is one for
// each of the assumptions under which the machine claims to be safe.
package explore
