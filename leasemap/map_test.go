package leasemap

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold"
)

func wantKind(t *testing.T, err error, kind leasehold.Kind) {
	t.Helper()
	if leasehold.KindOf(err) != kind || err == nil {
		t.Errorf("%v, want kind %q", err, kind)
	}
}

func (s *server) mustSet(t *testing.T, name, value string, options ...Option) Version {
	t.Helper()
	v, err := s.Set(t.Context(), name, value, options...)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// has checks the value of a name; "" means none.
func (s *server) has(t *testing.T, name, want string) Version {
	t.Helper()
	value, version, err := s.GetVersion(name)
	if err != nil || value != want || version.Exists() != (want != "") {
		t.Errorf("%s is %q, version %v (%v), want %q", name, value, version, err, want)
	}
	return version
}

func TestOperations(t *testing.T) {
	s := newRealm(t, 1, Config[string]{}).servers[0]
	s.has(t, "alice", "")
	first := s.mustSet(t, "alice", "home")
	if got := s.has(t, "alice", "home"); got != first {
		t.Errorf("version %v, Set returned %v", got, first)
	}
	second, err := s.Update(t.Context(), "alice", func(v *string) error { *v += "work"; return nil })
	if err != nil || second == first {
		t.Errorf("version %v after %v: %v", second, first, err)
	}
	s.has(t, "alice", "homework")
	failure := errors.New("no")
	if _, err := s.Update(t.Context(), "alice", func(v *string) error { *v = "lost"; return failure }); !errors.Is(err, failure) {
		t.Errorf("%v", err)
	}
	s.has(t, "alice", "homework")
	if v, err := s.Do(t.Context(), "alice", func(e *Entry[string]) error { e.Value = "lost"; e.Keep(); return nil }); err != nil || v != second {
		t.Errorf("after Keep the version is %v: %v", v, err)
	}
	s.has(t, "alice", "homework")
	var next Version
	third, err := s.Do(t.Context(), "alice", func(e *Entry[string]) error { e.Value, next = "x", e.Next; return nil })
	if err != nil || third != next || s.has(t, "alice", "x") != next {
		t.Errorf("version %v, Next was %v: %v", third, next, err)
	}
	if err := s.Delete(t.Context(), "alice"); err != nil {
		t.Error(err)
	}
	s.has(t, "alice", "")
	if err := s.Delete(t.Context(), "nobody"); err != nil || s.Len() != 0 {
		t.Errorf("%d names are left: %v", s.Len(), err)
	}
}

func TestConditions(t *testing.T) {
	s := newRealm(t, 1, Config[string]{}).servers[0]
	first := s.mustSet(t, "x", "1", WithVersion(Version{}))
	_, err := s.Set(t.Context(), "x", "2", WithVersion(Version{}))
	wantKind(t, err, leasehold.ErrStale)
	second := s.mustSet(t, "x", "2", WithVersion(first))
	_, err = s.Set(t.Context(), "x", "3", WithVersion(first))
	wantKind(t, err, leasehold.ErrStale)
	wantKind(t, s.Delete(t.Context(), "x", WithVersion(first)), leasehold.ErrStale)
	s.has(t, "x", "2")
	if err := s.Delete(t.Context(), "x", WithVersion(second)); err != nil {
		t.Error(err)
	}
	if again := s.mustSet(t, "x", "1"); again == first || again == second {
		t.Errorf("version %v is used twice", again)
	}
	_, err = s.Set(t.Context(), "y", "1", WithVersion(first))
	wantKind(t, err, leasehold.ErrStale)
	if s.Len() != 1 {
		t.Errorf("%d names: a refused operation has added one", s.Len())
	}
}

// A server that does not own a name refuses the operation, and does nothing.
func TestNotOwner(t *testing.T) {
	r := newRealm(t, 2, Config[string]{})
	other := r.servers[1]
	_, _, err := other.Get("x")
	wantKind(t, err, leasehold.ErrNotOwner)
	_, err = other.Update(t.Context(), "x", func(*string) error { t.Error("it is called"); return nil })
	wantKind(t, err, leasehold.ErrNotOwner)
	var about interface {
		RefusedKey() (name string, key leasehold.Key)
	}
	if !errors.As(err, &about) {
		t.Fatalf("%v has no RefusedKey", err)
	}
	if name, key := about.RefusedKey(); name != "x" || key != leasehold.KeyOf("x") {
		t.Errorf("refused: %q, %v", name, key)
	}
	if other.Len() != 0 {
		t.Error("a name of another server occupies memory")
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = r.servers[0].Set(ended, "x", "1")
	wantKind(t, err, leasehold.ErrUnavailable)
	r.servers[0].has(t, "x", "")
	var g Group
	_, _, err = Add(&g, "", Config[string]{}).Get("x") // before Join
	wantKind(t, err, leasehold.ErrNotOwner)
}

// State of an earlier tenure does not exist (obligation 2), even without a call
// of Revoked.
func TestEarlierTenure(t *testing.T) {
	r := newRealm(t, 2, Config[string]{})
	s := r.servers[0]
	old := s.mustSet(t, "x", "1")
	s.mustSet(t, "y", "1")
	r.mu.Lock()
	r.generation++ // the lease was lost and granted again, without a callback
	r.mu.Unlock()
	s.has(t, "x", "")
	_, err := s.Set(t.Context(), "x", "2", WithVersion(old))
	wantKind(t, err, leasehold.ErrStale)
	_, err = s.Update(t.Context(), "y", func(v *string) error { *v += "2"; return nil })
	if err != nil {
		t.Fatal(err)
	}
	s.has(t, "y", "2")
}

// If the lease ends during an operation, a read is refused, and
// a change is indeterminate.
func TestLeaseEndsDuringOperation(t *testing.T) {
	r := newRealm(t, 2, Config[string]{})
	s := r.servers[0]
	lose := func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.holder = 1
	}
	_, err := s.Update(t.Context(), "x", func(v *string) error { lose(); *v = "1"; return nil })
	wantKind(t, err, leasehold.ErrIndeterminate)
	r.grant(0, nil)
	_, err = s.Do(t.Context(), "x", func(e *Entry[string]) error { lose(); e.Keep(); return nil })
	wantKind(t, err, leasehold.ErrNotOwner)
	r.grant(0, nil)
	s.mustSet(t, "x", "1")
	err = s.read(t.Context(), "x", func(*entry[string]) { lose() })
	wantKind(t, err, leasehold.ErrNotOwner)
	r.grant(0, nil)
	err = s.read(t.Context(), "none", func(*entry[string]) { lose() })
	wantKind(t, err, leasehold.ErrNotOwner)
}

func TestExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newRealm(t, 1, Config[string]{TTL: time.Minute}).servers[0]
		s.mustSet(t, "usual", "1")
		s.mustSet(t, "short", "1", WithTTL(time.Second))
		s.mustSet(t, "forever", "1", WithTTL(0))
		s.mustSet(t, "centuries", "1", WithTTL(math.MaxInt64))
		s.has(t, "centuries", "1")
		if err := s.Delete(t.Context(), "centuries"); err != nil {
			t.Fatal(err)
		}
		s.mustSet(t, "over", "1", WithTTL(-time.Second)) // expires at once
		s.has(t, "over", "")
		version := s.mustSet(t, "touched", "1")
		time.Sleep(time.Second)
		s.has(t, "short", "")
		s.has(t, "usual", "1")
		time.Sleep(58 * time.Second)
		if there, err := s.Touch(t.Context(), "touched"); !there || err != nil {
			t.Errorf("%v, %v", there, err)
		}
		if there, err := s.Touch(t.Context(), "nobody"); there || err != nil || s.Len() != 3 {
			t.Errorf("%v, %v, %d names", there, err, s.Len())
		}
		time.Sleep(time.Second)
		s.has(t, "usual", "")
		s.has(t, "forever", "1")
		if got := s.has(t, "touched", "1"); got != version {
			t.Errorf("Touch has changed the version: %v and %v", got, version)
		}
		_, err := s.Update(t.Context(), "usual", func(v *string) error { *v += "2"; return nil })
		if err != nil {
			t.Fatal(err)
		}
		s.has(t, "usual", "2")
		time.Sleep(time.Hour)
		s.Sweep()
		if s.Len() != 1 {
			t.Errorf("%d names are left, want the one that does not expire", s.Len())
		}
	})
}

