package leasemap

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold"
)

// plain stores strings as they are.
func plain(d *disk) Config[string] {
	return Config[string]{
		Store:  d,
		Encode: func(dst []byte, v *string) ([]byte, error) { return append(dst, *v...), nil },
		Decode: func(data []byte, v *string) error { *v = string(data); return nil },
	}
}

// A crash loses no acknowledged change: the next owner loads the value, with its version.
func TestCrashLosesNothing(t *testing.T) {
	d := newDisk()
	r := newRealm(t, 2, plain(d))
	a, b := r.servers[0], r.servers[1]
	version := a.mustSet(t, "x", "1")
	a.mustSet(t, "gone", "1")
	if err := a.Delete(t.Context(), "gone"); err != nil {
		t.Fatal(err)
	}
	r.grant(1, nil)
	if got := b.has(t, "x", "1"); got != version {
		t.Errorf("version %v, want %v", got, version)
	}
	b.has(t, "gone", "")
	if _, err := b.Update(t.Context(), "x", func(v *string) error { *v += "2"; return nil }, WithVersion(version)); err != nil {
		t.Fatal(err)
	}
	r.grant(0, nil)
	a.has(t, "x", "12")
}

// A value, and its absence, are loaded once; concurrent readers share the load.
func TestLoadsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDisk()
		s := newRealm(t, 1, plain(d)).servers[0]
		d.set(func(string) error { time.Sleep(time.Second); return nil }, nil)
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() { s.has(t, "x", "") })
		}
		all.Wait()
		s.mustSet(t, "y", "1") // replaces any value: no load
		s.has(t, "y", "1")
		if d.loads != 1 {
			t.Errorf("%d loads", d.loads)
		}
		s.Sweep()
		s.Sweep() // the name was not used since
		if s.Len() != 1 {
			t.Errorf("%d names, want that with a value", s.Len())
		}
	})
}

// A load that fails, or ends after the lease, does nothing.
func TestLoadFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDisk()
		r := newRealm(t, 2, plain(d))
		a, b := r.servers[0], r.servers[1]
		a.mustSet(t, "x", "1")
		r.grant(1, nil)
		d.set(func(string) error { return errLost }, nil)
		_, _, err := b.Get("x")
		wantKind(t, err, leasehold.ErrUnavailable)
		if b.Len() != 0 {
			t.Error("a failed load occupies memory")
		}
		d.set(func(string) error { r.grant(0, nil); return nil }, nil)
		_, err = b.Update(t.Context(), "x", func(*string) error { t.Error("it is called"); return nil })
		wantKind(t, err, leasehold.ErrNotOwner)
		if b.Len() != 0 {
			t.Error("a late load was installed")
		}
		d.set(nil, nil)
		a.has(t, "x", "1")

		hang := make(chan struct{})
		d.set(func(string) error { <-hang; return nil }, nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		go func() { _, _, _ = a.Get("y") }()
		synctest.Wait()
		if _, _, err := a.GetContext(ctx, "y"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v, want that of the context", err)
		}
		close(hang)
		_, err = a.Set(t.Context(), "a\x00b", "1")
		wantKind(t, err, leasehold.ErrInvalid)
	})
}

// A save whose reply is lost is indeterminate. The next operation finds the truth, and a save that arrives
// later is refused.
func TestUnknownSave(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want string
	}{"lost": {errLost, "1"}, "done": {errDone, "2"}} {
		t.Run(name, func(t *testing.T) {
			d := newDisk()
			s := newRealm(t, 1, plain(d)).servers[0]
			s.mustSet(t, "x", "1")
			var late []Record
			d.set(nil, func(batch []Record) error { late = batch; return c.err })
			_, err := s.Set(t.Context(), "x", "2")
			wantKind(t, err, leasehold.ErrIndeterminate)
			d.set(nil, nil)
			s.has(t, "x", c.want)
			if refused := d.write(late); len(refused) != 1 {
				t.Error("the late save was accepted after the load")
			}
			s.has(t, "x", c.want)
		})
	}
}

// A save that certainly failed changes nothing.
func TestSaveFails(t *testing.T) {
	d := newDisk()
	s := newRealm(t, 1, plain(d)).servers[0]
	version := s.mustSet(t, "x", "1")
	d.set(nil, func([]Record) error { return errKnown })
	_, err := s.Set(t.Context(), "x", "2")
	wantKind(t, err, leasehold.ErrUnavailable)
	wantKind(t, s.Delete(t.Context(), "x"), leasehold.ErrUnavailable)
	if got := s.has(t, "x", "1"); got != version {
		t.Errorf("version %v, want %v", got, version)
	}
}

