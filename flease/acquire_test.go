package flease

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold"
)

func TestAcquireRenewRelease(t *testing.T) {
	within(t, func(t *testing.T) {
		s := newSystem(t, 3, nil)
		l := s.acquire(1, "r")
		first := l.Until()
		time.Sleep(10 * lease)
		if !l.Valid() || !l.Until().After(first.Add(9*lease)) {
			t.Fatalf("after ten lease times: valid %t, until %v", l.Valid(), l.Until())
		}
		if err := l.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		if l.Valid() || !isOver(l) || leasehold.KindOf(l.Err()) != leasehold.ErrClosed || !l.Until().IsZero() {
			t.Errorf("released: valid %t, over %t, %v, until %v", l.Valid(), isOver(l), l.Err(), l.Until())
		}
		if err := l.Release(t.Context()); err != nil {
			t.Errorf("released twice: %v", err)
		}
		next := s.acquire(2, "r")
		if next.Fence() <= l.Fence() {
			t.Errorf("fence %d after %d", next.Fence(), l.Fence())
		}
	})
}

// A waiting member gets a resource at once when it is released.
func TestReleaseHandsOver(t *testing.T) {
	within(t, func(t *testing.T) {
		s := newSystem(t, 3, nil)
		l := s.acquire(1, "r")
		got := make(chan *Lease, 1)
		go func() { got <- s.acquire(2, "r") }()
		time.Sleep(3 * lease)
		select {
		case <-got:
			t.Fatal("two holders")
		default:
		}
		began := time.Now()
		if err := l.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		next := <-got
		if took := time.Since(began); took > lease/20 {
			t.Errorf("handed over after %v", took)
		}
		if next.Fence() <= l.Fence() || l.Valid() || !next.Valid() {
			t.Errorf("first %d, valid %t; next %d, valid %t", l.Fence(), l.Valid(), next.Fence(), next.Valid())
		}
	})
}

func TestTakeover(t *testing.T) {
	within(t, func(t *testing.T) {
		s := newSystem(t, 3, nil)
		l := s.acquire(1, "r")
		died := time.Now()
		s.kill(1)
		next := s.acquire(2, "r")
		if took := time.Since(died); took < lease-lease/3 || took > takeover {
			t.Errorf("taken over after %v", took)
		}
		if next.Fence() <= l.Fence() || l.Valid() {
			t.Errorf("fence %d after %d, valid %t", next.Fence(), l.Fence(), l.Valid())
		}
	})
}

// An isolated holder's lease ends, and the application is notified, before another member can
// acquire it.
func TestIsolatedHolderStopsFirst(t *testing.T) {
	within(t, func(t *testing.T) {
		s := newSystem(t, 3, nil)
		l := s.acquire(1, "r")
		for _, other := range []ID{2, 3} {
			s.network.Cut(1, other)
			s.network.Cut(other, 1)
		}
		began := time.Now()
		next := make(chan *Lease, 1)
		go func() { next <- s.acquire(2, "r") }()
		<-l.Done()
		if took := time.Since(began); took > lease {
			t.Errorf("notified after %v", took)
		}
		if l.Valid() || leasehold.KindOf(l.Err()) != leasehold.ErrNotOwner {
			t.Errorf("valid %t, %v", l.Valid(), l.Err())
		}
		synctest.Wait()
		select {
		case <-next:
			t.Error("another member held the lease before the notification")
		default:
		}
		if took := time.Since(began); took > 0 && (<-next).Fence() <= l.Fence() {
			t.Error("the fence has not risen")
		}
		if s.log.count("leases lost", "expired before it was renewed", "first=r") != 1 {
			t.Errorf("the log: %s", s.log.String())
		}
	})
}

// A restarted member takes part only after its promises from before have expired.
func TestRecovery(t *testing.T) {
	within(t, func(t *testing.T) {
		s := newSystem(t, 3, nil)
		s.kill(2)
		began := time.Now()
		n := s.start(2)
		ctx, cancel := context.WithTimeout(t.Context(), lease)
		defer cancel()
		if err := n.Ready(ctx); !errors.Is(err, leasehold.ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("ready after a lease: %v", err)
		}
		if n.Status().Ready {
			t.Error("its status is ready")
		}
		s.acquire(2, "r") // waits until the member takes part
		if took := time.Since(began); took < 12*time.Second || took > 13*time.Second {
			t.Errorf("takes part after %v", took)
		}
		if err := n.Ready(t.Context()); err != nil || !n.Status().Ready {
			t.Errorf("ready: %v, %t", err, n.Status().Ready)
		}
	})
}

