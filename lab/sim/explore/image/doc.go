// Package image copies machines, and describes them: equal descriptions identify equal machines.
//
// # DESIGN
//
// An explorer continues from one state in many ways, so it must copy machines, and it must identify states
// that were explored before. Machines have no methods for that: code for the explorer only does not belong in
// a product, and a method can miss a new field. So both are derived from the types, by reflection. Everything
// that is reachable from a machine is copied and described, unless a rule declares that it is constant or
// does not affect the future. Without a rule, a new field at worst makes the explorer slower.
//
// Reflection runs once for each type: the result is a plan, a function with the offsets of fields. Pointers
// are followed as a graph: two pointers to the same value in the original point to the same value in the
// copy, and a description has it once.
//
// Descriptions can be made with permuted names of processes (see [Names]). Symmetric states, which differ
// only in these names, have the same set of descriptions.
package image
