// Package sim runs whole clusters of the real state machines in virtual time, injects faults, and checks the
// invariants after every event.
//
// # DESIGN
//
// A world is one run: manager, owner and lookup processes, a network, a store, a nemesis and an oracle.
// Package engine has what all simulators share.
//
// Each process has a clock with its own rate, and its machine reads only that clock. The oracle has the true
// time and the state of all processes. So it detects two owners of a key at the same instant, which no
// process in the world can detect.
//
// A world has two phases. In the first, the nemesis injects faults at random. Then it ends all faults, and
// the system must recover by itself within the bound of I6.
//
// Reading order: world.go, hosts.go, managers.go, owners.go and lookups.go (the
// processes), store.go, memory.go (managers without a store), faults.go and nemesis.go
// (the faults), oracle.go, check_*.go (the invariants).
package sim
