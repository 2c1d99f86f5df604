package sim

import (
	"os"
	"strconv"
	"testing"
	"time"
)

func TestDev(t *testing.T) {
	cfg := Config{}
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	if s := os.Getenv("SEED"); s != "" {
		n, _ := strconv.ParseUint(s, 10, 64)
		r := Run(cfg, n, os.Stdout)
		t.Log(r.Violation)
		return
	}
	n, _ := strconv.Atoi(os.Getenv("SEEDS"))
	c := Campaign{Config: cfg, First: 1, Seeds: max(n, 100), Parallel: 2}
	if f := os.Getenv("FAULTS"); f != "" {
		cfg.Faults = must(ParseMix(f))
	}
	cfg.Namespaces, _ = strconv.Atoi(os.Getenv("NAMESPACES"))
	if os.Getenv("HUNT") != "" {
		for seed := range uint64(n) {
			if r := Run(cfg, seed+1, nil); r.Violation != nil {
				t.Logf("HUNT seed %d: %v", r.Seed, r.Violation)
				return
			}
		}
		t.Log("HUNT survived")
		return
	}
	if os.Getenv("CAMPAIGN") != "" {
		s, err := c.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Log(s.Seeds, s.Speedup(), s.Convincing(), s.Failures)
		for k, v := range s.Branches {
			t.Log(k, v)
		}
		for k, v := range s.Checks {
			t.Log(k, v)
		}
		return
	}
	start := time.Now()
	var sim time.Duration
	var events uint64
	bad := map[string][]uint64{}
	for seed := range uint64(max(n, 100)) {
		r := Run(cfg, seed+1, nil)
		sim += r.Simulated
		events += r.Events
		if r.Events > 20000 {
			t.Logf("seed %d has %d events", r.Seed, r.Events)
		}
		if r.Violation != nil {
			k := r.Violation.Invariant
			if len(bad[k]) < 3 {
				t.Logf("seed %d: %v", r.Seed, r.Violation)
			}
			bad[k] = append(bad[k], r.Seed)
		}
	}
	el := time.Since(start)
	for k, v := range bad {
		t.Errorf("%s: %d", k, len(v))
	}
	t.Logf("speedup %.0f, %.0f ns/event, %.1f events per simulated second", sim.Seconds()/el.Seconds(), float64(el)/float64(events), float64(events)/sim.Seconds())
}
