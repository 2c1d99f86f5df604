// Package kit is what all questions of the benchmark share: contestants that
// take turns, medians with their spread, goals, tables, plots, the machine, and
// a page that is made of all of it.
//
// # To add a question
//
//  1. Make a directory beside this one, with a package main whose main calls
//     [Main] with a [Question]. Its package comment says what is compared with
//     what, and how to run it.
//  2. In the question's Run, say how many steps there are with [Run.Expect], and
//     report each with [Run.Step]. Interleave: everyone has a turn in each round.
//     [Compete] does that for loops, [Rounds] for anything else.
//  3. Add what you found to the [Result]: sections with tables and plots,
//     headlines, goals, and what is lost to whom and why, in Losses. What could
//     not take part goes to Skipped, with the reason.
//  4. Honour Run.Quick: the same headlines, in some 20 s.
//  5. Add the directory to the list in bench/all, with the seconds that it takes
//     and after which it is given up, so that "make bench" and "make bench-quick" run
//     it, too. What all may take is bounded: cd bench && go run ./all -list.
//  6. Run it: cd bench && go run ./NAME, and with -docs ../docs to store its
//     result in docs/benchmarks and write docs/BENCHMARKS.md again.
//
// A question that fails returns an error, and the page says so: see [StoreFailure].
//
// A question that needs what does not build with the dependencies of the others
// is a module of its own, as routing is; its go.mod says why.
//
// # How it is measured
//
// A machine that has other work is slow now and then. So turns are short and
// many, everyone has one in each round, and medians are compared: a slow moment
// slows all of them down, and the median leaves it out. The slowest and the
// fastest turn stand beside it.
package kit
