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

	mu   sync.Mutex
	said []string
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
	c := &candidate{node: node, store: &e.ledger, lease: 2 * time.Second, say: func(format string, _ ...any) {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.said = append(e.said, format)
	}}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := c.run(ctx); err != nil {
			e.t.Error(err)
		}
		ended, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = node.Close(ended) // the last ones find no majority
	})
	e.stops[id] = func() {
		cancel()
		running.Wait()
	}
	e.t.Cleanup(e.stops[id])
}

// leader waits until entries of a candidate come in, and returns which.
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
	e.t.Fatal("nobody leads")
	return 0
}

// One leads at a time; when it stops, another does, within moments, and when it is
// cut off, another does when its lease has run out.
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
			t.Fatalf("%d leads, who has stopped", second)
		}
		e.start(first)
		time.Sleep(10 * time.Second) // until it takes part
		for id := flease.ID(1); id <= 3; id++ {
			e.network.Cut(id, second)
			e.network.Cut(second, id)
		}
		time.Sleep(10 * time.Second)
		third := e.leader()
		if third == second {
			t.Fatalf("%d leads, who is cut off", third)
		}
		if n := len(e.ledger.entries); n < 10 {
			t.Errorf("%d entries", n)
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		if all := strings.Join(e.said, "\n"); !strings.Contains(all, "I lead no more") || !strings.Contains(all, "member %d leads") {
			t.Errorf("they said %s", all)
		}
	})
}

// Who comes too late is refused, also over HTTP.
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
