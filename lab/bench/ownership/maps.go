package main

import (
	"context"
	"sync"

	"github.com/leasehold-dev/leasehold/lab/bench/loadgen"
	"github.com/leasehold-dev/leasehold/lab/bench/report"
	"github.com/leasehold-dev/leasehold/leasemap"
)

// What a server does to a value of its state, on one core and on all, and what it is
// compared with.
const (
	namePlain     = "map and mutex, add 1"
	nameUpdate    = "leasemap Update, add 1"
	nameGet       = "leasemap Get"
	namePlainAll  = "map and mutex, all cores"
	nameUpdateAll = "leasemap Update, all cores"
	nameSinceAll  = "time.Since, all cores" // what the machine's cores are worth
)

// mapContestants are a map with a lock around it, and a map that checks leases, of
// an owner that has half of all keys.
func mapContestants(ctx context.Context) ([]report.Contestant, error) {
	one, err := loadgen.StartLocal(ctx)
	if err != nil {
		return nil, err
	}
	m, err := leasemap.New(leasemap.Config[int]{})
	if err != nil {
		one.Close()
		return nil, err
	}
	m.Use(one.Owner)
	names := one.Names()
	update := func(first, n int) int {
		sum := 0
		for i := range n {
			v, err := m.Update(ctx, names[(first+i)%len(names)], addOne)
			if err != nil {
				panic(err) // the owner has all of them
			}
			sum += int(v.Number)
		}
		return sum
	}
	get := func(n int) int {
		sum := 0
		for i := range n {
			v, _, err := m.Get(names[i%len(names)])
			if err != nil {
				panic(err)
			}
			sum += v
		}
		return sum
	}
	plain := plainMap(names)
	return []report.Contestant{
		{Name: namePlain, Run: func(n int) int { return plain(0, n) }},
		{Name: nameUpdate, Run: func(n int) int { return update(0, n) }},
		{Name: nameGet, Run: get},
		{Name: namePlainAll, Run: onAllCores(plain)},
		{Name: nameUpdateAll, Run: onAllCores(update), Close: one.Close},
		{Name: nameSince, Run: func(n int) int { return readClock(0, n) }},
		{Name: nameSinceAll, Run: onAllCores(readClock)},
	}, nil
}

func addOne(v *int) error { *v++; return nil }

// plainMap is what there must be.
func plainMap(names []string) func(first, n int) int {
	var mu sync.Mutex
	values := make(map[string]int)
	return func(first, n int) int {
		sum := 0
		for i := range n {
			mu.Lock()
			values[names[(first+i)%len(names)]]++
			sum++
			mu.Unlock()
		}
		return sum
	}
}

// onAllCores divides the work. Everyone begins at another place.
func onAllCores(work func(first, n int) int) func(int) int {
	return func(n int) int {
		return report.OnAllCores(n, func(core, n int) int { return work(core*loadgen.Asked/4, n) })
	}
}
