// Command guard counts what the hot paths cost, in instructions and allocations,
// and compares it with what was recorded. Time is too noisy for that; these are
// the same on a busy machine.
//
//	cd lab/bench && go run ./guard           counts, and compares
//	cd lab/bench && go run ./guard -record   writes down what it costs now
//
// It says which paths cost more than 10 % more instructions than recorded, or any
// allocation more. The test of this package fails for allocations alone. Record anew
// after a change that is worth it, and say in the commit what it buys.
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
// How busy the machine is changes nothing about the numbers, but much about the time:
// at each instruction one process waits for the other. Both stay on one core, so that
// they hand over without waking another. If it takes too long all the same, the child is
// killed, and the paths that are left are not counted.
//
// That needs Linux on amd64, and the permission to trace a child. Where it cannot
// be done, allocations alone are compared, and the output says so. Compilers
// differ, too: instructions are compared only with those that the same release of
// Go led to.
package main
