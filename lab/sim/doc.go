// Package sim runs whole clusters of the real machines in virtual time, makes
// everything go wrong that may go wrong, and checks after every event that
// what must always hold does hold.
//
// # DESIGN
//
// A world is one run: manager, owner and lookup processes, a network, a store,
// a nemesis and an oracle. What it has in common with worlds of other protocols is in
// package engine.
//
// Each process has a clock that runs at its own rate and a machine that sees
// only that clock. The oracle sees true time and all processes at once: that
// is how it can tell that two owners hold a key at the same instant, which no
// process in the world could.
//
// A world has two phases. First the nemesis strikes at random. Then it heals
// everything, and the system must recover by itself within the bound of I6.
//
// Reading order: world.go, hosts.go, managers.go, owners.go and lookups.go (the
// processes), store.go, memory.go (managers without a store), faults.go and nemesis.go
// (the faults), oracle.go, check_*.go (the invariants).
package sim
