package queue

import (
	"context"
	"encoding/json"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/leaseholdtest"
	"github.com/leasehold-dev/leasehold/leasemap"
	"github.com/leasehold-dev/leasehold/lookup"
	"github.com/leasehold-dev/leasehold/owner"
)

// leases are of all keys, or of none while they are stopped: as an owner's are while a
// range moves, until the move has failed.
type leases struct{ stopped atomic.Bool }

func (l *leases) Check(key leasehold.Key) (owner.Lease, bool) {
	return owner.Lease{Lease: leasehold.Lease{Range: leasehold.All, Generation: 1}, Key: key}, !l.stopped.Load()
}

func (l *leases) Held(owner.Lease) bool { return !l.stopped.Load() }

func (l *leases) Suspended(leasehold.Key) bool { return false }

func newService(t *testing.T, held *leases, watch map[string]*lookup.Lookup) *Service {
	t.Helper()
	queues, err := leasemap.New(leasemap.Config[queue]{TTL: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	queues.Use(held)
	s := &Service{cfg: Config{Room: 10, Watch: watch}, queues: queues, bells: newBells()}
	s.news = newNews(s)
	return s
}

// withQueue runs a test with a queue whose device depends on two documents, and has been
// told of losses up to an LSN.
func withQueue(t *testing.T, told leasehold.LSN, test func(s *Service, held *leases, losses func() []string)) {
	synctest.Test(t, func(t *testing.T) {
		held := new(leases)
		s := newService(t, held, nil)
		if err := s.do(t.Context(), "phone", func(q *queue) error {
			q.Interests = []Interest{{"documents", "home"}, {"documents", "work"}}
			q.Told = map[string]leasehold.LSN{"documents": told}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		test(s, held, func() (names []string) {
			b, err := s.Receive(t.Context(), "phone", Place{}, 0)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range b.Messages {
				names = append(names, m.Lost.Names...)
			}
			return names
		})
	})
}

func tell(s *Service, r reading, loss leasehold.Loss) {
	s.news.each(func(name string) bool { return s.news.tell(name, r, loss) })
}

// A queue that is about to go to another server, and stays after all, has been told of what
// was lost meanwhile.
func TestToldAfterAMoveThatFailed(t *testing.T) {
	withQueue(t, 3, func(s *Service, held *leases, losses func() []string) {
		held.stopped.Store(true)
		done := make(chan struct{})
		go func() {
			defer close(done)
			tell(s, reading{service: "documents", from: s.news.oldest("documents", 9)}, leasehold.Loss{Range: leasehold.All, LSN: 4})
		}()
		time.Sleep(time.Second)
		held.stopped.Store(false)
		<-done
		if got := losses(); len(got) != 2 {
			t.Errorf("told of %v", got)
		}
	})
}

// A queue that comes with less told than we have read is not told of what is lost next, or
// it would count as told of what was before: the losses are read again.
func TestNotToldOutOfOrder(t *testing.T) {
	withQueue(t, 3, func(s *Service, _ *leases, losses func() []string) {
		range1 := leasehold.Range{Start: leasehold.KeyOf("home"), Limit: leasehold.KeyOf("home") + 1}
		range2 := leasehold.Range{Start: leasehold.KeyOf("work"), Limit: leasehold.KeyOf("work") + 1}
		again := 0
		tell(s, reading{"documents", 8, func() { again++ }}, leasehold.Loss{Range: range2, LSN: 9})
		if again != 1 {
			t.Errorf("told to read again %d times", again)
		}
		from := s.news.oldest("documents", 9)
		for _, loss := range []leasehold.Loss{{Range: range1, LSN: 5}, {Range: range2, LSN: 9}} {
			if loss.LSN > from {
				tell(s, reading{"documents", from, func() { again++ }}, loss)
			}
		}
		if got := losses(); !slices.Equal(got, []string{"home", "work"}) || again != 1 {
			t.Errorf("told of %v", got)
		}
	})
}

// A queue that has come from a server that knew less is told of what was lost before, also
// if its device has said meanwhile what it depends on.
func TestToldWhenItArrives(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{Namespace: "documents"}, func(t *testing.T, c *leaseholdtest.Cluster) {
		c.Node("dies").Join(owner.Config{})
		c.Settle()
		l := c.Node("here").Lookup()
		before := l.LSN()
		c.Node("dies").Kill()
		c.Node("lives").Join(owner.Config{})
		c.Settle()
		s := newService(t, new(leases), map[string]*lookup.Lookup{"documents": l})
		s.news.start()
		defer s.news.stop()
		c.Advance(time.Second) // it has read all that there is
		interests := []Interest{{"documents", "home"}}
		if err := s.do(t.Context(), "phone", func(q *queue) error {
			q.Interests, q.Told = interests, map[string]leasehold.LSN{"documents": before}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if err := s.SetInterests(t.Context(), "phone", interests); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		time.AfterFunc(time.Second, s.news.arrived) // the device waits already
		b, err := s.Receive(t.Context(), "phone", Place{}, 10*time.Second)
		if err != nil || len(b.Messages) != 1 || b.Messages[0].Lost == nil {
			t.Errorf("%+v, %v", b, err)
		}
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("it waited for %v", took)
		}
	})
}

// A loss is told once, but that contact was lost as often as it happens, and a queue without
// room has a mark instead.
func TestToldOnce(t *testing.T) {
	withQueue(t, 3, func(s *Service, _ *leases, losses func() []string) {
		r := reading{service: "documents", from: 3}
		between := max(leasehold.KeyOf("home"), leasehold.KeyOf("work"))
		for _, test := range []struct {
			loss leasehold.Loss
			want int // names that were told so far
		}{
			{leasehold.Loss{Range: leasehold.All, LSN: 3, Resume: 3}, 0},
			{leasehold.Loss{Range: leasehold.All, LSN: 4, Resume: 4}, 2},
			{leasehold.Loss{Range: leasehold.All, LSN: 4, Resume: 4}, 2},
			{leasehold.Loss{Range: leasehold.All, LSN: 4, Resume: 4, Cause: leasehold.CauseContact}, 4},
			{leasehold.Loss{Range: leasehold.All, LSN: 4, Resume: 4, Cause: leasehold.CauseContact}, 6},
			{leasehold.Loss{Range: leasehold.Range{Limit: between}, LSN: 5, Resume: 4}, 7}, // two losses of one LSN
			{leasehold.Loss{Range: leasehold.Range{Start: between}, LSN: 5, Resume: 5}, 8},
		} {
			tell(s, r, test.loss)
			if got := losses(); len(got) != test.want {
				t.Errorf("%v: told of %v", test.loss, got)
			}
		}
	})
	withQueue(t, 3, func(s *Service, _ *leases, _ func() []string) {
		for range 10 {
			if _, err := s.Enqueue(context.Background(), "phone", json.RawMessage("1"), false); err != nil {
				t.Fatal(err)
			}
		}
		tell(s, reading{service: "documents", from: 3}, leasehold.Loss{Range: leasehold.All, LSN: 4})
		b, err := s.Receive(context.Background(), "phone", Place{}, 0)
		if err != nil || len(b.Messages) != 11 || !b.Messages[10].Missed {
			t.Errorf("%+v, %v", b, err)
		}
	})
}
