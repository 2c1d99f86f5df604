package flease

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/secret"
)

func TestClose(t *testing.T) {
	within(t, func(t *testing.T) {
		s := newSystem(t, 3, nil)
		l := s.acquire(1, "r")
		theirs := s.acquire(2, "theirs")
		waiting := make(chan error, 3)
		go func() {
			_, err := s.nodes[1].Acquire(t.Context(), "theirs")
			waiting <- err
		}()
		go func() {
			_, err := s.nodes[1].AcquireAll(t.Context(), append(numbered(5), "theirs"))
			waiting <- err
		}()
		go func() {
			var last error
			for _, last = range s.nodes[1].Watch(t.Context(), "theirs") {
				continue
			}
			waiting <- last
		}()
		time.Sleep(time.Second)
		began := time.Now()
		if err := s.nodes[1].Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		for range cap(waiting) {
			if err := <-waiting; !errors.Is(err, leasehold.ErrClosed) {
				t.Errorf("a waiting call: %v", err)
			}
		}
		if l.Valid() || !isOver(l) || leasehold.KindOf(l.Err()) != leasehold.ErrClosed {
			t.Errorf("valid %t, %v", l.Valid(), l.Err())
		}
		s.acquire(2, "r") // at once
		if took := time.Since(began); took > time.Second {
			t.Errorf("free after %v", took)
		}
		if !theirs.Valid() {
			t.Error("another member lost a lease")
		}
		if _, err := s.nodes[1].Acquire(t.Context(), "r"); !errors.Is(err, leasehold.ErrClosed) {
			t.Errorf("acquire on a closed node: %v", err)
		}
		for _, err := range s.nodes[1].Watch(t.Context(), "r") {
			if !errors.Is(err, leasehold.ErrClosed) {
				t.Errorf("watch on a closed node: %v", err)
			}
		}
		if err := errors.Join(l.Release(t.Context()), s.nodes[1].Close(t.Context())); err != nil {
			t.Errorf("again: %v", err)
		}
	})
}

// Close returns an error after a while if no member replies.
func TestCloseWithoutMajority(t *testing.T) {
	within(t, func(t *testing.T) {
		s := newSystem(t, 3, nil)
		l := s.acquire(1, "r")
		s.network.Cut(1, 2)
		s.network.Cut(1, 3)
		began := time.Now()
		err := s.nodes[1].Close(t.Context())
		if !errors.Is(err, leasehold.ErrUnavailable) || l.Valid() {
			t.Errorf("%v, valid %t", err, l.Valid())
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("closed after %v", took)
		}
	})
}

// A second Close waits for the first until its own context ends, and returns the same result.
func TestCloseTwice(t *testing.T) {
	within(t, func(t *testing.T) {
		s := newSystem(t, 3, nil)
		s.acquire(1, "r")
		s.network.Cut(1, 2)
		s.network.Cut(1, 3)
		first := make(chan error, 1)
		go func() { first <- s.nodes[1].Close(context.WithoutCancel(t.Context())) }()
		synctest.Wait()
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := s.nodes[1].Close(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		err := <-first
		if !errors.Is(err, leasehold.ErrUnavailable) {
			t.Errorf("the first: %v", err)
		}
		if again := s.nodes[1].Close(ctx); !errors.Is(again, err) {
			t.Errorf("the next: %v", again)
		}
	})
}

// Close ends a waiting Release.
func TestCloseWhileReleasing(t *testing.T) {
	within(t, func(t *testing.T) {
		s := newSystem(t, 3, nil)
		l := s.acquire(1, "r")
		s.network.Cut(1, 2)
		s.network.Cut(1, 3)
		releasing := make(chan error, 1)
		go func() { releasing <- l.Release(context.WithoutCancel(t.Context())) }()
		synctest.Wait()
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		_ = s.nodes[1].Close(ended)
		if err := <-releasing; !errors.Is(err, leasehold.ErrClosed) {
			t.Errorf("%v", err)
		}
	})
}

func TestAlone(t *testing.T) {
	within(t, func(t *testing.T) {
		s := newSystem(t, 1, nil)
		first := s.acquire(1, "r")
		if err := first.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * lease)
		if l := s.acquire(1, "r"); l.Fence() <= first.Fence() {
			t.Errorf("fence %d after %d", l.Fence(), first.Fence())
		}
	})
}

func TestWatch(t *testing.T) {
	within(t, func(t *testing.T) {
		s := newSystem(t, 3, nil)
		seen := make(chan Holder, 100)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for h, err := range s.nodes[3].Watch(ctx, "r") {
				if err != nil {
					if !errors.Is(err, context.Canceled) {
						t.Error(err)
					}
					break
				}
				seen <- h
			}
		}()
		want := func(id ID) Holder {
			t.Helper()
			h := <-seen
			if h.ID != id || (id != 0) != (h.Fence != 0) || (id != 0) != !h.Until.IsZero() {
				t.Fatalf("holder %+v, want %d", h, id)
			}
			return h
		}
		want(0)
		first := s.acquire(1, "r")
		if h := want(1); h.Fence != first.Fence() {
			t.Errorf("fence %d, want %d", h.Fence, first.Fence())
		}
		time.Sleep(3 * lease) // renewals are no change
		if err := first.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		want(0)
		s.acquire(2, "r")
		want(2)
		died := time.Now()
		s.kill(2)
		want(0) // without a message: the lease expires
		if took := time.Since(died); took < lease/2 || took > takeover {
			t.Errorf("no holder after %v", took)
		}
		cancel()
		<-ended
		if len(seen) != 0 {
			t.Errorf("another change: %+v", <-seen)
		}
		if got := len(s.nodes[3].watches); got != 0 {
			t.Errorf("%d watches are left", got)
		}
	})
}

