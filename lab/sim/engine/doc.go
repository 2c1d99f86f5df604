// Package engine is what simulators of different protocols share: a queue of
// events in true time, clocks that drift, a network that loses, repeats and
// delays, kinds of faults and their weights, the trace and its hash, and
// campaigns of many seeds.
//
// # DESIGN
//
// A world is one run. It runs on one goroutine, with one queue of events and
// one seeded source of randomness, so that the seed determines all that happens
// in it. Nothing is left to the Go scheduler, which is why testing/synctest
// would not do. What a world consists of, and what must hold in it, is the
// business of the simulator: package sim for managers, owners and lookups,
// package fleasesim for Flease. A simulator embeds a [World] and offers itself
// as a [Simulation].
//
// The order in which a simulator draws random numbers is part of a seed's
// meaning. A change of it changes the trace hash of every seed.
package engine
