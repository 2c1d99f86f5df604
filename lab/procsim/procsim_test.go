package procsim_test

import (
	"cmp"
	"encoding/json"
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
	report = flag.String("report", "", "write the sums of TestWorlds to this file, for lab/ledger")
)

// sums are what lab/ledger adds up.
type sums struct {
	Seeds      int            `json:"seeds"`
	Ended      string         `json:"ended"`
	Violations int            `json:"violations"`
	Hours      float64        `json:"simulatedHours"`
	Seconds    float64        `json:"elapsedSeconds"`
	Faults     map[string]int `json:"faults"`
}

func (s *sums) add(r *procsim.Result) {
	s.Seeds++
	s.Violations += len(r.Violations)
	s.Hours += r.Virtual.Hours()
	for _, kind := range r.Faults {
		s.Faults[kind]++
	}
}

// TestWorlds runs worlds with some kinds of faults each. A failure has the command that replays it.
func TestWorlds(t *testing.T) {
	n := 15
	if testing.Short() {
		n = 4
	}
	all := runAll(t, *only, n)
	if *report == "" {
		return
	}
	text, err := json.Marshal(all)
	if err == nil {
		err = os.WriteFile(*report, text, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
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
func runAll(t *testing.T, only string, n int) *sums {
	t.Helper()
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	n = cmp.Or(*worlds, n)
	all := &sums{Faults: make(map[string]int)}
	begun, used := time.Now(), cpu()
	for seed := *first; seed < *first+uint64(n); seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { all.add(run(t, seed, only)) })
	}
	real, used := time.Since(begun), cpu()-used
	virtual := all.Hours * time.Hour.Seconds()
	t.Logf("%d worlds, %.1f h of virtual time in %v: %.0f times real time, and %.0f times the CPU time of %v",
		n, all.Hours, real.Round(time.Second), virtual/real.Seconds(), virtual/used.Seconds(), used.Round(time.Second))
	all.Ended, all.Seconds = "completed", real.Seconds()
	return all
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
