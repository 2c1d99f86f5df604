// Package explore tries all that can happen to a small cluster of the real machines, up
// to a number of steps, and looks at every state whether what must always hold does.
//
// # DESIGN
//
// There are two managers with a store, two owners, and a namespace of two ranges. The
// machines are those that the simulator runs, and what is around them is simpler than
// there: a message is under way until it arrives, and time passes only when it is told to.
//
// A step is one of: a message arrives; it arrives, and will arrive once more; the store
// does what it is asked for and answers; it does so and the answer is lost, or it does
// not answer in time and may do it yet; a process dies and starts anew without memory; a
// process stands still, and goes on; time passes until something is due. That a message
// is lost is that it never arrives; that an alarm is late is that its process stands
// still. Each is possible at any time, but what would happen if nothing were wrong comes
// first, and all else is a detour: see package explorer, which searches.
//
// Machines are copied before they are changed, and states that were seen before are known
// by a hash of all that decides what happens next: see package image. States that differ
// only in who is who are taken for one, among processes whose clocks run alike. Names
// decide two things, and neither matters: in which order a leader numbers messages to
// several owners, which are compared only with others to the same; and which process comes
// first when several are due at once, which with few detours is not tried both ways.
//
// Clocks run at fixed rates, as far apart as the drift bound allows, in a way that a
// [Scenario] says. Times are part of a state as they are, and not how far off they are:
// messages are numbered, so that what happens later is never the same as what happened
// before. Randomness is always the same.
//
// Leases are suspended at the beginning of the outage scenarios, and in others when a leader is
// replaced late. A report counts the states with suspended leases, and the steps in which one
// is resumed or ends.
//
// What is not here: lookups, moves of state, sleep, the group without a store. The
// simulator has them.
package explore
