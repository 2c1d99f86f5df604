package check

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/testkit/oracle"
	"github.com/leasehold-dev/leasehold/lab/chaos/history"
)

// How a long story goes: a lease lasts a second, and callers live for a minute.
const (
	tick      = oracle.Time(100 * time.Millisecond)
	reignTime = 10 * tick
	lifeTime  = 600 * tick
	margin    = oracle.Time(time.Minute) // of what is settled
)

// A teller tells a story of so many leases to a book, in order, and spoils it at one of them.
type teller struct {
	random *rand.Rand
	settle bool
	spoil  func(at *teller)
	book   *Book
	caller *Caller
	now    oracle.Time
	lease  leasehold.Generation
	value  string // of the register
}

func (s *teller) tell(leases, spoilt leasehold.Generation) *Book {
	s.book = New([]leasehold.Key{key}, time.Second, 0)
	for s.lease = 1; s.lease <= leases; s.lease++ {
		s.value = ""
		s.reign()
		if s.lease == spoilt {
			s.spoil(s)
		}
		if s.settle && s.lease%7 == 0 {
			s.book.Settle(s.now - margin)
		}
	}
	return s.book
}

// reign is one lease, under which the register is written and read, and of which the
// caller is told when it is over.
func (s *teller) reign() {
	for end := s.now + reignTime; s.now < end; s.now += tick {
		if s.now%lifeTime == 0 {
			if s.caller != nil {
				s.caller.Gone()
			}
			s.caller = s.book.Caller(fmt.Sprint("c", s.now))
			opened(s.now)(s.book, s.caller)
		}
		held(byte(s.lease), s.lease, s.now, s.now+tick/2)(s.book, s.caller)
		s.call(s.random.IntN(3))
	}
	s.now += tick
	lost(s.now, s.lease)(s.book, s.caller)
	event(history.Event{At: s.now, Table: &history.Table{LSN: leasehold.LSN(s.lease), Hash: uint64(s.lease)}})(s.book, s.caller)
}

// call reads, writes, or writes without getting an answer.
func (s *teller) call(what int) {
	fresh := fmt.Sprint(s.now)
	switch what {
	case 0:
		read(s.value, s.lease, s.now, s.now+1)(s.book, s.caller)
		return
	case 1:
		write(fresh, 0, s.now, s.now)(s.book, s.caller)
		write(fresh, s.lease, s.now, s.now+1)(s.book, s.caller)
	case 2:
		write(fresh, 0, s.now, s.now)(s.book, s.caller)
		if s.random.IntN(2) == 0 {
			return // it was not done
		}
	}
	s.value = fresh
}

// TestSettled: what is judged while it goes on is judged as it would be in the end, and
// what is judged is forgotten.
func TestSettled(t *testing.T) {
	for name, spoil := range map[string]func(s *teller){
		"nothing":                func(*teller) {},
		"a register":             func(s *teller) { read("what nobody wrote", s.lease, s.now, s.now+1)(s.book, s.caller) },
		"an old lease":           func(s *teller) { read("", s.lease-1, s.now, s.now+1)(s.book, s.caller) },
		"a lease of long ago":    func(s *teller) { read("", 1, s.now, s.now+1)(s.book, s.caller) },
		"an untold loss":         func(s *teller) { s.caller.losses = s.caller.losses[:len(s.caller.losses)-1] },
		"what was not lost":      func(s *teller) { lost(s.now-5*tick, s.lease)(s.book, s.caller) },
		"another table":          func(s *teller) { table(leasehold.LSN(s.lease), 1)(s.book, s.caller) },
		"a generation once more": func(s *teller) { held(99, 1, s.now, s.now+tick/2)(s.book, s.caller); s.now += tick },
	} {
		t.Run(name, func(t *testing.T) {
			told := func(settle bool) *Book {
				s := &teller{random: rand.New(rand.NewPCG(1, 1)), settle: settle, spoil: spoil}
				return s.tell(400, 303)
			}
			whole, settled := told(false), told(true)
			if n := len(settled.tenures[key]); n > 200 {
				t.Errorf("%d tenures are kept", n)
			}
			if n := len(settled.callers); n > 5 {
				t.Errorf("%d callers are kept", n)
			}
			if n := len(settled.tables); n > 200 {
				t.Errorf("%d tables are kept", n)
			}
			r := settled.registers["key-0"]
			if n := len(r.calls) + len(r.unknown); n > 1000 {
				t.Errorf("%d histories and writes are kept", n)
			}
			want, wantCounts := whole.Violations()
			found, counts := settled.Violations()
			if name == "nothing" {
				if diff := cmp.Diff(wantCounts, counts); diff != "" || len(want)+len(found) > 0 {
					t.Errorf("%v, %v, %s", want, found, diff)
				}
				return
			}
			// What follows from the first one may differ.
			if len(want) == 0 || len(found) == 0 || found[0] != want[0] {
				t.Errorf("found %v, and in the end %v", found, want)
			}
		})
	}
}
