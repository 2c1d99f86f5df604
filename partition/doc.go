// Package partition decides which owner should have which keys.
//
// A [Policy] is a pure function from an [Input] (who the owners are, what they
// have now, what limits hold) to an [Assignment] of the whole key space. It
// only says what is wanted. The manager recalls and grants leases until the
// table matches, and a range is never granted before it is free, so a policy
// can make a service slow or unbalanced but never unsafe.
//
// The policies here:
//
//   - [Consistent]: consistent hashing with virtual nodes (Centrifuge 2).
//     It moves the fewest keys when owners come and go.
//   - [Even]: equal slices in the order of the owners' names. It is easy to
//     predict and moves most keys when owners come and go.
//   - [Static]: an assignment that was fixed by hand.
//
// To write another:
//
//  1. Assign must depend on its input alone: no clock, no randomness, nothing
//     remembered from an earlier call. A new leader must come to the same
//     result as the old one, and the simulator must be able to repeat a run.
//  2. Assign must neither change nor keep its input.
//  3. Build the result with [Assignment.Append], which keeps it canonical.
//  4. Assign must give every key to a member, if there is one, unless leaving
//     keys to nobody is the purpose.
//
// Whoever calls a policy passes the result through [Validate] before use.
package partition
