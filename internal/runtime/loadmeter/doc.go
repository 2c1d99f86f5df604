// Package loadmeter measures the work of an owner: the rate per second in each part of its ranges, and the
// keys with the highest cost.
//
// # Design
//
// Problem: every request must be counted. A request costs its server a lease check of about 50 ns, and counting may
// add 5 ns. A counter that many cores write costs more than that, and one counter per core and range costs too
// much memory.
//
// Idea: sample few requests. Count computes a pseudorandom number from the current clock reading and the
// key, and compares it with a threshold that is rarely written: three multiplications and a comparison. The
// weight of a sample is the inverse of its probability, so sums are unbiased and no key is favoured. The
// threshold adapts to the rate, for about 2,000 samples per second. Below that every request is counted.
//
// Costs that an application reports are sampled in proportion to their size: a cost of a tenth of the threshold has a
// probability of a tenth, and the weight of the threshold. A cost above the threshold is always counted, with its own
// value. So sums are unbiased, and a single large cost is neither missed nor multiplied (Duffield, Lund and
// Thorup, "Learn more, sample less", 2005). A request is a cost of 1.
//
// A sample goes to any of a few buffers that is not locked. A full buffer is resampled: the threshold
// becomes twice the mean of its samples, and about half of them stay. So memory is bounded and no caller
// blocks, however sudden the load and however rarely the buffers are drained.
//
// Each report and each change of leases drains the buffers. One goroutine has all other state: exponential moving
// averages with a time constant of 15 s for cells of the key space, and a summary of fixed size for the heaviest
// keys (package hotkeys). Averages of new keys cover the time since they were granted. Buffers contain keys, not
// cells, so a change of leases does not invalidate them.
//
// Rejected alternatives: a random number from math/rand/v2, which alone takes 5 ns, while the whole of
// Count takes 2 or 3 ns (BenchmarkCounting of package owner); a pseudorandom number by one multiplication,
// which favours some keys for seconds in a loop that is in step with the clock; counters per stripe and
// cell, which take more memory than buffers and must be rebuilt when leases change.
//
// A clock that does not advance between two checks returns the same number for the same key. Sums stay
// unbiased, but have a higher variance.
package loadmeter
