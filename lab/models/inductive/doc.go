// Package inductive proves that the invariant of lease.smt is inductive, with z3: the first state satisfies it, every
// action preserves it, and it implies that at most one lease of a key is valid at an instant. So this holds after any
// number of steps, with any number of sessions, managers and messages.
//
// Some of its conjuncts have the same names as checks of the simulator, which judge the machines.
package inductive
