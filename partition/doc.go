// Package partition assigns keys to owners.
//
// A [Policy] is a pure function from an [Input] (members, current assignment,
// loads and limits) to an [Assignment] of the
// whole key space. The assignment is only a target: the manager recalls and grants
// leases until the table matches it, and grants a range only after it is
// released or expired. So a policy can make a service slow or unbalanced, but not unsafe.
//
// The policies of this package, by the names of [ByName]:
//
//	name        purpose                              moves on join and leave     ranges per owner   by load
//	balanced    general; the default                 the minimum                 16, up to 64       yes, with few keys
//	adaptive    the papers' rule, for comparison     the minimum                 64                 yes, in small steps
//	consistent  owners computable from the names     the minimum                 64                 no
//	            alone, in any language
//	even        tests with predictable owners        most keys                   1                  no
//	static      fixed by an operator                 keys wait for their owner   as configured      no
//
// docs/policies.md compares them. For 1,000 owners and a quarter of a million
// cells, a decision of Adaptive takes six times as long as one of Consistent, which
// ignores the cells; one of Balanced takes three to six times as long.
//
// Rules for another policy:
//
//  1. Assign depends only on its input: no clock, no randomness, no state
//     of earlier calls. A new leader must compute the same
//     result as the old one, and the simulator must be able to replay a run.
//  2. Assign neither changes nor keeps its input.
//  3. Build the result with [Assignment.Append], which keeps it canonical.
//  4. Assign assigns every key to a member, if there is one, except in a policy whose purpose
//     is to leave keys without an owner; such a policy is [Partial].
//  5. Balancing moves at most Input.Budget of the keys, and random differences between two
//     measurements move none.
//
// Call a policy through [Apply], which checks the result.
package partition
