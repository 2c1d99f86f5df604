// Package partition decides which owner should have which keys.
//
// A [Policy] is a pure function from an [Input] (who the owners are, what they
// have now, what the keys cost, what limits hold) to an [Assignment] of the
// whole key space. It only says what is wanted. The manager recalls and grants
// leases until the table matches, and a range is never granted before it is
// free, so a policy can make a service slow or unbalanced but never unsafe.
//
// The policies here, which [ByName] finds by their names:
//
//	name        what it is good for                  when owners come and go     ranges per owner   by load
//	balanced    everything; the default              only what must move         16, up to 64       yes, in few keys
//	adaptive    the papers' rule, to compare with    only what must move         64                 yes, in small steps
//	consistent  who has what follows from the        only what must move         64                 no
//	            names alone, in any language
//	even        tests: one can tell who has what     most keys move              1                  no
//	static      fixed by hand                        keys wait for their owner   as given           no
//
// docs/policies.md compares them. For 1,000 owners and a quarter of a million
// cells, a decision of Adaptive takes six times as long as one of Consistent, which
// looks at no cells; one of Balanced takes three to six times as long.
//
// To write another:
//
//  1. Assign must depend on its input alone: no clock, no randomness, nothing
//     remembered from an earlier call. A new leader must come to the same
//     result as the old one, and the simulator must be able to repeat a run.
//  2. Assign must neither change nor keep its input.
//  3. Build the result with [Assignment.Append], which keeps it canonical.
//  4. Assign must give every key to a member, if there is one, unless leaving
//     keys without an owner is the purpose; then it is [Partial].
//  5. What moves for the sake of balance is no more than Input.Budget, and loads
//     that differ by chance from one measurement to the next move nothing.
//
// Call a policy through [Apply], which checks the result.
package partition
