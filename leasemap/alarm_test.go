package leasemap

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold"
)

// alarmed runs a test with servers whose maps record their alarms: the server, the name and the seconds since
// the start. An alarm sets the value to "rung".
func alarmed(t *testing.T, cfg Config[string], test func(t *testing.T, r *realm, want func(...string))) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var rung []string
		begun := time.Now()
		var r *realm
		cfg.OnAlarm = func(_ context.Context, name string, e *Entry[string]) error {
			mu.Lock()
			defer mu.Unlock()
			rung = append(rung, fmt.Sprintf("%d %s %.0f", r.owner().number, name, time.Since(begun).Seconds()))
			if e.Value == "failing" {
				return errors.New("no")
			}
			if e.Value == "repeating" {
				e.Alarm(time.Now().Add(time.Minute))
				e.Keep()
				return nil
			}
			e.Value = "rung"
			return nil
		}
		r = newRealm(t, 2, cfg)
		ctx, stop := context.WithCancel(t.Context())
		var all sync.WaitGroup
		defer all.Wait()
		defer stop()
		for _, s := range r.servers {
			all.Go(func() { s.run(ctx) })
			all.Go(func() { s.runAlarms(ctx) })
		}
		test(t, r, func(want ...string) {
			t.Helper()
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if slices.Sort(rung); !slices.Equal(rung, want) {
				t.Errorf("alarms: %q, want %q", rung, want)
			}
			rung = nil
		})
	})
}

