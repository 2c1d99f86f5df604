package demo

import (
	"context"
	"net"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/lookup"
)

// TestAbsencesAreMeasured: a key is away for 40 ms, twice. What is measured is
// that, and a round of questions more at most.
func TestAbsencesAreMeasured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const away = 40 * time.Millisecond
		a := &aTable{}
		server, n := newServer(), &network{}
		n.run(t, "server", server.presence)
		l := newLoad(&Config{Users: 50, ValueSize: 1, Lease: minLease}, a, server)
		defer l.close()
		p := newProber(l, n.dial)
		asking, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			p.run(asking, t.Context())
		}()
		for range 2 {
			pause(t.Context(), 101*time.Millisecond)
			a.takeAway(l.users[9].key, away)
		}
		pause(t.Context(), time.Second)
		stop()
		<-done
		got := p.absence()
		if got.keys != 50 || got.times != 2 || got.failures != 0 {
			t.Errorf("got %+v", got)
		}
		if got.median < away || got.longest > away+2*probeEvery {
			t.Errorf("measured %v and %v, want %v or a little more", got.median, got.longest, away)
		}
	})
}

// patient is a table whose Do tries until there is an answer.
type patient struct{ *aTable }

func (patient) Do(ctx context.Context, _ leasehold.Key, f func(context.Context, string) error, _ ...lookup.DoOption) error {
	for {
		if err := f(ctx, "server"); err == nil || !pause(ctx, time.Millisecond) {
			return err
		}
	}
}

// TestARestartIsMeasured: a server goes, and another comes to the same place. All
// its keys were away for that long.
func TestARestartIsMeasured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const away = 40 * time.Millisecond
		n := &network{}
		stop := n.run(t, "server", newServer().presence)
		l := newLoad(&Config{Users: 50, ValueSize: 1, Lease: minLease}, patient{&aTable{}}, newServer())
		defer l.close()
		p := newProber(l, n.dial)
		asking, end := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			p.run(asking, t.Context())
		}()
		pause(t.Context(), 101*time.Millisecond)
		stop()
		pause(t.Context(), away)
		n.run(t, "server", newServer().presence)
		pause(t.Context(), time.Second)
		end()
		<-done
		got := p.absence()
		if got.times != 50 || got.failures != 0 || got.median < away || got.longest > away+2*probeEvery {
			t.Errorf("got %+v, want %v or a little more", got, away)
		}
	})
}

// TestRoundsAllocateNothing once all servers are known, on both sides: callers
// would measure the collection of the garbage.
func TestRoundsAllocateNothing(t *testing.T) {
	service := newServer()
	server := httptest.NewServer(service.presence.handler())
	defer server.Close()
	defer service.presence.lines.close()
	l := newLoad(&Config{Users: maxProbed, ValueSize: 1, Lease: minLease}, &aTable{}, service)
	defer l.close()
	p := newProber(l, nil)
	p.lines = newLines(t.Context(), func(ctx context.Context, _ string) (net.Conn, error) {
		return dialTCP(ctx, server.Listener.Addr().String())
	})
	defer p.lines.close()
	round := func() {
		p.round(t.Context())
		p.asking.Wait()
	}
	round()
	if got := testing.AllocsPerRun(100, round); got >= 1 {
		t.Errorf("%v allocations", got)
	}
}
