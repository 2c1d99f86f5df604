// Package report is what all benchmarks share: flags, interleaved rounds, medians
// with their spread, goals, tables, plots, the machine, and the page
// docs/BENCHMARKS.md.
//
// # Adding a benchmark
//
//  1. Make a directory beside this one with a package main that calls [Main] with a
//     [Benchmark]. Its package comment says what is compared, and how to run it.
//  2. In Run, state the number of steps with [Run.Expect], and report each with
//     [Run.Step]. Interleave the contestants: each has a turn in every round.
//     [Compete] does that for loops, [Rounds] for anything else.
//  3. Add the results to the [Result]: sections with tables and plots, headlines,
//     goals, and with [Result.Lose] where a peer is better, and why. A contestant
//     that could not take part goes to [Run.Skip].
//  4. Honour Run.Quick: the same headlines, in some 20 s.
//  5. Add the directory to the list in lab/bench/all, with the seconds that it takes
//     and its time limit: cd lab/bench && go run ./all -list.
//  6. Run it: cd lab/bench && go run ./NAME, and with -docs ../../docs to store the
//     result in docs/benchmarks and write docs/BENCHMARKS.md again.
//
// A benchmark whose dependencies conflict with those of the others is a module of
// its own, as routing is; its go.mod says why.
//
// # Method
//
// A machine with other work is slow now and then. So turns are short and many,
// contestants alternate, and medians are compared: a slow moment slows all of them
// down, and the median leaves it out. The slowest and the fastest turn stand
// beside it.
package report
