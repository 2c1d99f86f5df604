// Capacity prints what owners and lookups cost the manager that they are connected to, for
// the table in docs/OPERATIONS.md: memory and processor time of a real manager process with
// an embedded store, from its own metrics, with real owners and lookups that each have a
// connection of their own.
//
//	go run ./internal/capacity
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"time"
)

// A size is how many are connected. Each grows out of the one before.
type size struct{ owners, lookups int }

func sizes() []size {
	return []size{{0, 0}, {100, 0}, {100, 1000}, {1000, 1000}, {1000, 5000}}
}

const (
	settling = 15 * time.Second // what joining costs is over
	looking  = 20 * time.Second
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "capacity:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	m, err := startManager(ctx)
	if err != nil {
		return err
	}
	defer m.stop()
	c := &crowd{manager: m.addr}
	defer c.leave()
	fmt.Println("| owners | lookups | memory | of a core, at rest |")
	fmt.Println("|---|---|---|---|")
	for _, s := range sizes() {
		if err := c.grow(ctx, s); err != nil {
			return err
		}
		if err := m.settled(ctx, s.owners); err != nil {
			return err
		}
		if err := pause(ctx, settling); err != nil {
			return err
		}
		before, err := m.usage(ctx)
		if err != nil {
			return err
		}
		if err := pause(ctx, looking); err != nil {
			return err
		}
		after, err := m.usage(ctx)
		if err != nil {
			return err
		}
		fmt.Printf("| %d | %d | %.0f MB | %.1f %% |\n", s.owners, s.lookups, after.memory/1e6, 100*(after.cpu-before.cpu)/looking.Seconds())
	}
	return nil
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