// A slow watcher receives the newest state, and does not block the node.
func TestWatchCoalesces(t *testing.T) {
	within(t, func(t *testing.T) {
		s := newSystem(t, 3, nil)
		var last *Lease
		seen := 0
		for h := range s.nodes[2].Watch(t.Context(), "r") {
			if seen++; seen == 1 {
				for range 10 {
					l := s.acquire(1, "r")
					if err := l.Release(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				last = s.acquire(1, "r")
			}
			if h.Fence == last.Fence() {
				break // within a third of a lease, if this member was not in the first majority
			}
		}
		if seen > 5 { // of twelve tenures
			t.Errorf("saw %d holders, one after the other", seen)
		}
		for _, err := range s.nodes[2].Watch(t.Context(), "") {
			if leasehold.KindOf(err) != leasehold.ErrInvalid {
				t.Errorf("%v", err)
			}
		}
	})
}

func TestBadConfigs(t *testing.T) {
	three := []Member{{ID: 1, Addr: "127.0.0.1:7001"}, {ID: 2, Addr: "127.0.0.1:7002"}, {ID: 3, Addr: "127.0.0.1:7003"}}
	taken, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close() //nolint:errcheck // nothing was sent
	for name, test := range map[string]struct {
		cfg  Config
		kind leasehold.Kind
		want string
	}{
		"no Self":            {Config{Members: three}, leasehold.ErrInvalid, "Self is not set"},
		"not a member":       {Config{Self: 4, Members: three}, leasehold.ErrInvalid, "Self is 4, which is not in the 3 Members"},
		"no members":         {Config{Self: 1}, leasehold.ErrInvalid, "Members is empty"},
		"equal ids":          {Config{Self: 1, Members: append(three[:2:2], Member{ID: 2, Addr: "127.0.0.1:7009"})}, leasehold.ErrInvalid, "twice"},
		"member 0":           {Config{Self: 1, Members: append(three[:2:2], Member{ID: 0, Addr: "127.0.0.1:7009"})}, leasehold.ErrInvalid, "IDs begin with 1"},
		"epsilon too large":  {Config{Self: 1, Members: three, Lease: time.Second, Epsilon: time.Second}, leasehold.ErrInvalid, "not less than the lease"},
		"epsilon by default": {Config{Self: 1, Members: three, Lease: 500 * time.Millisecond}, leasehold.ErrInvalid, "Epsilon is not set, and its default, 500ms, is not less than the lease"},
		"epsilon negative":   {Config{Self: 1, Members: three, Epsilon: -1}, leasehold.ErrInvalid, "epsilon"},
		"lease too short":    {Config{Self: 1, Members: three, Lease: time.Millisecond, Epsilon: 1}, leasehold.ErrInvalid, "want 10 ms"},
		"drift below 1":      {Config{Self: 1, Members: three, Drift: 0.5}, leasehold.ErrInvalid, "drift"},
		"no key":             {Config{Self: 1, Members: append(three[:2:2], Member{ID: 3, Addr: "10.0.0.3:7001"})}, leasehold.ErrInvalid, "there is no key"},
		"listens everywhere": {Config{Self: 1, Members: three, Listen: ":7001"}, leasehold.ErrInvalid, "there is no key"},
		"short key":          {Config{Self: 1, Members: three, Key: secret.New("secret")}, leasehold.ErrInvalid, "key of 6 bytes"},
		"no address":         {Config{Self: 1, Members: []Member{{ID: 1}}}, leasehold.ErrInvalid, "the address of member 1: want host:port"},
		"address in use":     {Config{Self: 1, Members: three, Listen: taken.LocalAddr().String()}, leasehold.ErrUnavailable, "in use"},
	} {
		t.Run(name, func(t *testing.T) {
			n, err := Start(test.cfg)
			if err == nil {
				_ = n.Close(t.Context())
				t.Fatal("started")
			}
			if leasehold.KindOf(err) != test.kind || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v: %v, want %v with %q", leasehold.KindOf(err), err, test.kind, test.want)
			}
		})
	}
}

// Three members on real sockets.
func TestRealNetworks(t *testing.T) {
	for name, transport := range map[string]Transport{"UDP": UDP{}, "TCP": TCP{}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			nodes := onLoopback(t, transport)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			l, err := nodes[0].Acquire(ctx, "r")
			if err != nil {
				t.Fatal(err)
			}
			var held *HeldError
			if _, err := nodes[1].TryAcquire(ctx, "r"); !errors.As(err, &held) || held.Holder != 1 {
				t.Errorf("try by another member: %v", err)
			}
			all, err := nodes[2].AcquireAll(ctx, numbered(3000))
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(l.Release(ctx), nodes[2].ReleaseAll(ctx, all)); err != nil {
				t.Fatal(err)
			}
			next, err := nodes[1].Acquire(ctx, "r")
			if err != nil || next.Fence() <= l.Fence() {
				t.Errorf("%v, %v", next, err)
			}
			status := nodes[0].Status()
			if !status.Ready || status.Held != 0 || status.Counts.Acquired != 1 || status.Traffic.PacketsIn == 0 {
				t.Errorf("status %+v", status)
			}
			for _, m := range status.Members {
				if m.Heard.IsZero() {
					t.Errorf("no packet of member %d arrived", m.ID)
				}
			}
		})
	}
}
