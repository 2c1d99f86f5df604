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

// Durations of a long history: a lease lasts a second, and callers run for a minute.
const (
	tick       = oracle.Time(100 * time.Millisecond)
	tenureTime = 10 * tick
	lifeTime   = 600 * tick
	margin     = oracle.Time(time.Minute) // between the time of judging and the present
)

// A generator writes the records of a number of leases to a book, in order, and adds a violation at one of them.
type generator struct {
	random  *rand.Rand
	during  bool
	violate func(at *generator)
	book    *Book
	caller  *Caller
	now     oracle.Time
	lease   leasehold.Generation
	value   string // of the register
}

func (s *generator) generate(leases, violated leasehold.Generation) *Book {
	s.book = New([]leasehold.Key{key}, time.Second, 0)
	for s.lease = 1; s.lease <= leases; s.lease++ {
		s.value = ""
		s.writeTenure()
		if s.lease == violated {
			s.violate(s)
		}
		if s.during && s.lease%7 == 0 {
			s.book.Judge(s.now - margin)
		}
	}
	return s.book
}

// writeTenure writes one tenure, in which the register is written and read. The caller receives its loss when
// it is over.
func (s *generator) writeTenure() {
	for end := s.now + tenureTime; s.now < end; s.now += tick {
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

// call reads, writes, or writes without an answer.
func (s *generator) call(what int) {
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
			return // it was not executed
		}
	}
	s.value = fresh
}

// TestJudgingDuringTheRun: judging during the run has the same result as judging at the end, and judged records are
// dropped.
func TestJudgingDuringTheRun(t *testing.T) {
	for name, violate := range map[string]func(s *generator){
		"nothing":                func(*generator) {},
		"a register":             func(s *generator) { read("never written", s.lease, s.now, s.now+1)(s.book, s.caller) },
		"an old lease":           func(s *generator) { read("", s.lease-1, s.now, s.now+1)(s.book, s.caller) },
		"a very old lease":       func(s *generator) { read("", 1, s.now, s.now+1)(s.book, s.caller) },
		"a missing loss":         func(s *generator) { s.caller.losses = s.caller.losses[:len(s.caller.losses)-1] },
		"a false loss":           func(s *generator) { lost(s.now-5*tick, s.lease)(s.book, s.caller) },
		"another table":          func(s *generator) { table(leasehold.LSN(s.lease), 1)(s.book, s.caller) },
		"a generation once more": func(s *generator) { held(99, 1, s.now, s.now+tick/2)(s.book, s.caller); s.now += tick },
	} {
		t.Run(name, func(t *testing.T) {
			write := func(during bool) *Book {
				s := &generator{random: rand.New(rand.NewPCG(1, 1)), during: during, violate: violate}
				return s.generate(400, 303)
			}
			whole, judged := write(false), write(true)
			if n := len(judged.tenures[key]); n > 200 {
				t.Errorf("%d tenures are kept", n)
			}
			if n := len(judged.callers); n > 5 {
				t.Errorf("%d callers are kept", n)
			}
			if n := len(judged.tables); n > 200 {
				t.Errorf("%d tables are kept", n)
			}
			r := judged.registers["key-0"]
			if n := len(r.calls) + len(r.unknown); n > 1000 {
				t.Errorf("%d histories and writes are kept", n)
			}
			want, wantCounts := whole.Violations()
			found, counts := judged.Violations()
			if name == "nothing" {
				if diff := cmp.Diff(wantCounts, counts); diff != "" || len(want)+len(found) > 0 {
					t.Errorf("%v, %v, %s", want, found, diff)
				}
				return
			}
			// Violations after the first one may differ.
			if len(want) == 0 || len(found) == 0 || found[0] != want[0] {
				t.Errorf("found %v, and when judged at the end %v", found, want)
			}
		})
	}
}
