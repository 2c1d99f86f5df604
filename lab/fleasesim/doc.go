// Package fleasesim runs groups of the real Flease machine in virtual time, injects faults, and checks the
// invariants on true time. Package explore, below it, explores all interleavings of a small group.
//
// # DESIGN
//
// A world is one run: processes, a network, a nemesis and an oracle. Package sim/engine has what all
// simulators share.
//
// Each process has two clocks. The machine is safe if either the wall clocks agree within epsilon or the
// monotonic clocks have rates within the drift bound. So there are worlds of either [Kind]: in one the
// monotonic clocks have any rate and stand still, in the other the wall clocks drift, step, and deviate
// together. In a third kind both are within their bounds. In a fourth kind two processes have the same ID:
// leases are then not exclusive, but no machine may fail.
//
// A world has five phases. The nemesis injects random faults. Then it ends all faults, and every wanted
// resource must get a holder within the bound. Then all processes try all resources repeatedly: no holder may
// lose its lease, and every try must be answered in time. Then each holder crashes for good, and its
// resources must get another holder, although some processes keep trying. Finally all leases are released,
// and all state must be removed.
//
// Reading order: world.go, process.go, workload.go, network.go, faults.go and
// nemesis.go (the faults), aftermath.go (the later phases), oracle.go, check.go (the invariants).
package fleasesim
