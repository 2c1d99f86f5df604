package main

import "github.com/leasehold-dev/leasehold/bench"

// A goal is something that we want.
type goal struct {
	want  string
	check func(map[string]result) (have float64, ok bool)
}

// findGoals are what we want of lookup.Find. They compare those who cut the key space
// into as many pieces: 64 for each server, so that the servers' shares are even
// and a change of servers moves little. The consistent of 1,009 partitions does
// not, and is in the table for those who can do without.
var findGoals = []goal{
	{"at most 1.5 times the index alone", func(r map[string]result) (float64, bool) {
		have := r[bench.Lookup].nanoseconds / r[bench.Index].nanoseconds
		return have, have <= 1.5
	}},
	{"at least 5 times as fast as dskit", fasterThan(bench.Ring, 5)},
	{"at least 1.5 times as fast as consistent", fasterThan(bench.ConsistentLarge, 1.5)},
	{"no allocation", noAllocation(bench.Lookup)},
}

func fasterThan(name string, times float64) func(map[string]result) (float64, bool) {
	return func(r map[string]result) (float64, bool) {
		have := r[name].nanoseconds / r[bench.Lookup].nanoseconds
		return have, have >= times
	}
}

// checkGoals are what we want of owner.Check and owner.Held.
var checkGoals = []goal{
	{"Check at most 2 times a reading of the clock", noMoreThan(bench.Check, 2)},
	{"Held at most 2 times a reading of the clock", noMoreThan(bench.Held, 2)},
	{"no allocation in Check", noAllocation(bench.Check)},
	{"no allocation in Held", noAllocation(bench.Held)},
}

func noMoreThan(name string, times float64) func(map[string]result) (float64, bool) {
	return func(r map[string]result) (float64, bool) {
		have := r[name].nanoseconds / r[bench.Since].nanoseconds
		return have, have <= times
	}
}

// mapGoals are what we want of leasemap.Map.
var mapGoals = []goal{
	{"Update less than 300 ns more than a map and a mutex", lessMoreThan(bench.Update, bench.Plain, 300)},
	{"Get less than 300 ns more than that", lessMoreThan(bench.Get, bench.Plain, 300)},
	{"Update gains from all cores at least 0.6 of what a reading of the clock does", gains(bench.Update, bench.UpdateAll, 0.6)},
	{"(a map and a mutex gains)", gains(bench.Plain, bench.PlainAll, 0)},
	{"no allocation in Update", noAllocation(bench.Update)},
}

// gains compares how much faster something is on all cores with how much faster the
// clock is read there, for which cores share nothing.
func gains(one, all string, atLeast float64) func(map[string]result) (float64, bool) {
	return func(r map[string]result) (float64, bool) {
		have := r[one].nanoseconds / r[all].nanoseconds / (r[bench.Since].nanoseconds / r[bench.SinceAll].nanoseconds)
		return have, have >= atLeast
	}
}

func lessMoreThan(name, than string, nanoseconds float64) func(map[string]result) (float64, bool) {
	return func(r map[string]result) (float64, bool) {
		have := r[name].nanoseconds - r[than].nanoseconds
		return have, have < nanoseconds
	}
}

func noAllocation(name string) func(map[string]result) (float64, bool) {
	return func(r map[string]result) (float64, bool) {
		have := r[name].allocations
		return have, have == 0
	}
}
