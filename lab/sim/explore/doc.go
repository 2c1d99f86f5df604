// Package explore explores all behaviour of a small cluster of the real machines, up to a number of steps,
// and checks the invariants in every state.
//
// # DESIGN
//
// There are two managers with a store, two owners, and a namespace of two ranges; in some scenarios also a
// lookup. The machines are the same as in the simulator. The environment is simpler: a message is in flight until a step delivers it, and only
// a step advances the time.
//
// These are the steps: Deliver a message. Deliver it, and keep a duplicate in flight. Execute a request at
// the store and reply. Execute it and lose the reply. Time it out, and execute it later or never. Restart a
// process without memory. Stop a process, and continue it. Advance the time to the next wake of a process. A
// lost message is one that is not delivered; a late timer is a stopped process. Each step is possible at any
// time, but the step without a fault comes first, and all others are detours: see package explorer, which
// does the search.
//
// Machines are copied before a step. A hash of all data that affects the future identifies a state: see
// package image. Symmetric states, which differ only in the names of processes with equal clock rates, have
// the same hash. Names affect two orders, and neither matters. A leader numbers messages to several owners in
// one step in the order of their names; numbers of messages to different owners are not compared. If several
// processes are due at once, they are woken in a fixed order; with few detours the other order is not
// explored.
//
// Clocks have fixed rates, as far apart as the drift bound allows, in combinations that a [Scenario] defines.
// The hash contains absolute instants, not the time until a wake: messages are numbered, so a later state is
// never equal to an earlier one. Randomness is constant.
//
// Leases are suspended at the beginning of the outage scenarios, and in others after a late failover. A
// report counts the states with suspended leases, and the steps in which one is resumed or ends.
//
// Moves of state, suspended computers and groups without a store are not included. The simulator has them.
package explore
