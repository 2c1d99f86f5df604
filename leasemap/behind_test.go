package leasemap

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold"
)

// A losses is an OnLost that records names.
type losses struct {
	mu    sync.Mutex
	names []string
}

func (l *losses) add(names []string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		panic("no reason")
	}
	l.names = append(l.names, names...)
}

func (l *losses) want(t *testing.T, names ...string) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if !slices.Equal(l.names, names) {
		t.Errorf("lost: %q, want %q", l.names, names)
	}
}

// behind runs a test with servers whose maps write behind: after a second, in batches of 10.
func behind(t *testing.T, change func(*WriteBehind), test func(t *testing.T, d *disk, r *realm, lost *losses)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		d, lost := newDisk(), new(losses)
		cfg := plain(d)
		cfg.WriteBehind = &WriteBehind{Batch: 10, OnLost: lost.add}
		if change != nil {
			change(cfg.WriteBehind)
		}
		r := newRealm(t, 2, cfg)
		ctx, stop := context.WithCancel(t.Context())
		var all sync.WaitGroup
		defer all.Wait()
		defer stop()
		for _, s := range r.servers {
			all.Go(func() { s.run(ctx) })
		}
		test(t, d, r, lost)
	})
}

// wantUnsaved checks the number of unsaved changes.
func (s *server) wantUnsaved(t *testing.T, want int) {
	t.Helper()
	synctest.Wait()
	if n, _ := s.Unsaved(); n != want {
		t.Errorf("%d changes are unsaved, want %d", n, want)
	}
}

// Changes are saved after the interval, or at once when a batch is full. Several changes of a name are one.
func TestWriteBehind(t *testing.T) {
	behind(t, nil, func(t *testing.T, d *disk, r *realm, lost *losses) {
		s := r.servers[0]
		for i := range 5 {
			s.mustSet(t, "x", fmt.Sprint(i))
		}
		s.mustSet(t, "gone", "1")
		if err := s.Delete(t.Context(), "gone"); err != nil {
			t.Error(err)
		}
		s.wantUnsaved(t, 2)
		time.Sleep(999 * time.Millisecond)
		s.wantUnsaved(t, 2)
		time.Sleep(time.Millisecond)
		s.wantUnsaved(t, 0)
		if len(d.batches) != 1 || len(d.batches[0]) != 2 || d.has("x") != "4" || d.has("gone") != "" {
			t.Errorf("batches %v", d.batches)
		}
		for i := range 25 {
			s.mustSet(t, fmt.Sprint(i), "1")
			if i%10 == 9 {
				s.wantUnsaved(t, 0) // the flusher may have taken more than one batch otherwise
			}
		}
		s.wantUnsaved(t, 5)
		r.grant(1, nil)
		time.Sleep(time.Second)
		s.wantUnsaved(t, 0)
		lost.want(t)
		r.servers[1].has(t, "24", "1") // saved after the lease has ended: no later owner had used the name
		r.servers[1].has(t, "gone", "")
	})
}

// A value that has changed while it was saved is saved again.
func TestChangedWhileSaving(t *testing.T) {
	behind(t, nil, func(t *testing.T, d *disk, r *realm, _ *losses) {
		s := r.servers[0]
		s.mustSet(t, "x", "1")
		d.set(nil, func([]Record) error {
			d.set(nil, nil)
			s.mustSet(t, "x", "2")
			return nil
		})
		time.Sleep(time.Second)
		s.wantUnsaved(t, 1)
		time.Sleep(time.Second)
		s.wantUnsaved(t, 0)
		if d.has("x") != "2" {
			t.Errorf("stored: %q", d.has("x"))
		}
	})
}

