// Scale measures what a manager does when many come at once: owners that join
// within a second, and lookups that hear of a change.
//
//	go run ./internal/scale
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime/pprof"
	"time"
)

func main() {
	owners := flag.Int("owners", 1000, "how many owners join")
	lookups := flag.Int("lookups", 10_000, "how many lookups follow")
	conns := flag.Int("conns", 100, "over how many connections")
	following := flag.String("follow", "", "be the process of the lookups, which follow this manager")
	profile := flag.String("cpuprofile", "", "where to write a profile")
	flag.Parse()
	if *following != "" {
		if err := followAll(*following, *lookups, *conns); err != nil {
			fmt.Fprintln(os.Stderr, "scale:", err)
			os.Exit(1)
		}
		return
	}
	if err := profiled(*profile, func() error { return run(*owners, *lookups, *conns) }); err != nil {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(1)
	}
}

// profiled writes a profile of what f does, if it is told where.
func profiled(path string, f func() error) error {
	if path == "" {
		return f()
	}
	out, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := pprof.StartCPUProfile(out); err != nil {
		return err
	}
	err = f()
	pprof.StopCPUProfile()
	return errors.Join(err, out.Close())
}

func run(owners, lookups, conns int) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	s, err := startSystem(ctx)
	if err != nil {
		return err
	}
	defer s.stop()
	if owners > 0 {
		all, err := joins(ctx, s, owners)
		if err != nil {
			return err
		}
		quiet(ctx, s)
		for _, o := range all {
			closing, cancel := context.WithCancel(ctx)
			cancel()
			_ = o.Close(closing)
		}
	}
	if lookups > 0 {
		return fanOut(ctx, s, lookups, conns)
	}
	return nil
}

// quiet says what is written while nothing happens.
func quiet(ctx context.Context, s *system) {
	before := [...]int64{s.store.swaps.Load(), s.store.batches.Load() + s.store.snapshots.Load() + s.store.catalogs.Load()}
	fmt.Printf("store      %d changes in %d batches, %d snapshots\n", s.store.changes.Load(), s.store.batches.Load(), s.store.snapshots.Load())
	select {
	case <-time.After(10 * time.Second):
	case <-ctx.Done():
	}
	fmt.Printf("quiet      in 10s the leader record was written %d times, everything else %d times (wanted: 0)\n",
		s.store.swaps.Load()-before[0], s.store.batches.Load()+s.store.snapshots.Load()+s.store.catalogs.Load()-before[1])
}
