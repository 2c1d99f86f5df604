package leasemap

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/owner"
)

// A gate blocks the nth check of a lease, before or after the check.
type gate struct {
	owner.Checker
	nth   int
	after bool
	stops chan struct{} // closed when a check is blocked
	opens chan struct{}

	mu   sync.Mutex
	seen int
}

func (g *gate) Check(key leasehold.Key) (owner.Lease, bool) {
	g.mu.Lock()
	g.seen++
	mine := g.seen == g.nth
	g.mu.Unlock()
	if mine && !g.after {
		close(g.stops)
		<-g.opens
	}
	lease, ok := g.Checker.Check(key)
	if mine && g.after {
		close(g.stops)
		<-g.opens
	}
	return lease, ok
}

// exported returns the records of a server's values.
func (s *server) exported(t *testing.T) *transfer {
	t.Helper()
	p := &transfer{realm: s.realm}
	if err := s.export(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	return p
}

// set makes a server the holder, with a generation.
func (r *realm) set(holder int, g leasehold.Generation) leasehold.Lease {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.holder, r.generation, r.stopped = holder, g, false
	return r.lease()
}

// A request that was paused while the lease moved away and back, with the value of its
// name, operates on that value, for any point of the pause.
func TestPausedRequestInLaterTenure(t *testing.T) {
	strong, weak := Config[string]{}, Config[string]{Weak: true, TTL: time.Hour}
	for _, place := range []struct {
		nth   int
		after bool
		cfg   Config[string]
	}{{1, false, strong}, {1, true, strong}, {2, false, strong}, {2, true, strong}, {1, true, weak}, {2, false, weak}} {
		t.Run(fmt.Sprint(place.nth, place.after, place.cfg.Weak), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRealm(t, 2, place.cfg)
				a, b := r.servers[0], r.servers[1]
				a.mustSet(t, "x", "1")
				coming := a.exported(t)
				r.set(1, 2) // an earlier tenure of b
				g := &gate{Checker: b, nth: place.nth, after: place.after, stops: make(chan struct{}), opens: make(chan struct{})}
				b.leases = g
				done := make(chan error, 1)
				go func() {
					_, err := b.Update(t.Context(), "x", func(v *string) error { *v += "2"; return nil })
					done <- err
				}()
				<-g.stops
				granted := r.set(-1, 3)
				install, err := b.receive(t.Context(), coming)
				if err != nil {
					t.Fatal(err)
				}
				install(granted) // does not wait for the request
				r.set(1, 3)
				close(g.opens)
				err = <-done
				want := "12"
				if err != nil {
					want = "1"
					if kind := leasehold.KindOf(err); kind != leasehold.ErrIndeterminate && kind != leasehold.ErrNotOwner {
						t.Error(err)
					}
				}
				b.has(t, "x", want)
				if b.Len() != 1 {
					t.Errorf("Len is %d, want 1", b.Len())
				}
			})
		})
	}
}

// A reader that was paused returns the value that has arrived meanwhile.
func TestPausedReaderInLaterTenure(t *testing.T) {
	for _, after := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			r := newRealm(t, 2, Config[string]{})
			a, b := r.servers[0], r.servers[1]
			a.mustSet(t, "x", "1")
			coming := a.exported(t)
			r.set(1, 2)
			g := &gate{Checker: b, nth: 1, after: after, stops: make(chan struct{}), opens: make(chan struct{})}
			b.leases = g
			type answer struct {
				value string
				err   error
			}
			got := make(chan answer, 1)
			go func() {
				value, _, err := b.Get("x")
				got <- answer{value, err}
			}()
			<-g.stops
			granted := r.set(-1, 3)
			install, err := b.receive(t.Context(), coming)
			if err != nil {
				t.Fatal(err)
			}
			install(granted)
			r.set(1, 3)
			close(g.opens)
			if a := <-got; a.err == nil && a.value != "1" {
				t.Errorf("the reader returns %q", a.value)
			}
		})
	}
}