// The sweeper of Join removes expired values in time.
func TestSweeps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newRealm(t, 1, Config[string]{TTL: 10 * time.Second}).servers[0]
		for i := range 1000 {
			s.mustSet(t, fmt.Sprint(i), "x")
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { s.runSweeper(ctx); close(done) }()
		time.Sleep(9 * time.Second)
		if s.Len() != 1000 {
			t.Errorf("%d names are left before the TTL", s.Len())
		}
		time.Sleep(12 * time.Second)
		if s.Len() != 0 {
			t.Errorf("%d names are left", s.Len())
		}
		cancel()
		<-done
	})
}

// All yields the names with a value that this server owns.
func TestAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRealm(t, 2, Config[string]{})
		s := r.servers[0]
		for _, name := range []string{"a", "b", "c", "d"} {
			s.mustSet(t, name, "1")
		}
		s.mustSet(t, "short", "1", WithTTL(time.Second))
		time.Sleep(time.Second)
		if err := s.Delete(t.Context(), "d"); err != nil {
			t.Fatal(err)
		}
		want := map[string]string{"a": "1", "b": "1", "c": "1"}
		if got := maps.Collect(s.All()); !maps.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
		for name := range s.All() {
			s.mustSet(t, name, "2") // All holds no lock
			break
		}
		r.holder = 1
		if got := maps.Collect(s.All()); len(got) > 0 {
			t.Errorf("All yields %v of another server", got)
		}
	})
}