// While the store is down, operations wait: for MaxAge the map accepts changes, or up to Max of them.
func TestBackpressure(t *testing.T) {
	for name, c := range map[string]struct {
		behind WriteBehind
		wait   time.Duration
		names  int
	}{
		"age": {WriteBehind{MaxAge: 3 * time.Second}, 3*time.Second + 1, 1},
		"max": {WriteBehind{Max: 20}, 0, 20},
	} {
		t.Run(name, func(t *testing.T) {
			set := func(w *WriteBehind) { w.MaxAge, w.Max = c.behind.MaxAge, c.behind.Max }
			behind(t, set, func(t *testing.T, d *disk, r *realm, lost *losses) {
				s := r.servers[0]
				d.set(nil, func([]Record) error { return errLost })
				for i := range c.names {
					s.mustSet(t, fmt.Sprint(i), "1")
				}
				time.Sleep(c.wait)
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				_, err := s.Set(ctx, "x", "1")
				wantKind(t, err, leasehold.ErrUnavailable)
				s.has(t, "0", "1") // reads continue
				done := make(chan Version, 1)
				go func() { done <- s.mustSet(t, "x", "2") }()
				synctest.Wait()
				d.set(nil, nil)
				<-done
				s.has(t, "x", "2")
				time.Sleep(2 * time.Second)
				s.wantUnsaved(t, 0)
				lost.want(t)
			})
		})
	}
}

// Unsaved changes, and deletions, move with their age, and the target saves them. The source reports no loss, even if
// it is late.
func TestUnsavedChangesMove(t *testing.T) {
	behind(t, nil, func(t *testing.T, d *disk, r *realm, lost *losses) {
		a, b := r.servers[0], r.servers[1]
		for _, name := range []string{"x", "y", "gone"} {
			a.mustSet(t, name, "1")
		}
		if err := a.Flush(t.Context()); err != nil {
			t.Error(err)
		}
		d.set(nil, func([]Record) error { return errLost })
		a.mustSet(t, "x", "2")
		if err := a.Delete(t.Context(), "gone"); err != nil {
			t.Error(err)
		}
		time.Sleep(2 * time.Second)
		if err := r.move(t.Context(), 1, func() { a.mustSet(t, "y", "2") }); err != nil {
			t.Fatal(err)
		}
		b.has(t, "gone", "")
		if n, age := b.Unsaved(); n != 3 || age < 2*time.Second {
			t.Errorf("%d changes are unsaved, for %v", n, age)
		}
		d.set(nil, nil)
		time.Sleep(2 * time.Second)
		if err := a.finish(t.Context()); err != nil {
			t.Error(err)
		}
		for name, want := range map[string]string{"x": "2", "y": "2", "gone": ""} {
			if got := d.has(name); got != want {
				t.Errorf("%s is stored as %q, want %q", name, got, want)
			}
			b.has(t, name, want)
		}
		b.wantUnsaved(t, 0)
		lost.want(t)
	})
}

// Before a move everything is saved.
func TestSavedBeforeMove(t *testing.T) {
	behind(t, nil, func(t *testing.T, d *disk, r *realm, _ *losses) {
		r.servers[0].mustSet(t, "x", "1")
		if err := r.move(t.Context(), 1, nil); err != nil {
			t.Fatal(err)
		}
		if d.has("x") != "1" {
			t.Error("the value was not saved before the move")
		}
		r.servers[1].wantUnsaved(t, 0)
	})
}

// A change that was acknowledged under a lease that another server has now is reported as lost if that server has
// used the name. The server does not serve the value again, and writes nothing.
func TestLostChange(t *testing.T) {
	behind(t, nil, func(t *testing.T, d *disk, r *realm, lost *losses) {
		a, b := r.servers[0], r.servers[1]
		a.mustSet(t, "x", "1")
		if err := a.Flush(t.Context()); err != nil {
			t.Error(err)
		}
		a.mustSet(t, "x", "2")
		a.mustSet(t, "y", "2")
		r.set(1, 2) // the lease ends, but a has no notification of it
		b.has(t, "x", "1")
		time.Sleep(3 * time.Second)
		lost.want(t)
		a.group.revoked([]leasehold.Lease{{Range: leasehold.All, Generation: 1}}, leasehold.CauseExpired)
		time.Sleep(time.Second)
		a.wantUnsaved(t, 0)
		lost.want(t, "x")
		b.has(t, "x", "1")
		b.has(t, "y", "2")
		r.set(0, 3)
		a.has(t, "x", "1")
	})
}