// A server that continues after a pause writes nothing: neither a value that its successor has deleted, nor
// over one that its successor has only read.
func TestLateSave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDisk()
		r := newRealm(t, 2, plain(d))
		a, b := r.servers[0], r.servers[1]
		a.mustSet(t, "read", "1")
		a.mustSet(t, "deleted", "1")
		paused, resume := make(chan struct{}, 2), make(chan struct{})
		d.set(nil, func([]Record) error { paused <- struct{}{}; <-resume; return nil })
		var all sync.WaitGroup
		for _, name := range []string{"read", "deleted"} {
			all.Go(func() {
				_, err := a.Set(t.Context(), name, "late")
				wantKind(t, err, leasehold.ErrNotOwner)
			})
			<-paused
		}
		d.set(nil, nil)
		r.grant(1, nil)
		b.has(t, "read", "1")
		if err := b.Delete(t.Context(), "deleted"); err != nil {
			t.Error(err)
		}
		close(resume)
		all.Wait()
		if d.has("read") != "1" || d.has("deleted") != "" {
			t.Errorf("the store has %q and %q", d.has("read"), d.has("deleted"))
		}
	})
}

// A load by an earlier owner is refused as well: it would serve an old value.
func TestLateLoad(t *testing.T) {
	d := newDisk()
	r := newRealm(t, 2, plain(d))
	a, b := r.servers[0], r.servers[1]
	d.set(func(string) error {
		d.set(nil, nil)
		r.set(1, 2)
		b.has(t, "x", "")
		r.set(0, 1) // a clock beyond its bound
		return nil
	}, nil)
	_, _, err := a.Get("x")
	wantKind(t, err, leasehold.ErrNotOwner)
}

// Values that move are not loaded again, those that were not in memory are.
func TestMoveWithStore(t *testing.T) {
	d := newDisk()
	cfg := plain(d)
	r := newRealm(t, 2, cfg)
	a, b := r.servers[0], r.servers[1]
	a.mustSet(t, "x", "1")
	a.mustSet(t, "unknown", "1")
	d.set(nil, func([]Record) error { return errDone })
	_, err := a.Set(t.Context(), "unknown", "2")
	wantKind(t, err, leasehold.ErrIndeterminate)
	d.set(nil, nil)
	if err := r.move(t.Context(), 1, func() { a.mustSet(t, "y", "1") }); err != nil {
		t.Fatal(err)
	}
	b.has(t, "x", "1")
	b.has(t, "y", "1")
	if d.loads != 0 {
		t.Errorf("%d loads of values that have moved", d.loads)
	}
	b.has(t, "unknown", "2")
}

// Values that arrive from a server without a store are saved, and are neither evicted nor changed before.
func TestEnableStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDisk()
		cfg := plain(d)
		cfg.Max = 4
		r := newRealm(t, 2, cfg)
		a, b := r.servers[0], r.servers[1]
		a.cfg.Store, a.unsaved = nil, nil
		version := a.mustSet(t, "x", "1")
		a.mustSet(t, "y", "1")
		if err := r.move(t.Context(), 1, nil); err != nil {
			t.Fatal(err)
		}
		d.set(nil, func([]Record) error { return errKnown })
		_, err := b.Set(t.Context(), "x", "2")
		wantKind(t, err, leasehold.ErrUnavailable)
		for i := range 50 {
			b.has(t, fmt.Sprint(i), "")
		}
		if got := b.has(t, "x", "1"); got != version {
			t.Errorf("version %v, want %v", got, version)
		}
		d.set(nil, nil)
		b.mustSet(t, "x", "2")
		b.wantUnsaved(t, 0)
		r.grant(0, nil)
		if d.has("x") != "2" || d.has("y") != "1" {
			t.Errorf("the store has %q and %q", d.has("x"), d.has("y"))
		}
	})
}

// A TTL continues in the store.
func TestStoredTTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDisk()
		r := newRealm(t, 2, plain(d))
		a, b := r.servers[0], r.servers[1]
		a.mustSet(t, "x", "1", WithTTL(time.Minute))
		a.mustSet(t, "over", "1", WithTTL(time.Minute))
		row := d.rows["over"]
		row.TTL = -time.Second
		d.rows["over"] = row
		r.grant(1, nil)
		b.has(t, "x", "1")
		b.has(t, "over", "")
		time.Sleep(time.Minute)
		b.has(t, "x", "")
		b.Sweep()
		b.Sweep()
		if b.Len() != 0 {
			t.Errorf("%d names are left", b.Len())
		}
	})
}

// The takeover of a crashed server's keys loads them with bounded concurrency.
func TestTakeover(t *testing.T) {
	names := 100_000
	if testing.Short() {
		names = 10_000
	}
	d := newDisk()
	cfg := plain(d)
	cfg.MaxLoads = 8
	r := newRealm(t, 2, cfg)
	for i := range names {
		r.servers[0].mustSet(t, fmt.Sprint(i), "1")
	}
	r.grant(1, nil)
	d.set(func(string) error { runtime.Gosched(); return nil }, nil)
	var all sync.WaitGroup
	for c := range 100 {
		all.Go(func() {
			for i := c; i < names; i += 100 {
				r.servers[1].has(t, fmt.Sprint(i), "1")
			}
		})
	}
	all.Wait()
	if d.loads != names || d.most < 2 || d.most > 8 {
		t.Errorf("%d loads, %d at once; want %d, and 2 to 8", d.loads, d.most, names)
	}
}
