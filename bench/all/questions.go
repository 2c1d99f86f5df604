package main

import (
	"fmt"
	"time"

	"github.com/leasehold-dev/leasehold/bench/kit"
)

// A question is a program in a directory of this one's parent. Its number and its
// title are those that it has itself: they are here for when it cannot say so.
type question struct {
	name    string
	number  int
	title   string
	module  bool     // it is a module of its own
	spare   string   // of a module: with -quick, the build tag that leaves out what takes long to build
	command bool     // it runs the command leasehold
	seconds int      // that it takes, roughly: for the bar
	limit   int      // seconds after which it is given up
	quick   int      // that it takes with -quick; 0 if it has no part in that
	args    []string // for what goes to the page
}

// questions are asked in this order. With what building takes, they are done in 45 minutes
// though one of them takes as long as it may, and in less than 3 with -quick.
func questions() []question {
	return []question{
		{name: "routing", number: 1, title: "Routing", module: true, spare: "nodskit", seconds: 160, limit: 250, quick: 15},
		{name: "ownership", number: 2, title: "Ownership check", seconds: 12, limit: 30, quick: 5},
		{name: "scale", number: 3, title: "Manager at scale", command: true, seconds: 1380, limit: 1470, quick: 25},
		{name: "propagation", number: 4, title: "Propagation", seconds: 185, limit: 280, quick: 10},
		{name: "availability", number: 5, title: "Availability", command: true, seconds: 120, limit: 170, quick: 30},
		{name: "grants", number: 6, title: "Grant rate", seconds: 170, limit: 210, quick: 18},
		{name: "balance", number: 7, title: "Balance", seconds: 75, limit: 120, quick: 7},
		{name: "flease", number: 8, title: "Flease", seconds: 300, limit: 360, quick: 25, args: []string{"-rounds", "2", "-warm", "1"}},
		{name: "rival", number: 9, title: "Rival", seconds: 2, limit: 15},
		{name: "guard", number: 10, title: "Regression guard", seconds: 15, limit: 30},
	}
}

// buildLimit is what building may take, where nothing was built before.
const buildLimit = 3 * time.Minute

// wholeLimit is what all may take together.
const wholeLimit = 45 * time.Minute

// quickSlack is how many times longer than foreseen a question may take with -quick:
// that is for busy machines, on which the numbers mean little anyway.
const quickSlack = 4

func (q question) foreseen(quick bool) int {
	if quick {
		return q.quick
	}
	return q.seconds
}

// most is how long the question may take.
func (q question) most(quick bool) time.Duration {
	if quick {
		return time.Duration(quickSlack*q.quick) * time.Second
	}
	return time.Duration(q.limit) * time.Second
}

// result is what is known of a question without asking it.
func (q question) result() kit.Result {
	return kit.Result{Question: q.name, Number: q.number, Title: q.title}
}

func names(all []question) []string {
	var names []string
	for _, q := range all {
		names = append(names, q.name)
	}
	return names
}

// budget is a table of how long everything takes, and may take.
func budget(all []question) *kit.Table {
	t := kit.NewTable("Seconds, as foreseen", "question", "takes", "at most", "with -quick")
	var takes, quick int
	for _, q := range all {
		t.Add(q.name, fmt.Sprint(q.seconds), fmt.Sprint(q.limit), fmt.Sprint(q.quick))
		takes, quick = takes+q.seconds, quick+q.quick
	}
	t.Add("building, if nothing was built", "", fmt.Sprintf("%.0f", buildLimit.Seconds()), "")
	t.Add("all", fmt.Sprint(takes), fmt.Sprintf("%.0f", wholeLimit.Seconds()), fmt.Sprint(quick))
	return t
}
