package main

import "time"

// A size is how many there are, and what happens to them.
type size struct {
	name            string
	title           string
	owners, lookups int
	together        int // lookups that share a connection
	grow            time.Duration
	steps           int // in which it grows to that, each of which is measured; 0 is 1
	// restarts is within how long all owners are restarted, and then all lookups;
	// or, if both is set, all at once. 0: none are.
	restarts time.Duration
	both     bool
	// failures is how long nodes fail for, at each step; 0: none do.
	failures time.Duration
}

func (s size) clients() int     { return s.owners + s.lookups }
func (s size) connections() int { return s.owners + (s.lookups+s.together-1)/s.together }

// lifetime is how long a node lives in PRS's experiment, and compressed is how
// many times faster our nodes fail.
const (
	lifetime   = 8 * time.Hour
	compressed = 12
)

// paperRestarts is how long Centrifuge's experiments took.
const paperRestarts = 32 * time.Minute

// sizes are asked in this order. A process may open 20,000 files on many systems,
// and a manager takes 16,384 connections: with 50,000 lookups, five share one.
func sizes(quick bool) []size {
	centrifuge := size{name: "centrifuge", title: "Centrifuge's testbed", owners: 200, lookups: 2016, together: 1, grow: 4 * time.Second, restarts: 40 * time.Second}
	if quick {
		centrifuge.restarts = 0 // in seconds, they would be a stampede, and no rollout
		return []size{centrifuge}
	}
	return []size{
		centrifuge,
		{name: "prs", title: "PRS's testbed", owners: 500, lookups: 2000, together: 1, grow: 2 * time.Second, steps: 5, failures: 6 * time.Second},
		{name: "5x", title: "5 times", owners: 1000, lookups: 10_000, together: 1, grow: 30 * time.Second, restarts: 60 * time.Second, both: true},
		{name: "25x", title: "25 times", owners: 5000, lookups: 50_000, together: 5, grow: 60 * time.Second, restarts: 4 * time.Minute, both: true},
	}
}
