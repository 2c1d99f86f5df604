// Command guard counts what the hot paths cost, in instructions and allocations,
// and compares it with what was recorded. Time is too noisy for that; these are
// the same on a busy machine.
//
//	cd bench && go run ./guard           counts, and compares
//	cd bench && go run ./guard -record   writes down what it costs now
//
// The test of this package does the same: it fails if a path costs more than 10 %
// more instructions than recorded, or any allocation more. Record anew after a
// change that is worth it, and say in the commit what it buys.
//
// # How instructions are counted
//
// A child, which is this program again, does the thing a few times between
// breakpoints. Its parent traces it: all its other threads are stopped, so that
// neither the scheduler nor a collector has a part in it, and the one that works
// goes on instruction by instruction, which are counted. The least of some
// repetitions counts. For that one, the clock stands still: its parent answers when
// it reads one. How many instructions the kernel's own answer takes, which differs
// from machine to machine, is left out.
//
// That needs Linux on amd64, and the permission to trace a child. Where it cannot
// be done, allocations alone are compared, and the output says so. Compilers
// differ, too: instructions are compared only with those that the same release of
// Go led to.
package main