// A server that gets a lost lease back does not mix the tenures: the unsaved change of the first is saved or refused with its
// own generation.
func TestUnsavedChangeOfEarlierTenure(t *testing.T) {
	behind(t, nil, func(t *testing.T, d *disk, r *realm, lost *losses) {
		a := r.servers[0]
		a.mustSet(t, "x", "1")
		a.mustSet(t, "y", "1")
		r.set(0, 2) // without a callback
		a.has(t, "x", "")
		a.mustSet(t, "x", "2")
		a.has(t, "x", "2")
		time.Sleep(3 * time.Second)
		lost.want(t, "x")
		if d.has("x") != "2" {
			t.Errorf("stored: %q", d.has("x"))
		}
		a.has(t, "y", "1")
	})
}

// Close saves what has not moved, and reports the rest.
func TestFinish(t *testing.T) {
	behind(t, nil, func(t *testing.T, d *disk, r *realm, lost *losses) {
		s := r.servers[0]
		s.mustSet(t, "x", "1")
		if err := s.finish(t.Context()); err != nil || d.has("x") != "1" {
			t.Errorf("%v, stored: %q", err, d.has("x"))
		}
		d.set(nil, func([]Record) error { return errLost })
		s.mustSet(t, "x", "2")
		err := s.finish(t.Context())
		wantKind(t, err, leasehold.ErrUnavailable)
		if !errors.Is(err, errLost) {
			t.Errorf("%v, want the reason", err)
		}
		lost.want(t, "x")
	})
}

// A value that the store rejects is reported, and does not prevent others from being saved.
func TestInvalidValue(t *testing.T) {
	behind(t, nil, func(t *testing.T, d *disk, r *realm, lost *losses) {
		s := r.servers[0]
		d.set(nil, func(batch []Record) error {
			if slices.ContainsFunc(batch, func(r Record) bool { return string(r.Value) == "bad" }) {
				return leasehold.Errorf("save", leasehold.ErrInvalid, "", "bad")
			}
			return nil
		})
		for i := range 5 {
			s.mustSet(t, fmt.Sprint(i), "1")
		}
		s.mustSet(t, "x", "bad")
		s.mustSet(t, "huge", strings.Repeat("x", maxRecord))
		time.Sleep(time.Second)
		s.wantUnsaved(t, 0)
		lost.want(t, "huge", "x")
		if d.has("4") != "1" || d.has("x") != "" {
			t.Errorf("stored: %q and %q", d.has("4"), d.has("x"))
		}
	})
}

// A long operation delays no save, not even of its own name: the value before the operation is saved.
func TestLongOperation(t *testing.T) {
	behind(t, nil, func(t *testing.T, d *disk, r *realm, _ *losses) {
		s := r.servers[0]
		s.mustSet(t, "slow", "1")
		s.mustSet(t, "x", "1")
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, err := s.Update(t.Context(), "slow", func(v *string) error { time.Sleep(time.Minute); *v = "2"; return nil })
			if err != nil {
				t.Error(err)
			}
		}()
		time.Sleep(time.Second)
		s.wantUnsaved(t, 0)
		if d.has("x") != "1" || d.has("slow") != "1" {
			t.Errorf("stored: %q and %q", d.has("x"), d.has("slow"))
		}
		if err := s.finish(t.Context()); err != nil {
			t.Error(err)
		}
		<-done
		time.Sleep(2 * time.Second)
		s.wantUnsaved(t, 0)
		if d.has("slow") != "2" {
			t.Errorf("stored: %q", d.has("slow"))
		}
	})
}

