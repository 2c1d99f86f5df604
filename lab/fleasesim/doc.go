// Package fleasesim runs groups of the real Flease machine in virtual time,
// makes everything go wrong that may go wrong, and checks on true time that what
// must always hold does hold. Package explore, below it, tries all interleavings
// of a small group instead of some of a large one.
//
// # DESIGN
//
// A world is one run: processes, a network, a nemesis and an oracle. What it has in common
// with worlds of other protocols is in package sim/engine.
//
// Each process has two clocks. The machine claims to be safe if either the wall
// clocks agree within epsilon or the monotonic ones run at rates within the drift
// bound, so there are worlds of either [Kind]: in one the monotonic clocks race
// and stand still, in the other the wall clocks drift, step, and are wrong
// together. In a third kind both are as they should be, and in a fourth two
// processes have the same id, which no lease survives, but every machine must.
//
// A world has five phases. The nemesis strikes at random; then it heals
// everything, and every resource that someone wants must get a holder within the
// bound; then everyone asks who has what, time and again, and nobody may lose
// anything, or wait for an answer; then each holder dies for good, and its resources must find another
// one, although some keep asking who has it; then all is released, and must be
// forgotten.
//
// Reading order: world.go, process.go, workload.go, network.go, faults.go and
// nemesis.go (the faults), aftermath.go (the later phases), oracle.go, check.go (the invariants).
package fleasesim
