package bench

import (
	"context"
	"runtime"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/leasemap"
	"github.com/leasehold-dev/leasehold/owner"
)

// What a server does to a value of its state, on one core and on all, and what it is
// compared with.
const (
	Plain     = "map and mutex, add 1"
	Update    = "leasemap Update, add 1"
	Get       = "leasemap Get"
	PlainAll  = "map and mutex, all cores"
	UpdateAll = "leasemap Update, all cores"
	SinceAll  = "time.Since, all cores" // what the machine's cores are worth
)

// MapContestants returns a map with a lock around it, and a map that checks leases, of
// an owner that has half of all keys.
func MapContestants() ([]Contestant, error) {
	o, stop, err := startOwner()
	if err != nil {
		return nil, err
	}
	m, err := leasemap.New(leasemap.Config[int]{})
	if err != nil {
		stop()
		return nil, err
	}
	m.Use(o)
	names := ownedNames(o)
	ctx := context.Background()
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
	var mu sync.Mutex
	values := make(map[string]int)
	plain := func(first, n int) int {
		sum := 0
		for i := range n {
			mu.Lock()
			values[names[(first+i)%len(names)]]++
			sum++
			mu.Unlock()
		}
		return sum
	}
	return []Contestant{
		{Plain, func(n int) int { return plain(0, n) }, nothing},
		{Update, func(n int) int { return update(0, n) }, nothing},
		{Get, func(n int) int {
			sum := 0
			for i := range n {
				v, _, err := m.Get(names[i%len(names)])
				if err != nil {
					panic(err)
				}
				sum += v
			}
			return sum
		}, nothing},
		{PlainAll, func(n int) int { return onAllCores(n, plain) }, nothing},
		{UpdateAll, func(n int) int { return onAllCores(n, update) }, stop},
		{Since, func(n int) int { return readClock(0, n) }, nothing},
		{SinceAll, func(n int) int { return onAllCores(n, readClock) }, nothing},
	}, nil
}

func readClock(_, n int) int {
	origin, sum := time.Now(), 0
	for range n {
		sum += int(time.Since(origin))
	}
	return sum
}

func addOne(v *int) error { *v++; return nil }

// onAllCores divides the work. Everyone begins at another place.
func onAllCores(n int, work func(first, n int) int) int {
	cores := runtime.GOMAXPROCS(0)
	sums := make([]int, cores)
	var group sync.WaitGroup
	for i := range cores {
		group.Go(func() { sums[i] = work(i*asked/cores, n/cores) })
	}
	group.Wait()
	sum := 0
	for _, s := range sums {
		sum += s
	}
	return sum
}

// ownedNames returns names that the owner has, in no order.
func ownedNames(o *owner.Owner) []string {
	var owned []string
	for _, name := range names() {
		if _, ok := o.Check(leasehold.KeyOf(name)); ok {
			owned = append(owned, name)
		}
	}
	return owned
}