// The error for a value that cannot be sent contains its name.
func TestTooLargeValue(t *testing.T) {
	r := newRealm(t, 2, Config[string]{})
	r.servers[0].mustSet(t, "huge", strings.Repeat("x", maxRecord))
	err := r.move(t.Context(), 1, nil)
	wantKind(t, err, leasehold.ErrLimit)
	if err == nil || !strings.Contains(err.Error(), "huge") {
		t.Error(err)
	}
}

// A weak map exports all of its values, and its versions differ from those of other servers.
func TestWeakMoves(t *testing.T) {
	r := newRealm(t, 2, Config[string]{Weak: true, TTL: time.Hour})
	a, b := r.servers[0], r.servers[1]
	r.set(1, 2)
	first := a.mustSet(t, "x", "1")
	if second := b.mustSet(t, "y", "1"); second.Number == first.Number {
		t.Errorf("versions of two servers: %v and %v", first, second)
	}
	if p := a.exported(t); len(p.records) != 1 {
		t.Errorf("%d records", len(p.records))
	}
	_, err := a.Set(t.Context(), "x", "2", WithTTL(0))
	wantKind(t, err, leasehold.ErrInvalid)
}

// A late install, after the lease was lost and granted again, replaces nothing.
func TestLateInstall(t *testing.T) {
	r := newRealm(t, 2, Config[string]{})
	a, b := r.servers[0], r.servers[1]
	a.mustSet(t, "x", "old")
	a.mustSet(t, "y", "old")
	install, err := b.receive(t.Context(), a.exported(t))
	if err != nil {
		t.Fatal(err)
	}
	r.set(1, 5)
	b.mustSet(t, "x", "new")
	install(leasehold.Lease{Range: leasehold.All, Generation: 2})
	b.has(t, "x", "new")
	b.has(t, "y", "") // of an earlier tenure
	if b.Len() != 1 {
		t.Errorf("Len is %d, want 1", b.Len())
	}
}

// A lease may cover less than the import. The rest is discarded.
func TestInstallCoversLess(t *testing.T) {
	r := newRealm(t, 2, Config[string]{})
	a, b := r.servers[0], r.servers[1]
	for i := range 100 {
		a.mustSet(t, fmt.Sprint(i), "1")
	}
	install, err := b.receive(t.Context(), a.exported(t))
	if err != nil {
		t.Fatal(err)
	}
	half := leasehold.Range{Limit: 1 << 63}
	install(leasehold.Lease{Range: half, Generation: 7})
	r.set(1, 7)
	for i := range 100 {
		want := ""
		if half.Contains(leasehold.KeyOf(fmt.Sprint(i))) {
			want = "1"
		}
		b.has(t, fmt.Sprint(i), want)
	}
}

// Revoked removes the values of its range up to its generation, and no others.
func TestRevokedRemovesOnlyItsRange(t *testing.T) {
	r := newRealm(t, 1, Config[string]{})
	s := r.servers[0]
	for i := range 100 {
		s.mustSet(t, fmt.Sprint(i), "1")
	}
	half := leasehold.Range{Limit: 1 << 63}
	s.revoked([]leasehold.Lease{{Range: half, Generation: 0}}, leasehold.CauseExpired) // an older generation
	if s.Len() != 100 {
		t.Errorf("%d of 100 values of a later tenure are left", s.Len())
	}
	s.revoked([]leasehold.Lease{{Range: half, Generation: 1}}, leasehold.CauseExpired)
	for i := range 100 {
		want := "1"
		if half.Contains(leasehold.KeyOf(fmt.Sprint(i))) {
			want = ""
		}
		s.has(t, fmt.Sprint(i), want)
	}
}

