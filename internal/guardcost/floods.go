package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// floods compares how long the others' renewals take while one identity floods and while not,
// for each kind of flood.
func floods(ctx context.Context, t *town, p plan) error {
	g, err := newGuild(ctx, t.guarded, p.owners, t.owner)
	defer func() { g.close() }()
	if err != nil {
		return err
	}
	if err := g.settle(ctx); err != nil {
		return err
	}
	fmt.Printf("flood     %d owners renew %d times a second each, %d rounds of %v; one identity sends whatever it can\n", p.owners, time.Second/pace, p.rounds, p.turn)
	for _, kind := range kinds {
		if !p.wants(kind.name) {
			continue
		}
		if err := g.endure(ctx, t, p, kind.name); err != nil {
			return err
		}
	}
	return nil
}

// endure compares them for one kind of flood.
func (g guild) endure(ctx context.Context, t *town, p plan, kind string) error {
	var calm, flooded, ratios []float64
	for range p.rounds {
		one, err := g.latencies(ctx, p.turn)
		if err != nil {
			return err
		}
		f, err := t.flood(ctx, p.owners, kind)
		if err != nil {
			return err
		}
		other, err := g.latencies(ctx, p.turn)
		if err := errors.Join(err, f.end()); err != nil {
			return err
		}
		calm, flooded = append(calm, one...), append(flooded, other...)
		ratios = append(ratios, quantile(other, 0.99)/quantile(one, 0.99))
	}
	fmt.Printf("          %-11s p50 %.2f ms, p99 %.2f ms; flooded p50 %.2f ms, p99 %.2f ms: %.2f times, rounds from %.2f to %.2f (wanted: below 2)\n",
		kind, 1e3*quantile(calm, 0.5), 1e3*quantile(calm, 0.99), 1e3*quantile(flooded, 0.5), 1e3*quantile(flooded, 0.99),
		median(ratios), slices.Min(ratios), slices.Max(ratios))
	return nil
}

// pace is how often an owner renews.
const pace = 200 * time.Millisecond

// latencies lets everybody renew at their pace for a while, and returns how long each took.
func (g guild) latencies(ctx context.Context, turn time.Duration) (all []float64, err error) {
	var mu sync.Mutex
	begun := time.Now()
	err = g.each(func(i int, r *renewer) error {
		next := begun.Add(pace * time.Duration(i) / time.Duration(len(g)))
		for ; next.Sub(begun) < turn; next = next.Add(pace) {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(time.Until(next)):
			}
			took, err := r.renew()
			if err != nil {
				return err
			}
			mu.Lock()
			all = append(all, took.Seconds())
			mu.Unlock()
		}
		return nil
	})
	return all, err
}

// A flooder is a process that floods.
type flooder struct {
	cmd  *exec.Cmd
	hold io.Closer
}

// flood starts a process that floods the manager with guards, and returns when it does.
func (t *town) flood(ctx context.Context, number int, kind string) (*flooder, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, "nice", "-n", "19", self, "-flood", kind, "-manager", t.guarded, "-identity", filepath.Join(t.files("owner", string(namespace)), owner(number)))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		return nil, fmt.Errorf("the flood has not begun: %w", errors.Join(err, cmd.Wait()))
	}
	return &flooder{cmd, in}, nil
}

func (f *flooder) end() error {
	_ = f.hold.Close()
	return f.cmd.Wait()
}
