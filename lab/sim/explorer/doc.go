// Package explorer is a model checker: it explores all behaviour of a small group of machines, up to a number
// of steps, and checks every state.
//
// # DESIGN
//
// The protocol defines the group and its steps: package sim/explore for managers and owners, package
// fleasesim/explore for Flease. This package searches. A hash identifies a state. A state is explored once
// for each number of remaining steps, and again only if more steps remain than before.
//
// The first step from a state is the one without a fault. All others are detours, and a scenario limits their
// number. So a path can be long enough for a failover and the expiry of leases, and all paths with that
// number of detours are explored. A path is printed as the choices that were not the first one, and can be
// replayed.
//
// The search is depth first, by several workers that share one stack. The number of states
// does not depend on the number of workers; the number of steps may.
package explorer
