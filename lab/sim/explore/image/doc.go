// Package image makes copies of machines, and descriptions of them by which equal
// ones are known.
//
// # DESIGN
//
// An explorer goes on from one state in many ways, so it must be able to copy a
// machine; and it must know a state that it has seen. Machines cannot be asked for
// either: what only an explorer needs has no place in what we ship, and a method
// written by hand forgets the field that was added last. So both are derived from the
// types, by reflection: all that a machine can reach is copied and described, unless a
// rule says that it never changes or decides nothing. What has no rule is treated with
// care, so that a new field makes the explorer slower at worst.
//
// Reflection is done once for each type: what comes of it is a plan, a function that
// knows offsets. Pointers are followed as a graph: what two fields share in the
// original they share in the copy, and a description has it once.
//
// Descriptions can be made as if processes had each other's names (see [Names]).
// Two states that differ only in who is who have the same set of descriptions.
package image