// Neither install nor Revoked waits for a function of an earlier tenure.
func TestInstallAndRevokedDoNotWaitForFunctions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRealm(t, 2, Config[string]{})
		a, b := r.servers[0], r.servers[1]
		r.set(1, 2)
		revoked, began, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
		go func() {
			_, err := b.Update(t.Context(), "slow", func(v *string) error {
				close(began)
				<-revoked
				*v = "late"
				return nil
			})
			done <- err
		}()
		<-began
		r.set(0, 5)
		a.mustSet(t, "slow", "1")
		install, err := b.receive(t.Context(), a.exported(t))
		if err != nil {
			t.Fatal(err)
		}
		install(r.set(-1, 6))
		b.revoked([]leasehold.Lease{{Range: leasehold.All, Generation: 2}}, leasehold.CauseExpired)
		close(revoked) // as OnRevoke of an application does
		wantKind(t, <-done, leasehold.ErrIndeterminate)
		r.set(1, 6)
		b.has(t, "slow", "1")
	})
}

// An operation that waits for a name fails when its context ends, and does nothing. Waiting does not
// stop the virtual clock.
func TestWaitingEndsWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newRealm(t, 1, Config[string]{}).servers[0]
		s.mustSet(t, "x", "1")
		var all sync.WaitGroup
		all.Go(func() {
			_, err := s.Update(t.Context(), "x", func(v *string) error {
				time.Sleep(time.Minute)
				*v += "2"
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		_, err := s.Set(ctx, "x", "never")
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Second {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		wantKind(t, err, leasehold.ErrUnavailable)
		for i := range 5 {
			all.Go(func() {
				_, err := s.Update(t.Context(), "x", func(v *string) error { *v += fmt.Sprint(i); return nil })
				if err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		value, _, err := s.Get("x")
		if err != nil || len(value) != 7 {
			t.Errorf("%q, %v", value, err)
		}
	})
}

// A value that a reader has found expired is not restored by a move.
func TestExpiredStaysExpired(t *testing.T) {
	for name, look := range map[string]func(*testing.T, *server){
		"read":  func(t *testing.T, s *server) { s.has(t, "x", "") },
		"swept": func(_ *testing.T, s *server) { s.Sweep() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRealm(t, 2, Config[string]{})
				r.servers[0].mustSet(t, "x", "1", WithTTL(10*time.Second))
				time.Sleep(9 * time.Second)
				err := r.move(t.Context(), 1, func() { // copied with a remaining TTL of a second
					time.Sleep(5 * time.Second)
					look(t, r.servers[0])
				})
				if err != nil {
					t.Fatal(err)
				}
				r.servers[1].has(t, "x", "")
			})
		})
	}
}

// Failed operations during the copy do not cause a second record.
func TestOnlyChangesAreSentAgain(t *testing.T) {
	r := newRealm(t, 2, Config[string]{Max: 10})
	a := r.servers[0]
	version := a.mustSet(t, "x", "1")
	p := &transfer{realm: r, during: func() {
		for i := range 1000 {
			if err := a.Delete(t.Context(), fmt.Sprint("n", i)); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := a.Set(t.Context(), "x", "2", WithVersion(Version{})); leasehold.KindOf(err) != leasehold.ErrStale {
			t.Error(err)
		}
		if got := a.has(t, "x", "1"); got != version {
			t.Error(got)
		}
	}}
	if err := a.export(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if len(p.records) != 1 {
		t.Errorf("%d records, and one value", len(p.records))
	}
}

// After a failed move no shard records changes.
func TestFailedExportStopsRecording(t *testing.T) {
	r := newRealm(t, 2, Config[string]{})
	a := r.servers[0]
	a.mustSet(t, "x", "1")
	failure := errors.New("no")
	if err := a.export(t.Context(), &transfer{realm: r, fails: failure}); !errors.Is(err, failure) {
		t.Fatal(err)
	}
	for i := range a.shards {
		if a.shards[i].exports.Load() != 0 || len(a.shards[i].copies) != 0 {
			t.Fatalf("shard %d still records changes", i)
		}
	}
}

// Values of an earlier tenure are not sent: obligation 8.
func TestOlderValuesAreNotSent(t *testing.T) {
	r := newRealm(t, 2, Config[string]{})
	a := r.servers[0]
	a.mustSet(t, "old", "1")
	r.set(0, 4)
	a.mustSet(t, "new", "1")
	if p := a.exported(t); len(p.records) != 1 {
		t.Errorf("%d records, and one value of this tenure", len(p.records))
	}
}
