// Command bench compares Leasehold with papers, peers and lower bounds, and writes
// docs/BENCHMARKS.md.
//
//	cd lab/bench
//	go run . -docs ../../docs        all benchmarks, and the page: make bench
//	go run . -quick                  the headlines, as a table and as JSON lines: make bench-quick
//	go run . -only routing           one benchmark; the others keep their last result
//	go run . -only scale/outage      one of its parts
//	go run . -only scale/fast -rounds 60  a soak of an hour, which runs only if it is named
//	go run . -page -docs ../../docs  only the page, from the stored results
//
// The page keeps the last result of a benchmark that could not be run. Missed goals are shown as
// NO and are no failure.
package main

import (
	"maps"

	"github.com/leasehold-dev/leasehold/lab/bench/availability"
	"github.com/leasehold-dev/leasehold/lab/bench/balance"
	"github.com/leasehold-dev/leasehold/lab/bench/flease"
	"github.com/leasehold-dev/leasehold/lab/bench/grants"
	"github.com/leasehold-dev/leasehold/lab/bench/locks"
	"github.com/leasehold-dev/leasehold/lab/bench/managers"
	"github.com/leasehold-dev/leasehold/lab/bench/ownership"
	"github.com/leasehold-dev/leasehold/lab/bench/proc"
	"github.com/leasehold-dev/leasehold/lab/bench/propagation"
	"github.com/leasehold-dev/leasehold/lab/bench/report"
	"github.com/leasehold-dev/leasehold/lab/bench/routing"
	"github.com/leasehold-dev/leasehold/lab/bench/scale"
)

func main() {
	managers.Play()
	locks.Play()
	proc.Play(roles())
	report.Main(benchmarks())
}

// roles returns the roles of all processes.
func roles() map[string]proc.Role {
	all := make(map[string]proc.Role)
	for _, roles := range []map[string]proc.Role{
		scale.Roles(), propagation.Roles(), availability.Roles(), flease.Roles(),
	} {
		maps.Copy(all, roles)
	}
	return all
}

func benchmarks() []*report.Benchmark {
	return []*report.Benchmark{
		routing.New(), ownership.New(), scale.New(), propagation.New(), availability.New(), grants.New(), balance.New(), flease.New(),
	}
}
