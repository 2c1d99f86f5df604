package agent

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/failpoint"
	"github.com/leasehold-dev/leasehold/owner"
)

// How long a program may wait for a key, and how much it may report at once.
const (
	usualAwait, leastAwait, mostAwait = time.Second, time.Millisecond, 10 * time.Second

	maxCosts = 1000
)

// withOwner makes a handler of what answers for an owner that has joined.
func (a *Agent) withOwner(do func(*session, http.ResponseWriter, *http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s, err := a.session(r)
		if err != nil {
			fail(w, err)
			return
		}
		document, err := do(s, w, r)
		if err != nil {
			fail(w, err)
			return
		}
		answer(w, http.StatusOK, document)
	}
}

// A leasesAnswer is all that is held, and for how long after the program sent its
// question that is true: nobody else acts on these keys before. Nothing is true for
// 0 ms. Suspended says that nothing is held because no manager has answered in time: the
// program keeps its state, and its callers wait.
type leasesAnswer struct {
	Leases     []leaseDocument `json:"leases"`
	ValidForMS int64           `json:"valid_for_ms"`
	Suspended  bool            `json:"suspended,omitempty"`
}

func (s *session) leases(w http.ResponseWriter, r *http.Request) (any, error) {
	if err := read(w, r, &struct{}{}); err != nil {
		return nil, err
	}
	held, ms := s.promise()
	return leasesAnswer{leasesJSON(held), ms, s.owner.Status().Suspended > 0}, nil
}

// promise is the owner's, in whole milliseconds. The fraction is the program's
// loss, and what is less than a millisecond is not worth a promise.
func (s *session) promise() ([]leasehold.Lease, int64) {
	held, d := s.owner.Promise()
	failpoint.Here("agent/promised-before-answer")
	if d < time.Millisecond {
		return nil, 0
	}
	return held, d.Milliseconds()
}

// A checkAnswer says whether a key is held, under which lease, and for how long
// after the program sent its question that is true; if it is not, whether its lease is
// suspended.
type checkAnswer struct {
	Held       bool           `json:"held"`
	Key        string         `json:"key"`
	Lease      *leaseDocument `json:"lease,omitempty"`
	ValidForMS int64          `json:"valid_for_ms"`
	Suspended  bool           `json:"suspended,omitempty"`
}

func (s *session) check(w http.ResponseWriter, r *http.Request) (any, error) {
	var in keyDocument
	if err := read(w, r, &in); err != nil {
		return nil, err
	}
	key, err := in.parse()
	if err != nil {
		return nil, err
	}
	held, ms := s.promise()
	l, ok := find(held, key)
	if !ok {
		return checkAnswer{Key: key.String(), Suspended: s.owner.Suspended(key)}, nil
	}
	s.owner.Check(key) // counts as work
	lease := leaseJSON(l)
	return checkAnswer{Held: true, Key: key.String(), Lease: &lease, ValidForMS: ms}, nil
}

// find returns the lease that covers a key. Leases are sorted by range.
func find(leases []leasehold.Lease, key leasehold.Key) (leasehold.Lease, bool) {
	i, exact := slices.BinarySearchFunc(leases, key, func(l leasehold.Lease, key leasehold.Key) int {
		switch {
		case l.Range.Start < key:
			return -1
		case l.Range.Start > key:
			return 1
		}
		return 0
	})
	if !exact {
		i--
	}
	if i < 0 || !leases[i].Range.Contains(key) {
		return leasehold.Lease{}, false
	}
	return leases[i], true
}

// A heldAnswer says whether a lease has been held on its key all along.
type heldAnswer struct {
	Held       bool  `json:"held"`
	ValidForMS int64 `json:"valid_for_ms"`
	Suspended  bool  `json:"suspended,omitempty"`
}

func (s *session) held(w http.ResponseWriter, r *http.Request) (any, error) {
	var in struct {
		keyDocument
		Generation string `json:"generation"`
	}
	if err := read(w, r, &in); err != nil {
		return nil, err
	}
	key, err := in.parse()
	if err != nil {
		return nil, err
	}
	generation, err := parseDecimal("generation", in.Generation)
	if err != nil {
		return nil, err
	}
	leases, ms := s.promise()
	if l, ok := find(leases, key); !ok || uint64(l.Generation) != generation {
		return heldAnswer{Suspended: s.owner.Suspended(key)}, nil
	}
	return heldAnswer{Held: true, ValidForMS: ms}, nil
}

// An awaitAnswer says whether a key was held when the wait ended. It promises
// nothing: the program's question may be so old that no promise counted from it
// would be left.
type awaitAnswer struct {
	Held bool `json:"held"`
}

func (s *session) await(w http.ResponseWriter, r *http.Request) (any, error) {
	var in struct {
		keyDocument
		TimeoutMS *int64 `json:"timeout_ms"`
	}
	if err := read(w, r, &in); err != nil {
		return nil, err
	}
	key, err := in.parse()
	if err != nil {
		return nil, err
	}
	patience, err := milliseconds("timeout_ms", in.TimeoutMS, usualAwait, leastAwait, mostAwait)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	return awaitAnswer{s.awaits(ctx, key)}, nil
}

// awaits waits until a key is held.
func (s *session) awaits(ctx context.Context, key leasehold.Key) bool {
	changes := s.feed.open()
	defer s.feed.close(changes)
	for {
		if _, ok := find(s.owner.Leases(), key); ok {
			return true
		}
		select {
		case <-changes.news:
		case <-ctx.Done():
			return false
		case <-s.over:
			return false
		}
	}
}

// A reportAnswer says how many costs were heard.
type reportAnswer struct {
	Reported int `json:"reported"`
}

func (s *session) report(w http.ResponseWriter, r *http.Request) (any, error) {
	var in struct {
		Costs []struct {
			keyDocument
			Cost float64 `json:"cost"`
		} `json:"costs"`
	}
	if err := read(w, r, &in); err != nil {
		return nil, err
	}
	if !s.reported {
		return nil, bad("report", `the load of this owner is its checks: join with "load": "reported"`)
	}
	if len(in.Costs) > maxCosts {
		return nil, bad("costs", "has %d entries, want at most %d", len(in.Costs), maxCosts)
	}
	keys := make([]leasehold.Key, len(in.Costs))
	for i, c := range in.Costs {
		key, err := c.parse()
		if err != nil {
			return nil, err
		}
		if !(c.Cost >= 0 && c.Cost <= owner.MaxCost) {
			return nil, bad("cost", "is %v, want 0 to %v", c.Cost, float64(owner.MaxCost))
		}
		keys[i] = key
	}
	for i, c := range in.Costs {
		s.owner.Report(keys[i], c.Cost)
	}
	return reportAnswer{len(in.Costs)}, nil
}
