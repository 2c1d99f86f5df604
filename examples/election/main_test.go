package main

import (
	"context"
	"errors"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold/flease"
)

// An electorate is three candidates on a network in memory.
type electorate struct {
	t       *testing.T
	network flease.Memory
	ledger  ledger
	stops   map[flease.ID]func()

	mu     sync.Mutex
	output []string
}

func (e *electorate) start(id flease.ID) {
	e.t.Helper()
	node, err := flease.Start(flease.Config{
		Self: id, Members: []flease.Member{{ID: 1}, {ID: 2}, {ID: 3}},
		Lease: 2 * time.Second, Epsilon: 100 * time.Millisecond, Transport: &e.network,
	})
	if err != nil {
		e.t.Fatal(err)
	}
	c := &candidate{node: node, store: &e.ledger, lease: 2 * time.Second, logf: func(format string, _ ...any) {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.output = append(e.output, format)
	}}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := c.run(ctx); err != nil {
			e.t.Error(err)
		}
		ended, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = node.Close(ended) // fails without a quorum
	})
	e.stops[id] = func() {
		cancel()
		running.Wait()
	}
	e.t.Cleanup(e.stops[id])
}

// leader waits for a new entry, and returns the candidate that wrote it.
func (e *electorate) leader() flease.ID {
	e.ledger.mu.Lock()
	before := len(e.ledger.entries)
	e.ledger.mu.Unlock()
	for range 30 {
		time.Sleep(time.Second)
		e.ledger.mu.Lock()
		entries := e.ledger.entries
		e.ledger.mu.Unlock()
		if len(entries) > before {
			return flease.ID(entries[len(entries)-1].Leader)
		}
	}
	e.t.Fatal("no leader")
	return 0
}

// TestElection: one candidate leads at a time. When the leader stops, another leads soon;
// when it is partitioned, another leads after its lease has expired.
func TestElection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &electorate{t: t, stops: map[flease.ID]func(){}}
		for id := flease.ID(1); id <= 3; id++ {
			e.start(id)
		}
		first := e.leader()
		e.stops[first]()
		second := e.leader()
		if second == first {
			t.Fatalf("%d leads after it stopped", second)
		}
		e.start(first)
		time.Sleep(10 * time.Second) // until it participates
		for id := flease.ID(1); id <= 3; id++ {
			e.network.Cut(id, second)
			e.network.Cut(second, id)
		}
		time.Sleep(10 * time.Second)
		third := e.leader()
		if third == second {
			t.Fatalf("%d leads although it is partitioned", third)
		}
		if n := len(e.ledger.entries); n < 10 {
			t.Errorf("%d entries", n)
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		if all := strings.Join(e.output, "\n"); !strings.Contains(all, "no longer leader") || !strings.Contains(all, "member %d is leader") {
			t.Errorf("output: %s", all)
		}
	})
}

// TestLedgerFences: stale fences are rejected, also over HTTP.
func TestLedgerFences(t *testing.T) {
	var l ledger
	server := httptest.NewServer(&l)
	defer server.Close()
	to := remote{server.URL, server.Client()}
	for _, test := range []struct {
		fence uint64
		want  error
	}{{5, nil}, {5, nil}, {7, nil}, {6, errStale}, {7, nil}} {
		if err := to.write(t.Context(), test.fence, entry{Leader: 1}); !errors.Is(err, test.want) {
			t.Errorf("fence %d: %v, want %v", test.fence, err, test.want)
		}
	}
	if len(l.entries) != 4 {
		t.Errorf("%d entries, want 4", len(l.entries))
	}
}

func TestUsage(t *testing.T) {
	for _, args := range []string{"", "run", "run x 127.0.0.1:1 1=127.0.0.1:2", "run 1 127.0.0.1:1 1", "run 2 127.0.0.1:1 1=127.0.0.1:2", "ledger nowhere"} {
		if err := run(t.Context(), strings.Fields(args)); err == nil {
			t.Errorf("%q is accepted", args)
		}
	}
}
