package owner_test

import (
	"slices"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/owner"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
)

// An owner whose clock is sufficiently slower than the drift bound detects it. It drops all leases,
// notes that, and neither sends requests nor accepts replies until other owners have its ranges. A clock
// at the bound, or one that is too fast, has no consequence.
func TestClockBeyondTheBound(t *testing.T) {
	all := leasehold.Lease{Range: leasehold.All, Generation: 1}
	for _, c := range []struct {
		name    string
		rate    float64 // of the leader's clock, relative to the owner's
		noticed bool
	}{
		{"equal rates", 1, false},
		{"at the bound", 1.19, false},
		{"slower than the bound", 1.3, true},
		{"half as fast", 2, true},
		{"faster than the bound", 0.5, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newServer(t)
			now := mono.Instant(0)
			noticed := false
			for i := 0; i < 40 && !noticed; i++ {
				now = now.Add(5 * time.Millisecond) // the round trip
				r := s.reply(offer(0, 0, 1, i == 0))
				r.Clock = mono.Instant(c.rate * float64(now))
				actions := s.receive(now, r)
				noticed = slices.ContainsFunc(actions, func(a owner.Action) bool {
					n, is := a.(owner.Note)
					return is && n.What == owner.NoteClockSlow
				})
				if noticed {
					break
				}
				s.wantLeases(all)
				for seq := s.request.Seq; s.request.Seq == seq; {
					now = max(now, s.wake)
					s.did(s.machine.Advance(now))
				}
			}
			if noticed != c.noticed {
				t.Fatalf("slow clock detected: %t, want %t", noticed, c.noticed)
			}
			if !noticed {
				return
			}
			s.wantLeases()
			last := s.request.Seq
			s.receive(now, s.reply(offer(0, 0, 2, true)))
			s.did(s.machine.Advance(s.wake - 1))
			s.wantLeases()
			if s.request.Seq != last || s.wake.Sub(now) < 2*10*time.Second {
				t.Errorf("next request after %v, want at least two leases", s.wake.Sub(now))
			}
		})
	}
}

// TestClockChangesItsRate: an owner whose clock becomes too slow after an hour detects it within two windows of four
// leases. The hour before does not hide it.
func TestClockChangesItsRate(t *testing.T) {
	s := newServer(t)
	const hour = mono.Instant(time.Hour)
	window := mono.Instant(4 * 10 * time.Second)
	for now, first := mono.Instant(0), true; ; first = false {
		now = now.Add(5 * time.Millisecond)
		r := s.reply(offer(0, 0, 1, first))
		r.Clock = now + max(0, now-hour) // it is twice as fast as the owner's after an hour
		noticed := slices.ContainsFunc(s.receive(now, r), func(a owner.Action) bool {
			n, is := a.(owner.Note)
			return is && n.What == owner.NoteClockSlow
		})
		switch {
		case noticed && now < hour:
			t.Fatalf("a good clock is called slow at %v", now)
		case noticed:
			return
		case now > hour+2*window:
			t.Fatalf("not detected at %v", now)
		}
		for seq := s.request.Seq; s.request.Seq == seq; {
			now = max(now, s.wake)
			s.did(s.machine.Advance(now))
		}
	}
}