// setAlarmIn sets a value with an alarm.
func (s *server) setAlarmIn(t *testing.T, name, value string, after time.Duration) {
	t.Helper()
	if _, err := s.Do(t.Context(), name, func(e *Entry[string]) error {
		e.Value = value
		e.Alarm(time.Now().Add(after))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// An alarm rings once, at its time; it can be changed, cancelled and repeated, and ends with the value.
func TestAlarm(t *testing.T) {
	alarmed(t, Config[string]{}, func(t *testing.T, r *realm, want func(...string)) {
		s := r.servers[0]
		s.setAlarmIn(t, "a", "1", 5*time.Second)
		s.setAlarmIn(t, "b", "1", 3*time.Second)
		s.setAlarmIn(t, "later", "1", time.Second)
		s.setAlarmIn(t, "later", "1", 7*time.Second)
		s.setAlarmIn(t, "cancelled", "1", time.Second)
		if _, err := s.Do(t.Context(), "cancelled", func(e *Entry[string]) error { e.Keep(); e.Alarm(time.Time{}); return nil }); err != nil {
			t.Error(err)
		}
		s.setAlarmIn(t, "deleted", "1", time.Second)
		if err := s.Delete(t.Context(), "deleted"); err != nil {
			t.Error(err)
		}
		s.mustSet(t, "deleted", "2")
		s.setAlarmIn(t, "repeating", "repeating", time.Minute)
		s.mustSet(t, "b", "2") // keeps its alarm
		time.Sleep(10 * time.Second)
		want("0 a 5", "0 b 3", "0 later 7")
		s.has(t, "a", "rung")
		s.has(t, "b", "rung")
		time.Sleep(3 * time.Minute)
		want("0 repeating 120", "0 repeating 180", "0 repeating 60")
	})
}

// After an error the alarm rings again, with backoff.
func TestAlarmFails(t *testing.T) {
	alarmed(t, Config[string]{}, func(t *testing.T, r *realm, want func(...string)) {
		s := r.servers[0]
		s.setAlarmIn(t, "x", "failing", time.Second)
		time.Sleep(10 * time.Second)
		want("0 x 1", "0 x 2", "0 x 4", "0 x 8")
		s.mustSet(t, "x", "1")
		time.Sleep(10 * time.Second)
		want("0 x 16")
		s.has(t, "x", "rung")
	})
	synctest.Test(t, func(t *testing.T) {
		s := newRealm(t, 1, Config[string]{}).servers[0]
		_, err := s.Do(t.Context(), "x", func(e *Entry[string]) error { e.Alarm(time.Now()); return nil })
		wantKind(t, err, leasehold.ErrInvalid)
	})
}

// An alarm moves with its value, and rings only there.
func TestAlarmMoves(t *testing.T) {
	alarmed(t, Config[string]{}, func(t *testing.T, r *realm, want func(...string)) {
		a := r.servers[0]
		a.setAlarmIn(t, "x", "1", 5*time.Second)
		if err := r.move(t.Context(), 1, func() { a.setAlarmIn(t, "y", "1", 6*time.Second) }); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		want("1 x 5", "1 y 6")
		r.servers[1].setAlarmIn(t, "lost", "1", 5*time.Second)
		r.grant(0, nil)
		time.Sleep(10 * time.Second)
		want()
	})
}

// With a store an alarm survives a crash, and eviction. One that has rung does not ring again.
func TestAlarmSurvivesCrash(t *testing.T) {
	for name, behind := range map[string]*WriteBehind{"write-through": nil, "write-behind": {OnLost: new(losses).add}} {
		t.Run(name, func(t *testing.T) {
			cfg := plain(newDisk())
			cfg.WriteBehind = behind
			alarmed(t, cfg, func(t *testing.T, r *realm, want func(...string)) {
				a := r.servers[0]
				a.setAlarmIn(t, "rings", "1", 2*time.Second)
				a.setAlarmIn(t, "over", "1", 5*time.Second)
				a.setAlarmIn(t, "x", "1", time.Minute)
				time.Sleep(4 * time.Second)
				want("0 rings 2")
				r.grant(1, nil)
				time.Sleep(10 * time.Second)
				want("1 over 10") // found by the scan
				time.Sleep(time.Minute)
				want("1 x 60")
				r.servers[1].has(t, "x", "rung")
				r.grant(0, nil)
				time.Sleep(2 * time.Minute)
				want()
				a.has(t, "x", "rung")
			})
		})
	}
}

// An alarm in the far future stays there when it moves.
func TestFarAlarm(t *testing.T) {
	r := newRealm(t, 2, Config[string]{OnAlarm: ignoreAlarm})
	far := time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
	if _, err := r.servers[0].Do(t.Context(), "x", func(e *Entry[string]) error { e.Alarm(far); return nil }); err != nil {
		t.Fatal(err)
	}
	if err := r.move(t.Context(), 1, nil); err != nil {
		t.Fatal(err)
	}
	if q := r.servers[1].alarms.queue; len(q) != 1 || !q[0].at.Equal(far) {
		t.Errorf("alarms after the move: %v, want one at %v", q, far)
	}
}

// After a crash the alarms are loaded in parallel, and those in memory not again: a name in use delays no other.
func TestAlarmScan(t *testing.T) {
	d := newDisk()
	alarmed(t, plain(d), func(t *testing.T, r *realm, want func(...string)) {
		for i := range 64 {
			r.servers[0].setAlarmIn(t, fmt.Sprintf("%02d", i), "1", 12*time.Second)
		}
		d.set(func(string) error { time.Sleep(time.Second); return nil }, nil)
		r.grant(1, nil)
		b := r.servers[1]
		var all []string
		for i := range 64 {
			all = append(all, fmt.Sprintf("1 %02d 12", i))
		}
		slow := make(chan struct{})
		go func() {
			defer close(slow)
			_, _ = b.Update(t.Context(), "00", func(*string) error { time.Sleep(30 * time.Second); return errors.New("no") })
		}()
		time.Sleep(12*time.Second + 1)
		want(all[1:]...)
		if d.loads != 2*64 {
			t.Errorf("%d loads of 64 names by two servers", d.loads)
		}
		<-slow
		want("1 00 31")
	})
}

func ignoreAlarm(context.Context, string, *Entry[string]) error { return nil }

// wantStoredAlarm checks whether the store has an alarm for a name.
func (d *disk) wantStoredAlarm(t *testing.T, name, value string) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	if r := d.rows[name]; string(r.Value) != value || r.Alarm.IsZero() {
		t.Errorf("%s is stored as %q with an alarm at %v, want %q with an alarm", name, r.Value, r.Alarm, value)
	}
}

// A value keeps its alarm in the store if the next owner replaces it without having read it.
func TestSetAfterTakeoverKeepsAlarm(t *testing.T) {
	d := newDisk()
	cfg := plain(d)
	cfg.OnAlarm = ignoreAlarm
	r := newRealm(t, 2, cfg)
	r.servers[0].setAlarmIn(t, "x", "1", time.Hour)
	r.grant(1, nil)
	r.servers[1].mustSet(t, "x", "2")
	d.wantStoredAlarm(t, "x", "2")
}

// A change that is saved after its lease has ended does not remove the alarm from the store.
func TestUnsavedChangeKeepsAlarm(t *testing.T) {
	d, lost := newDisk(), new(losses)
	cfg := plain(d)
	cfg.OnAlarm, cfg.WriteBehind = ignoreAlarm, &WriteBehind{OnLost: lost.add}
	r := newRealm(t, 2, cfg)
	s := r.servers[0]
	s.setAlarmIn(t, "x", "1", time.Hour)
	if err := s.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.mustSet(t, "x", "2")
	r.grant(1, nil)
	if err := s.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	d.wantStoredAlarm(t, "x", "2")
	lost.want(t)
}

// A server without OnAlarm keeps the alarms of the values that it loads, in the store and in a move.
func TestMapWithoutOnAlarmKeepsAlarms(t *testing.T) {
	d := newDisk()
	r := newRealm(t, 2, plain(d))
	a := r.servers[0]
	a.alarms = newAlarms[string]()
	a.setAlarmIn(t, "x", "1", time.Hour)
	a.setAlarmIn(t, "y", "1", time.Hour)
	a.alarms = nil
	for range 2 {
		r.grant(1, nil)
		for _, name := range []string{"x", "y"} {
			if _, err := r.servers[1].Touch(t.Context(), name); err != nil {
				t.Fatal(err)
			}
		}
		if err := r.move(t.Context(), 0, nil); err != nil {
			t.Fatal(err)
		}
		a.mustSet(t, "y", "1")
	}
	d.wantStoredAlarm(t, "x", "1")
	d.wantStoredAlarm(t, "y", "1")
}

// An entry that has left its shard during the operation that sets its alarm is not fired.
func TestAlarmOfRemovedEntry(t *testing.T) {
	r := newRealm(t, 2, Config[string]{OnAlarm: ignoreAlarm})
	s := r.servers[0]
	_, err := s.Do(t.Context(), "x", func(e *Entry[string]) error {
		e.Alarm(time.Now().Add(time.Second))
		r.grant(1, nil)
		return nil
	})
	wantKind(t, err, leasehold.ErrIndeterminate)
	if n := len(s.alarms.queue); n > 0 {
		t.Errorf("%d alarms are queued", n)
	}
}