func TestTryAcquire(t *testing.T) {
	within(t, func(t *testing.T) {
		s := newSystem(t, 3, nil)
		l, err := s.nodes[1].TryAcquire(t.Context(), "r")
		if err != nil || !l.Valid() {
			t.Fatal(l, err)
		}
		for _, other := range []ID{2, 1} {
			var held *HeldError
			_, err := s.nodes[other].TryAcquire(t.Context(), "r")
			if !errors.As(err, &held) || !errors.Is(err, leasehold.ErrNotOwner) {
				t.Fatalf("member %d: %v", other, err)
			}
			if held.Holder != 1 || held.Fence != l.Fence() || !held.Until.Equal(l.Until()) || held.Resource != "r" {
				t.Errorf("member %d: %+v, want until %v", other, held, l.Until())
			}
		}
		for _, other := range []ID{2, 3} {
			s.network.Cut(1, other)
		}
		if _, err := s.nodes[1].TryAcquire(t.Context(), "other"); !errors.Is(err, leasehold.ErrUnavailable) {
			t.Errorf("cut off: %v", err)
		}
	})
}

// A process holds one lease of a resource at a time: a second call waits for the first one's
// release, as with a mutex, and calls are served in order.
func TestAcquireTwiceInOneProcess(t *testing.T) {
	within(t, func(t *testing.T) {
		s := newSystem(t, 3, nil)
		l := s.acquire(1, "r")
		order := make(chan int, 3)
		for i := range 3 {
			go func() {
				l := s.acquire(1, "r")
				order <- i
				_ = l.Release(t.Context())
			}()
			synctest.Wait()
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if _, err := s.nodes[1].Acquire(ctx, "r"); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("two leases in one process: %v", err)
		}
		if _, err := s.nodes[1].TryAcquire(t.Context(), "r"); !errors.Is(err, leasehold.ErrNotOwner) {
			t.Errorf("a try while it is held: %v", err)
		}
		if !l.Valid() {
			t.Error("the first lease is not valid")
		}
		if err := l.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		for want := range 3 {
			if got := <-order; got != want {
				t.Errorf("call %d was served as number %d", got, want)
			}
		}
	})
}

func TestCancel(t *testing.T) {
	within(t, func(t *testing.T) {
		s := newSystem(t, 3, nil)
		l := s.acquire(1, "r")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		_, err := s.nodes[2].Acquire(ctx, "r")
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Second {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		if got := len(s.nodes[2].requests.entries); got != 0 {
			t.Errorf("%d entries are left", got)
		}
		if err := l.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if got := s.nodes[2].Status(); got.Held != 0 || got.Waiting != 0 {
			t.Errorf("a cancelled call holds a lease: %+v", got)
		}
		s.acquire(3, "r")
	})
}

func TestBadResources(t *testing.T) {
	within(t, func(t *testing.T) {
		s := newSystem(t, 3, func(c *Config) {
			c.MaxResources = 2
			c.Groups = func(name string) []ID {
				return map[string][]ID{"r": {1, 2, 3}, "s": {1, 2, 3}, "t": {1, 2, 3}, "others": {2, 3}, "stranger": {1, 7}, "twice": {1, 1}}[name]
			}
		})
		for name, want := range map[string]leasehold.Kind{
			"": leasehold.ErrInvalid, string(make([]byte, 256)): leasehold.ErrInvalid, "unknown": leasehold.ErrInvalid,
			"others": leasehold.ErrInvalid, "stranger": leasehold.ErrInvalid, "twice": leasehold.ErrInvalid,
		} {
			if _, err := s.nodes[1].Acquire(t.Context(), name); leasehold.KindOf(err) != want {
				t.Errorf("%.10q: %v", name, err)
			}
		}
		if _, err := s.nodes[2].AcquireAll(t.Context(), []string{"r", "s", "t"}); leasehold.KindOf(err) != leasehold.ErrLimit {
			t.Errorf("room for two: %v", err)
		}
		if got := s.nodes[1].Status(); got.Waiting != 0 || got.Held != 0 {
			t.Errorf("left behind: %+v", got)
		}
	})
}

// Thousands of groups, of three of five members each, on five nodes.
func TestManyGroups(t *testing.T) {
	within(t, func(t *testing.T) {
		s := newSystem(t, 5, func(c *Config) {
			c.Groups = func(name string) []ID {
				var n ID
				_, _ = fmt.Sscanf(name, "r%d", &n)
				return []ID{1, 2 + n%2, 4 + n%2}
			}
		})
		var names []string
		for i := range 5000 {
			names = append(names, fmt.Sprintf("r%d", i))
		}
		leases, err := s.nodes[1].AcquireAll(t.Context(), names)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * lease)
		for i, l := range leases {
			if !l.Valid() || l.Resource() != names[i] {
				t.Fatalf("%s: valid %t, want %s", l.Resource(), l.Valid(), names[i])
			}
		}
		if got := s.nodes[1].Status().Held; got != len(names) || len(s.nodes[1].Leases()) != len(names) {
			t.Errorf("holds %d", got)
		}
	})
}
