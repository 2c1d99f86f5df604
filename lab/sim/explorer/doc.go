// Package explorer tries all that can happen to a small group of machines, up to a
// number of steps, and checks every state on the way.
//
// # DESIGN
//
// The group and its steps are a protocol's own: package sim/explore for managers and
// owners, package fleasesim/explore for Flease. This package searches. A state is
// known by a hash, and explored once for each number of steps that are left, and again
// only if more are left than before.
//
// What would happen if nothing were wrong is the first of the steps from a state. All
// others are detours, of which a scenario allows few. So a way can be long enough for a
// leader to be replaced and for leases to end, and all ways with so many detours are
// tried. A way is written as the choices that were not the first one, and can be
// replayed.
//
// The search is depth first, by several workers that share one stack. The number of states
// does not depend on the number of workers; the number of steps may.
package explorer
