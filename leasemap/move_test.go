package leasemap

import (
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold"
)

// Values move with the lease, with their versions and remaining TTLs, including
// changes during the copy.
func TestMove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRealm(t, 2, Config[string]{})
		a, b := r.servers[0], r.servers[1]
		kept := a.mustSet(t, "kept", "1")
		a.mustSet(t, "changed", "1")
		a.mustSet(t, "deleted", "1")
		a.mustSet(t, "touched", "1", WithTTL(time.Minute))
		a.mustSet(t, "short", "1", WithTTL(time.Minute))
		a.mustSet(t, "expired", "1", WithTTL(time.Second))
		b.Map.shard(leasehold.KeyOf("stale")).entries = map[string]*entry[string]{"stale": {version: Version{9, 9}, value: "old"}}
		time.Sleep(30 * time.Second)
		err := r.move(t.Context(), 1, func() {
			a.mustSet(t, "changed", "2")
			a.mustSet(t, "created", "1")
			if err := a.Delete(t.Context(), "deleted"); err != nil {
				t.Error(err)
			}
			if _, err := a.Touch(t.Context(), "touched", WithTTL(time.Minute)); err != nil {
				t.Error(err)
			}
			_, _ = a.Set(t.Context(), "refused", "1", WithVersion(kept))
		})
		if err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string]string{
			"kept": "1", "changed": "2", "created": "1", "deleted": "", "touched": "1", "short": "1", "expired": "", "refused": "", "stale": "",
		} {
			if version := b.has(t, name, want); name == "kept" && version != kept {
				t.Errorf("the version was %v, and is %v", kept, version)
			}
		}
		if a.Len() != 0 {
			t.Errorf("%d names are left at the source", a.Len())
		}
		_, _, err = a.Get("kept")
		wantKind(t, err, leasehold.ErrNotOwner)
		b.mustSet(t, "kept", "2", WithVersion(kept))
		time.Sleep(31 * time.Second)
		b.has(t, "short", "")
		b.has(t, "touched", "1")
	})
}

// Without a move values are lost with the lease, and a later tenure does not restore them.
func TestLoss(t *testing.T) {
	r := newRealm(t, 2, Config[string]{})
	r.servers[0].mustSet(t, "x", "1")
	r.grant(1, nil)
	r.servers[1].has(t, "x", "")
	r.grant(0, nil)
	r.servers[0].has(t, "x", "")
}

// A failed move changes nothing.
func TestMoveFails(t *testing.T) {
	r := newRealm(t, 2, Config[string]{Max: 3})
	a, b := r.servers[0], r.servers[1]
	a.mustSet(t, "x", "1")
	b.count.Store(3)
	wantKind(t, r.move(t.Context(), 1, nil), leasehold.ErrLimit)
	r.mu.Lock()
	r.stopped = false
	r.mu.Unlock()
	a.has(t, "x", "1")
	if a.shard(leasehold.KeyOf("x")).exports.Load() != 0 {
		t.Error("changes are still recorded")
	}
}

// Updates that were acknowledged during many moves are applied exactly
// once; failed updates at most once.
func TestMovesUnderLoad(t *testing.T) {
	r := newRealm(t, 3, Config[string]{})
	const names, rounds = 40, 30
	type tally struct{ sure, perhaps atomic.Int64 }
	var tallies [names]tally
	var stop atomic.Bool
	var clients sync.WaitGroup
	for c := range 4 {
		clients.Go(func() {
			for i := c; !stop.Load(); i++ {
				name := i % names
				_, err := r.owner().Update(t.Context(), fmt.Sprint(name), func(v *string) error {
					n, _ := strconv.Atoi(*v)
					*v = strconv.Itoa(n + 1)
					return nil
				})
				switch leasehold.KindOf(err) {
				case leasehold.ErrNotOwner:
				case leasehold.ErrIndeterminate:
					tallies[name].perhaps.Add(1)
				default:
					if err != nil {
						t.Error(err)
						return
					}
					tallies[name].sure.Add(1)
				}
			}
		})
	}
	for i := range rounds {
		if err := r.move(t.Context(), (i+1)%3, nil); err != nil {
			t.Fatal(err)
		}
	}
	stop.Store(true)
	clients.Wait()
	last := r.owner()
	for name := range names {
		value, _, err := last.Get(fmt.Sprint(name))
		n, _ := strconv.Atoi(value)
		sure, perhaps := tallies[name].sure.Load(), tallies[name].perhaps.Load()
		if err != nil || int64(n) < sure || int64(n) > sure+perhaps {
			t.Errorf("%d is %d (%v): %d updates were acknowledged, and %d are indeterminate", name, n, err, sure, perhaps)
		}
	}
}

func TestInvalidRecords(t *testing.T) {
	good := append(appendHead(nil, "name", Version{1, 2}, time.Second), "value"...)
	r, err := parseRecord(good)
	if err != nil || r.name != "name" || r.version != (Version{1, 2}) || r.left != time.Second || string(r.value) != "value" {
		t.Errorf("%+v, %v", r, err)
	}
	for n := range len(good) - len("value") {
		if _, err := parseRecord(good[:n]); leasehold.KindOf(err) != leasehold.ErrInvalid {
			t.Errorf("the first %d bytes of a record: %v", n, err)
		}
	}
	other := append([]byte(nil), good...)
	other[0] = 2
	if _, err := parseRecord(other); leasehold.KindOf(err) != leasehold.ErrInvalid {
		t.Errorf("a record of another format: %v", err)
	}
	s := newRealm(t, 1, Config[string]{}).servers[0]
	a := &staged[string]{m: s.Map, parts: map[int]map[string]*entry[string]{}}
	wantKind(t, a.add(append(appendHead(nil, "x", Version{1, 1}, 0), "not json"...)), leasehold.ErrInvalid)
}
