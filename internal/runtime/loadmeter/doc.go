// Package load measures how much work the keys of an owner cost it: how much per
// second in each part of what it holds, and which keys cost most.
//
// # DESIGN
//
// The problem: every request is to be counted, a request costs its server's
// check of a lease some 50 ns, and counting may add 5 to that. A counter that
// many cores write costs more than that, and one per core and range more memory
// than it is worth.
//
// So few requests are looked at. A check draws a lot, made of the reading of the
// clock that it has at hand and the key: three multiplications and a comparison
// with a threshold that is hardly ever written. One that is drawn counts for as
// many as the lot makes it stand for, so that no key is favoured and sums come
// out right. The threshold follows the work, so that about 2,000 a second are
// drawn from any number; below that each one is counted.
//
// Costs that an application reports are drawn in proportion to their size: one
// that is a tenth of the threshold has a chance of a tenth, and then counts for
// the threshold; one above it always counts, for itself. The sum is right again,
// and no single large cost is missed, or counted a thousand times (Duffield, Lund
// and Thorup, "Learn more, sample less", 2005). A request is a cost of 1.
//
// What is drawn goes to one of a few buffers, whichever is free, with a lock of
// its own. A buffer that is full is thinned: the threshold becomes twice the mean
// of what is in it, and everything in it is drawn again, which leaves about half.
// So memory is bounded and nobody waits, however sudden the work and however
// rarely the buffers are emptied.
//
// They are emptied with each report, and when leases come or go, by the one
// goroutine that has all of the rest: averages that forget with a time constant
// of 15 s, for cells of the key space, and for the heaviest keys a summary of
// fixed size (package hotkeys). Averages of keys that are new are over the time
// since they came. A buffer has keys, not cells, so that it does not matter what
// was held when something was drawn.
//
// What was tried and dropped: a random number from math/rand/v2 instead of the
// lot, which alone takes the 5 ns, where the lot and all else take 2 or 3 of them
// (BenchmarkCounting of package owner); a lot that is one multiplication, which a
// loop in step with the clock can bring to favour some keys for seconds; counters
// per stripe and cell, which take more memory than buffers and have to be remade
// whenever a lease comes or goes.
//
// A clock that stands still between two checks draws the same lot for the same
// key. Sums are right all the same, but vary more.
package loadmeter
