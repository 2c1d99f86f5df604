package main

import (
	"time"

	"github.com/leasehold-dev/leasehold/lab/bench/report"
)

// A program is a benchmark in a directory beside this one. Number and title are those
// of the benchmark itself: they are here for when it fails.
type program struct {
	name    string
	number  int
	title   string
	module  bool     // it is a module of its own
	spare   string   // of a module: with -quick, the build tag that leaves out what takes long to build
	command bool     // it runs the command leasehold
	seconds int      // that it takes, roughly: for the bar
	limit   int      // seconds after which it is ended
	quick   int      // seconds that it takes with -quick; 0 if it has no part in that
	args    []string // for the page
}

// programs run in this order. With building, they are done in 45 minutes though one of
// them takes as long as it may, and in less than 3 with -quick.
func programs() []program {
	return []program{
		{name: "routing", number: 1, title: "Routing", module: true, spare: "nodskit", seconds: 160, limit: 225, quick: 15},
		{name: "ownership", number: 2, title: "Ownership check", seconds: 12, limit: 30, quick: 5},
		{name: "scale", number: 3, title: "Manager at scale", command: true, seconds: 1380, limit: 1440, quick: 25},
		{name: "propagation", number: 4, title: "Propagation", seconds: 185, limit: 245, quick: 10},
		{name: "availability", number: 5, title: "Availability", command: true, seconds: 120, limit: 170, quick: 30},
		{name: "grants", number: 6, title: "Grant rate", seconds: 170, limit: 210, quick: 18},
		{name: "balance", number: 7, title: "Balance", seconds: 75, limit: 120, quick: 7},
		{name: "flease", number: 8, title: "Flease", seconds: 300, limit: 360, quick: 25, args: []string{"-rounds", "2", "-warm", "1"}},
		{name: "guard", number: 9, title: "Regression guard", seconds: 15, limit: 30},
		{name: "security", number: 10, title: "Security", command: true, seconds: 35, limit: 80},
	}
}

// buildLimit is the time limit of building, where nothing was built before.
const buildLimit = 3 * time.Minute

// wholeLimit is the time limit of all together.
const wholeLimit = 45 * time.Minute

// quickSlack is how many times longer than expected a benchmark may take with -quick:
// that is for busy machines, on which the numbers mean little anyway.
const quickSlack = 4

func (p program) expected(quick bool) int {
	if quick {
		return p.quick
	}
	return p.seconds
}

// maxTime is how long the benchmark may take.
func (p program) maxTime(quick bool) time.Duration {
	if quick {
		return time.Duration(quickSlack*p.quick) * time.Second
	}
	return time.Duration(p.limit) * time.Second
}

// result is what is known of a benchmark without running it.
func (p program) result() report.Result {
	return report.Result{Benchmark: p.name, Number: p.number, Title: p.title}
}

// budget is a table of how long all take, and may take.
func budget(all []program) *report.Table {
	t := report.NewTable("Seconds, as expected", "benchmark", "takes", "at most", "with -quick")
	var takes, quick int
	for _, p := range all {
		t.Add(p.name, p.seconds, p.limit, p.quick)
		takes, quick = takes+p.seconds, quick+p.quick
	}
	t.Add("building, if nothing was built", "", buildLimit.Seconds(), "")
	t.Add("all", takes, wholeLimit.Seconds(), quick)
	return t
}
