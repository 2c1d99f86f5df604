package agent

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/admin"
	"github.com/leasehold-dev/leasehold/internal/runtime/failpoint"
	"github.com/leasehold-dev/leasehold/owner"
	"github.com/leasehold-dev/leasehold/server/jsonapi"
)

// Limits of the time to wait for a key, and of the costs in a report.
const (
	usualAwait, leastAwait, mostAwait = time.Second, time.Millisecond, 10 * time.Second

	maxCosts = 1000
)

// A promised is part of answers about leases: the time after the program sent its request during which
// the answer is valid. No other owner acts on these keys before. Suspended means that no lease is valid
// because renewals failed: the program keeps its state, and its callers wait.
type promised struct {
	ValidForMS int64 `json:"valid_for_ms" doc:"validity of the answer, from the moment at which the request was sent"`
	Suspended  bool  `json:"suspended,omitempty" doc:"keep the state, and let callers retry"`
}

// A leasesAnswer lists all valid leases.
type leasesAnswer struct {
	Leases []leaseDocument `json:"leases"`
	promised
}

func (s *session) leases(*http.Request, *struct{}) (any, error) {
	held, ms := s.promise()
	return leasesAnswer{leasesOf(held), promised{ms, s.owner.Status().Suspended > 0}}, nil
}

// promise is the owner's promise in whole milliseconds, rounded down. Less than a millisecond is no
// promise.
func (s *session) promise() ([]leasehold.Lease, int64) {
	held, d := s.owner.Promise()
	failpoint.Here("agent/promised-before-answer")
	if d < time.Millisecond {
		return nil, 0
	}
	return held, d.Milliseconds()
}

// A checkAnswer reports whether a key is held, and its lease.
type checkAnswer struct {
	Held  bool           `json:"held"`
	Key   admin.Point    `json:"key"`
	Lease *leaseDocument `json:"lease,omitempty"`
	promised
}

func (s *session) check(_ *http.Request, in *keyDocument) (any, error) {
	key, err := in.parse()
	if err != nil {
		return nil, err
	}
	held, ms := s.promise()
	l, ok := find(held, key)
	if !ok {
		return checkAnswer{Key: admin.Point(key), promised: promised{Suspended: s.owner.Suspended(key)}}, nil
	}
	s.owner.Check(key) // counts as work
	return checkAnswer{true, admin.Point(key), new(leaseOf(l.Range, l.Generation)), promised{ValidForMS: ms}}, nil
}

// find returns the lease that covers a key. Leases are sorted by range.
func find(leases []leasehold.Lease, key leasehold.Key) (leasehold.Lease, bool) {
	i, exact := slices.BinarySearchFunc(leases, key, func(l leasehold.Lease, key leasehold.Key) int {
		return cmp.Compare(l.Range.Start, key)
	})
	if !exact {
		i--
	}
	if i < 0 || !leases[i].Range.Contains(key) {
		return leasehold.Lease{}, false
	}
	return leases[i], true
}

type heldRequest struct {
	keyDocument
	Generation string `json:"generation"`
}

// A heldAnswer reports whether a lease was held on its key without interruption.
type heldAnswer struct {
	Held bool `json:"held"`
	promised
}

func (s *session) held(_ *http.Request, in *heldRequest) (any, error) {
	key, err := in.parse()
	if err != nil {
		return nil, err
	}
	generation, err := strconv.ParseUint(in.Generation, 10, 64)
	if err != nil {
		return nil, bad("generation", "is %q, want a number in decimal, as a string", jsonapi.Clip(in.Generation))
	}
	leases, ms := s.promise()
	if l, ok := find(leases, key); !ok || uint64(l.Generation) != generation {
		return heldAnswer{promised: promised{Suspended: s.owner.Suspended(key)}}, nil
	}
	return heldAnswer{true, promised{ValidForMS: ms}}, nil
}

type awaitRequest struct {
	keyDocument
	TimeoutMS *int64 `json:"timeout_ms,omitempty" doc:"1 to 10000 (default 1000)"`
}

// An awaitAnswer reports whether a key was held at the end of the wait. It contains no promise, which
// would count from the request.
type awaitAnswer struct {
	Held bool `json:"held"`
}

func (s *session) await(r *http.Request, in *awaitRequest) (any, error) {
	key, err := in.parse()
	if err != nil {
		return nil, err
	}
	timeout, err := milliseconds("timeout_ms", in.TimeoutMS, usualAwait, leastAwait, mostAwait)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(r.Context(), timeout)
	defer cancel()
	return awaitAnswer{s.awaits(ctx, key)}, nil
}

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

type reportRequest struct {
	Costs []struct {
		keyDocument
		Cost float64 `json:"cost,omitempty" doc:"0 or more, in one unit per namespace (default 0)"`
	} `json:"costs,omitempty" doc:"up to 1000 entries"`
}

// A reportAnswer counts the accepted costs.
type reportAnswer struct {
	Reported int `json:"reported"`
}

func (s *session) report(_ *http.Request, in *reportRequest) (any, error) {
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
