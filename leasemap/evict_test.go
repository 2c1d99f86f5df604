package leasemap

import (
	"fmt"
	"testing"

	"github.com/leasehold-dev/leasehold"
)

// A full cache evicts what was not used recently, and reports it.
func TestEvict(t *testing.T) {
	evicted := make(map[string]string)
	s := newRealm(t, 1, Config[string]{Max: 100, Evict: true, OnEvict: func(name, value string) { evicted[name] = value }}).servers[0]
	s.mustSet(t, "hot", "1")
	for i := range 1000 {
		s.mustSet(t, fmt.Sprint(i), "1")
		s.has(t, "hot", "1")
	}
	if s.Len() > 100 || len(evicted)+s.Len() != 1001 || evicted["hot"] != "" {
		t.Errorf("%d names, %d evicted, hot %q", s.Len(), len(evicted), evicted["hot"])
	}
	for name, value := range evicted {
		if value != "1" {
			t.Errorf("%s was evicted with %q", name, value)
		}
		s.has(t, name, "")
	}
}

// A map with a store has any number of names: those that are evicted are loaded again.
func TestEvictWithStore(t *testing.T) {
	cfg := plain(newDisk())
	cfg.Max = 50
	r := newRealm(t, 2, cfg)
	for i := range 500 {
		r.servers[0].mustSet(t, fmt.Sprint(i), fmt.Sprint(i))
		r.servers[0].has(t, fmt.Sprint("no ", i), "")
	}
	if err := r.move(t.Context(), 1, nil); err != nil {
		t.Fatal(err)
	}
	for i := range 500 {
		r.servers[1].has(t, fmt.Sprint(i), fmt.Sprint(i))
	}
	for _, s := range r.servers {
		if s.Len() > 50 {
			t.Errorf("%d names", s.Len())
		}
	}
}

// Requests for names without a value do not evict values that are in use.
func TestMissingNamesEvictNoValues(t *testing.T) {
	d := newDisk()
	cfg := plain(d)
	cfg.Max = 100
	s := newRealm(t, 1, cfg).servers[0]
	for i := range 50 {
		s.mustSet(t, fmt.Sprint(i), "1")
	}
	for i := range 1000 {
		s.has(t, fmt.Sprint("no ", i), "")
		s.has(t, fmt.Sprint(i%50), "1")
	}
	if reloads := d.loads - 1000; reloads > 50 {
		t.Errorf("%d loads of 50 values", reloads)
	}
}

// Unsaved values are not evicted, nor those in use.
func TestUnsavedIsNotEvicted(t *testing.T) {
	behind(t, nil, func(t *testing.T, d *disk, r *realm, lost *losses) {
		s := r.servers[0]
		s.cfg.Max = 3
		d.set(nil, func([]Record) error { return errLost })
		s.mustSet(t, "x", "1")
		s.mustSet(t, "y", "1")
		if _, err := s.Update(t.Context(), "used", func(*string) error {
			_, err := s.Set(t.Context(), "z", "1")
			return err
		}); leasehold.KindOf(err) != leasehold.ErrLimit {
			t.Errorf("%v, want ErrLimit", err)
		}
		s.mustSet(t, "z", "1")
		for _, name := range []string{"x", "y", "z"} {
			s.has(t, name, "1")
		}
		d.set(nil, nil)
		if err := s.Flush(t.Context()); err != nil {
			t.Error(err)
		}
		s.mustSet(t, "w", "1")
		lost.want(t)
	})
}

// A server with less memory accepts ranges whose values are stored. Unsaved values, which only it would have, count.
func TestMoveToLessMemory(t *testing.T) {
	behind(t, nil, func(t *testing.T, d *disk, r *realm, _ *losses) {
		a, b := r.servers[0], r.servers[1]
		b.cfg.Max = 10
		for i := range 100 {
			a.mustSet(t, fmt.Sprint("saved ", i), "1")
		}
		if err := a.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		d.set(nil, func([]Record) error { return errLost })
		change := func(n int) func() {
			return func() {
				for i := range n {
					a.mustSet(t, fmt.Sprint("changed ", i), "2")
				}
			}
		}
		wantKind(t, r.move(t.Context(), 1, change(11)), leasehold.ErrLimit)
		if b.Len() != 0 {
			t.Errorf("%d names are left at the target", b.Len())
		}
		r.mu.Lock()
		r.stopped = false
		r.mu.Unlock()
		if err := a.Delete(t.Context(), "changed 10"); err != nil {
			t.Error(err)
		}
		d.set(nil, nil)
		if err := a.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		d.set(nil, func([]Record) error { return errLost })
		if err := r.move(t.Context(), 1, change(10)); err != nil {
			t.Fatal(err)
		}
		if n := b.Len(); n != 10 {
			t.Errorf("%d names at the target, want the 10 unsaved ones", n)
		}
		d.set(nil, nil)
		if err := b.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		for i := range 100 {
			b.has(t, fmt.Sprint("saved ", i), "1")
		}
		for i := range 10 {
			b.has(t, fmt.Sprint("changed ", i), "2")
		}
	})
}