func TestMax(t *testing.T) {
	s := newRealm(t, 1, Config[string]{Max: 2}).servers[0]
	s.mustSet(t, "a", "1")
	s.mustSet(t, "b", "1")
	_, err := s.Set(t.Context(), "c", "1")
	wantKind(t, err, leasehold.ErrLimit)
	s.mustSet(t, "a", "2")
	if err := s.Delete(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	// Operations without a change succeed in a full map.
	if err := s.Delete(t.Context(), "absent"); err != nil {
		t.Error(err)
	}
	if there, err := s.Touch(t.Context(), "absent"); there || err != nil {
		t.Error(there, err)
	}
	s.mustSet(t, "c", "1")
	_, err = s.Set(t.Context(), "absent", "1", WithVersion(Version{1, 1}))
	wantKind(t, err, leasehold.ErrStale)
	_, err = s.Set(t.Context(), "absent", "1", WithTTL(-1))
	if err != nil {
		t.Error(err)
	}
	if s.Len() != 2 {
		t.Errorf("%d names", s.Len())
	}
}

// Imports count towards Max; a failed import is subtracted
// again.
func TestMaxOfImports(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRealm(t, 2, Config[string]{Max: 10})
		a, b := r.servers[0], r.servers[1]
		for i := range 6 {
			a.mustSet(t, fmt.Sprint(i), "1")
		}
		coming := a.exported(t)
		ctx, cancel := context.WithCancel(t.Context())
		if _, err := b.receive(ctx, coming); err != nil {
			t.Fatal(err)
		}
		_, err := b.receive(t.Context(), coming)
		wantKind(t, err, leasehold.ErrLimit)
		cancel()
		synctest.Wait()
		install, err := b.receive(t.Context(), coming)
		if err != nil {
			t.Fatal(err)
		}
		install(r.set(1, 2))
		if b.Len() != 6 {
			t.Errorf("%d names", b.Len())
		}
	})
}

