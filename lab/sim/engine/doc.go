// Package engine is the common part of the simulators of different protocols: a queue of events in true time,
// clocks with drift, a network that loses, duplicates and delays messages, kinds of faults with weights, the
// trace and its hash, and campaigns of many seeds.
//
// # DESIGN
//
// A world is one run. It runs on one goroutine, with one queue of events and one seeded source of randomness,
// so the seed determines all events. The result does not depend on the Go scheduler; with testing/synctest it
// would. The simulators define processes and invariants: package sim for managers, owners and lookups,
// package fleasesim for Flease. A simulator embeds a [World] and implements [Simulation].
//
// The order in which a simulator draws random numbers is part of the meaning of a seed. A change of it
// changes the trace hash of every seed.
package engine
