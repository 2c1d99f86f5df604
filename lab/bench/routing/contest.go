package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leasehold-dev/leasehold/lab/bench/report"
)

const (
	perServer = 64      // ranges, tokens
	nameCount = 1 << 14 // names
	chunk     = 256     // names found between two reads of the clock
)

// changeEvery is the time between two changes: 100 a second.
const changeEvery = 10 * time.Millisecond

// A mode is a way to call routers.
type mode struct{ allCores, changing bool }

func modes() []mode {
	return []mode{{}, {allCores: true}, {changing: true}, {allCores: true, changing: true}}
}

func (m mode) String() string {
	text := "one core"
	if m.allCores {
		text = "all cores"
	}
	if m.changing {
		text += ", changing"
	}
	return text
}

// file returns the mode's part of a file name.
func (m mode) file() string {
	return strings.NewReplacer(" cores", "", " core", "", ", ", "-").Replace(m.String())
}

type router struct {
	name   string
	pieces int  // number of pieces into which it divides the key space
	floor  bool // it is a lower bound, not a peer
	// find finds the servers of n names from the given first one, and returns the total
	// number of bytes of their addresses. Many goroutines call it concurrently.
	find func(first, n int) int
	// change removes a server if i is even, and adds it again if i is odd. nil: changes
	// are not supported.
	change func(i int) error
	close  func()

	turns       map[mode][]float64 // nanoseconds
	rates       []float64          // changes made per second
	allocations []float64
	changes     int
}

func (c *router) summary(m mode) report.Summary { return report.Summarise(c.turns[m]) }

func nothing() {}

func address(server int) string { return fmt.Sprintf("server-%05d.example:7000", server) }

func addresses(servers int) []string {
	all := make([]string, servers)
	for i := range all {
		all[i] = address(i)
	}
	return all
}

// names returns the names to look up, in random order: more than a branch predictor can
// learn.
func names() []string {
	random := rand.New(rand.NewPCG(1, 2))
	out := make([]string, nameCount)
	for i := range out {
		out[i] = fmt.Sprintf("session-%012d", random.Uint64N(1_000_000_000_000)) // 20 bytes
	}
	return out
}

// starters returns the functions that start the contestants. Leasehold is the first.
func starters() []func(ctx context.Context, servers int) (*router, error) {
	return []func(context.Context, int) (*router, error){
		startLookup, startIndex, startBare, startConsistent, startConsistentLarge, startStathat, startSerialx, startRendezvous, startLafikl, startRing,
	}
}

func (c *router) turn(m mode) error {
	if m.changing && c.change == nil {
		return nil
	}
	if c.turns == nil {
		c.turns = make(map[mode][]float64)
	}
	length := quietTurn
	stop := func() error { return nil }
	if m.changing {
		length = changingTurn
		stop = c.startChanging()
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	found, elapsed := c.findFor(length, m.allCores)
	runtime.ReadMemStats(&after)
	c.turns[m] = append(c.turns[m], float64(elapsed.Nanoseconds())/float64(found))
	if !m.changing {
		c.allocations = append(c.allocations, float64((after.Mallocs-before.Mallocs)*100/uint64(found))/100)
	}
	return stop()
}

// findFor finds names for a given time, on one core or on all, and returns their number.
func (c *router) findFor(length time.Duration, allCores bool) (found int, elapsed time.Duration) {
	start := time.Now()
	one := func(core, _ int) int {
		n := 0
		for ; n == 0 || time.Since(start) < length; n += chunk {
			if c.find((core*nameCount/2+n)%nameCount, chunk) == 0 {
				panic(c.name + " finds nothing") // its figures would mean nothing
			}
		}
		return n
	}
	if allCores {
		found = report.OnAllCores(runtime.GOMAXPROCS(0), one)
	} else {
		found = one(0, 1)
	}
	return found, time.Since(start)
}

// startChanging changes the router's servers until the returned function is called,
// which waits for the last change.
func (c *router) startChanging() (stop func() error) {
	var (
		ended atomic.Bool
		work  sync.WaitGroup
		err   error
	)
	work.Go(func() { err = c.changeUntil(&ended) })
	return func() error {
		ended.Store(true)
		work.Wait()
		return err
	}
}

// changeUntil makes a change every 10 ms. A change that takes longer delays the next.
func (c *router) changeUntil(ended *atomic.Bool) error {
	tick := time.NewTicker(changeEvery)
	defer tick.Stop()
	start, made := time.Now(), 0
	for !ended.Load() {
		<-tick.C
		if err := c.change(c.changes); err != nil {
			return err
		}
		c.changes++
		made++
	}
	c.rates = append(c.rates, float64(made)/time.Since(start).Seconds())
	return nil
}