// A value that cannot be encoded is reported once, also while the store fails.
func TestInvalidValueDuringOutage(t *testing.T) {
	behind(t, nil, func(t *testing.T, d *disk, r *realm, lost *losses) {
		s := r.servers[0]
		d.set(nil, func([]Record) error { return errLost })
		s.mustSet(t, "huge", strings.Repeat("x", maxRecord))
		s.mustSet(t, "x", "1")
		time.Sleep(3 * time.Second)
		lost.want(t, "huge")
		d.set(nil, nil)
		time.Sleep(3 * time.Second)
		s.wantUnsaved(t, 0)
		lost.want(t, "huge")
	})
}

// The calls of the store are limited in bytes, and become smaller after a failure.
func TestLargeBatch(t *testing.T) {
	behind(t, func(w *WriteBehind) { w.Batch = 500 }, func(t *testing.T, d *disk, r *realm, lost *losses) {
		s := r.servers[0]
		large := strings.Repeat("x", 3<<20)
		for i := range 20 {
			s.mustSet(t, fmt.Sprint("large ", i), large)
		}
		time.Sleep(time.Second)
		s.wantUnsaved(t, 0)
		if n := len(d.batches); n != 7 {
			t.Errorf("%d calls, want 7: 3 values are more than 8 MiB", n)
		}
		d.set(nil, func(batch []Record) error {
			if len(batch) > 30 {
				return errLost
			}
			return nil
		})
		for i := range 100 {
			s.mustSet(t, fmt.Sprint("small ", i), "1")
		}
		time.Sleep(9 * time.Second)
		s.wantUnsaved(t, 0)
		lost.want(t)
	})
}

// A change that has moved while the source saved it is not lost, whatever the result.
func TestMoveDuringSave(t *testing.T) {
	behind(t, nil, func(t *testing.T, d *disk, r *realm, lost *losses) {
		a, b := r.servers[0], r.servers[1]
		a.mustSet(t, "x", "1")
		hang := make(chan struct{})
		d.set(nil, func([]Record) error { <-hang; return errLost })
		time.Sleep(time.Second)
		synctest.Wait() // the source saves
		if err := r.move(t.Context(), 1, nil); err != nil {
			t.Fatal(err)
		}
		close(hang)
		synctest.Wait()
		d.set(nil, nil)
		time.Sleep(10 * time.Second)
		a.wantUnsaved(t, 0)
		b.wantUnsaved(t, 0)
		b.has(t, "x", "1")
		lost.want(t)
	})
}

// An operation on a name of another server does not wait for the store, and none waits after Close.
func TestWhoWaitsForTheStore(t *testing.T) {
	behind(t, func(w *WriteBehind) { w.Max = 1 }, func(t *testing.T, d *disk, r *realm, lost *losses) {
		s := r.servers[0]
		d.set(nil, func([]Record) error { return errLost })
		s.mustSet(t, "x", "1")
		waits := make(chan error, 1)
		set := func() {
			_, err := s.Set(t.Context(), "y", "1")
			waits <- err
		}
		go set()
		synctest.Wait()
		r.grant(-1, nil)
		time.Sleep(time.Second) // the next attempt
		wantKind(t, <-waits, leasehold.ErrNotOwner)
		r.grant(0, nil)
		go set()
		synctest.Wait()
		wantKind(t, s.finish(t.Context()), leasehold.ErrUnavailable)
		if err := <-waits; err != nil {
			t.Error(err)
		}
		lost.want(t, "x")
		d.set(nil, nil)
	})
}

// A call of Flush that runs while the map is closed does no harm.
func TestFlushDuringClose(t *testing.T) {
	behind(t, nil, func(t *testing.T, d *disk, r *realm, _ *losses) {
		s := r.servers[0]
		s.mustSet(t, "x", "1")
		hang := make(chan struct{})
		d.set(nil, func([]Record) error { <-hang; return nil })
		done := make(chan error, 1)
		go func() { done <- s.Flush(t.Context()) }()
		synctest.Wait()
		wantKind(t, s.abandon(), leasehold.ErrUnavailable)
		close(hang)
		if err := <-done; err != nil {
			t.Error(err)
		}
		s.wantUnsaved(t, 0)
	})
}