// Concurrent changes of one name in a map with one free place all succeed.
func TestMaxIsExact(t *testing.T) {
	s := newRealm(t, 1, Config[string]{Max: 1}).servers[0]
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 500 {
				_, err := s.Do(t.Context(), "x", func(e *Entry[string]) error {
					if e.Version.Exists() {
						e.Delete()
					}
					return nil
				})
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
}

// A panic of the function leaves the value unchanged, and the name unlocked.
func TestPanicKeepsValue(t *testing.T) {
	s := newRealm(t, 1, Config[string]{}).servers[0]
	s.mustSet(t, "x", "1")
	func() {
		defer func() { _ = recover() }()
		_, _ = s.Update(t.Context(), "x", func(v *string) error { *v = "lost"; panic("no") })
	}()
	s.has(t, "x", "1")
}

// A slow function blocks operations on its own name, and no other.
func TestNamesDoNotWait(t *testing.T) {
	s := newRealm(t, 1, Config[string]{Key: func(string) leasehold.Key { return 7 }}).servers[0] // one shard
	s.mustSet(t, "y", "1")
	_, err := s.Update(t.Context(), "x", func(v *string) error {
		s.has(t, "y", "1")
		s.mustSet(t, "z", "1")
		s.Sweep()
		*v = "done"
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 500 {
				if _, err := s.Update(t.Context(), "sum", func(v *string) error { *v += "1"; return nil }); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	s.has(t, "sum", strings.Repeat("1", 4000))
}

// A weak map neither refuses nor discards.
func TestWeak(t *testing.T) {
	r := newRealm(t, 2, Config[string]{Weak: true, TTL: time.Minute})
	a, b := r.servers[0], r.servers[1]
	a.mustSet(t, "x", "1")
	if version := b.mustSet(t, "x", "2"); version.Generation != 0 {
		t.Errorf("a server that does not own the name writes with generation %d", version.Generation)
	}
	r.grant(1, nil)
	a.has(t, "x", "1")
	b.has(t, "x", "2")
	if _, err := New(Config[string]{Weak: true}, a); leasehold.KindOf(err) != leasehold.ErrInvalid {
		t.Errorf("a value that does not expire in a weak map: %v", err)
	}
}

func TestInvalidConfig(t *testing.T) {
	for _, cfg := range []Config[string]{
		{Max: -1},
		{TTL: -1},
		{Encode: func([]byte, *string) ([]byte, error) { return nil, nil }},
		{Decode: func([]byte, *string) error { return nil }},
	} {
		if _, err := New(cfg, &server{}); leasehold.KindOf(err) != leasehold.ErrInvalid {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
}

func TestVersionText(t *testing.T) {
	for _, v := range []Version{{}, {5, 17}, {1 << 62, 1<<64 - 1}, {0, 3}} {
		text, err := v.MarshalText()
		var back Version
		if err == nil {
			err = back.UnmarshalText(text)
		}
		if err != nil || back != v {
			t.Errorf("%v is encoded as %q and decoded as %v: %v", v, text, back, err)
		}
	}
	for _, text := range []string{"5", "5.", ".5", "5.17.1", "x.1", "-1.1", "0.0", "none"} {
		var v Version
		wantKind(t, v.UnmarshalText([]byte(text)), leasehold.ErrInvalid)
	}
	if got := (Version{}).String(); got != "none" {
		t.Error(got)
	}
}

// TestOperationsDoNotAllocate: neither a read nor a change of an existing value allocates memory.
func TestOperationsDoNotAllocate(t *testing.T) {
	m := newRealm(t, 1, Config[string]{}).servers[0].Map
	change := func(v *string) error { *v = "changed"; return nil }
	if _, err := m.Update(t.Context(), "a", change); err != nil {
		t.Fatal(err)
	}
	for name, do := range map[string]func() error{
		"Update": func() error { _, err := m.Update(t.Context(), "a", change); return err },
		"Get":    func() error { _, _, err := m.Get("a"); return err },
	} {
		var err error
		if n := testing.AllocsPerRun(1000, func() { err = do() }); n != 0 || err != nil {
			t.Errorf("%s: %v allocations, %v", name, n, err)
		}
	}
}
