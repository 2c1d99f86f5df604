package procsim_test

import (
	"cmp"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"
	"testing"
	"testing/cryptotest"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/leasehold-dev/leasehold/lab/procsim"
)

var (
	first  = flag.Uint64("first", 1, "first seed")
	worlds = flag.Int("worlds", 0, "number of worlds of each test; default a few")
	only   = flag.String("faults", "", "only these kinds of faults, with commas between them")
	trace  = flag.Bool("trace", false, "print the history of each world")
)

// TestWorlds runs worlds with some kinds of faults each. A failure has the command that replays it.
func TestWorlds(t *testing.T) {
	n := 15
	if testing.Short() {
		n = 4
	}
	runAll(t, *only, n)
}

// TestFaults runs worlds with one kind of fault each.
func TestFaults(t *testing.T) {
	n := 2
	if testing.Short() {
		n = 1
	}
	for _, name := range procsim.Faults() {
		t.Run(name, func(t *testing.T) { runAll(t, name, n) })
	}
}

// runAll runs the worlds of -worlds seeds, or n.
func runAll(t *testing.T, only string, n int) {
	t.Helper()
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	n = cmp.Or(*worlds, n)
	var virtual time.Duration
	begun, used := time.Now(), cpu()
	for seed := *first; seed < *first+uint64(n); seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { virtual += run(t, seed, only).Virtual })
	}
	real, used := time.Since(begun), cpu()-used
	t.Logf("%d worlds, %v of virtual time in %v: %.0f times real time, and %.0f times the CPU time of %v",
		n, virtual.Round(time.Second), real.Round(time.Second), virtual.Seconds()/real.Seconds(), virtual.Seconds()/used.Seconds(), used.Round(time.Second))
}

func run(t *testing.T, seed uint64, only string) (r *procsim.Result) {
	t.Helper()
	var out io.Writer
	if *trace {
		out = os.Stdout
	}
	var kinds []string
	if only != "" {
		kinds = strings.Split(only, ",")
	}
	cryptotest.SetGlobalRandom(t, seed)
	synctest.Test(t, func(*testing.T) { r = procsim.Run(seed, kinds, out) })
	for _, v := range r.Violations {
		t.Errorf("%v", v)
	}
	if t.Failed() {
		t.Errorf("faults %v; replay with: GOMAXPROCS=1 go test ./lab/procsim -run TestWorlds -count 1 -args -first %d -worlds 1 -faults=%s -trace", r.Faults, seed, only)
	}
	t.Logf("seed %d: hash %x, %d events, %v, %v, %+v", seed, r.Hash, r.Events, r.Virtual, r.Faults, r.Counts)
	return r
}

// cpu returns the CPU time of this process.
func cpu() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
