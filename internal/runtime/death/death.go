// Package death reports the end of processes to managers, on behalf of a supervisor.
//
// A supervisor has a random token for each session of its child. The owner sends its SHA-256 to the leader, see
// table.DeathHash. When no code of the child can run any more, the supervisor presents the token. The leader
// records the session's ranges as free, and grants them without waiting for the leases to expire.
//
// Only the end of the process is a proof. After the supervisor's computer was suspended, or restored from a
// snapshot, there may be another copy of both processes: then the supervisor must not report.
package death

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/runtime/managerconn"
	"github.com/leasehold-dev/leasehold/internal/runtime/managerdns"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// A Notice is the proof that the process of a session has ended.
type Notice = protocol.DeathNotice

const (
	// attemptTimeout bounds one call. A leader replies after its commit; if it cannot decide, the call ends
	// and is repeated, since another manager may lead then.
	attemptTimeout = 2 * time.Second
	minBackoff     = 10 * time.Millisecond
	maxBackoff     = time.Second
	// maxUnlisted bounds the leaders in redirects that are not in the list of managers.
	maxUnlisted = 4
)

// Report sends a notice to all managers at once, and repeats it until the leader has acknowledged it. Recorded means
// that the session's ranges are free; otherwise the leader does not have the session or its token, and any leases
// expire. Report returns an error if the context ends before, or if repetitions are useless: [leasehold.ErrDenied] if
// the leader rejects the token or the caller's identity, and [leasehold.ErrStale] if no manager supports death
// notices. Then the leases expire, too.
//
// Managers are targets of package managerdns. Options must contain transport credentials. Connections are opened by the
// call and closed at its end. Report is safe for concurrent use.
func Report(ctx context.Context, managers []string, options []grpc.DialOption, n *Notice) (recorded bool, err error) {
	if err := n.Validate(); err != nil {
		return false, err
	}
	if len(managers) == 0 {
		return false, leasehold.Errorf(op, leasehold.ErrInvalid, string(n.Owner), "no managers")
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	addrs, err := resolve(ctx, managers)
	if err != nil {
		return false, err
	}
	r := &report{
		request: wire.FromDeathNotice(n), options: slices.Concat(wire.DialOptions(), options), end: cancel,
		called: make(map[string]error), budget: len(addrs) + maxUnlisted, last: errNoResponse,
	}
	for _, addr := range addrs {
		r.begin(ctx, addr)
	}
	r.running.Wait()
	return r.recorded, r.outcome(string(n.Owner))
}

// resolve replaces names by addresses. It waits until there are any.
func resolve(ctx context.Context, managers []string) (addrs []string, err error) {
	names := slices.DeleteFunc(slices.Clone(managers), func(m string) bool { return !managerdns.Dynamic(m) })
	addrs = slices.DeleteFunc(slices.Clone(managers), managerdns.Dynamic)
	for backoff := minBackoff; len(names) > 0; backoff = min(2*backoff, maxBackoff) {
		found, err := managerdns.Lookup(ctx, names, nil)
		if addrs = append(addrs, found...); len(addrs) > 0 {
			break
		}
		select {
		case <-ctx.Done():
			return nil, leasehold.Errorf(op, leasehold.ErrUnavailable, "", "managers cannot be resolved: %w", err)
		case <-time.After(backoff/2 + rand.N(backoff)): //nolint:gosec // jitter
		}
	}
	return slices.Compact(slices.Sorted(slices.Values(addrs))), nil
}

const op = "report death"

var errNoResponse = errors.New("no response of a manager")

// A report is the calls for one notice: a goroutine for each manager.
type report struct {
	request *leaseholdv1.ReportDeathRequest
	options []grpc.DialOption
	end     context.CancelFunc
	running sync.WaitGroup

	mu           sync.Mutex
	called       map[string]error // managers, and why one of them cannot acknowledge
	budget       int              // further managers that may be called
	acknowledged bool
	recorded     bool  // the leader has ended the leases
	last         error // newest failure
}

// begin calls another manager. It reports whether that, or a later leader, may still acknowledge.
func (r *report) begin(ctx context.Context, addr string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	why, known := r.called[addr]
	if known || r.budget == 0 {
		return why == nil || leasehold.KindOf(why) == leasehold.ErrStale
	}
	r.budget--
	r.called[addr] = nil
	r.running.Go(func() { r.repeat(ctx, addr) })
	return true
}

// repeat calls one manager until the report has ended, or another call is useless.
func (r *report) repeat(ctx context.Context, addr string) {
	conn, err := managerconn.Dial(addr, r.options)
	if err != nil {
		r.stop(addr, err)
		return
	}
	defer conn.Close() //nolint:errcheck // it fails only if it is closed already
	client := leaseholdv1.NewOwnerServiceClient(conn)
	for backoff := minBackoff; r.call(ctx, addr, client); backoff = min(2*backoff, maxBackoff) {
		select {
		case <-ctx.Done():
			return
		case <-time.After(backoff/2 + rand.N(backoff)): //nolint:gosec // jitter
		}
	}
}

// call sends the notice to a manager, and reports whether to repeat it.
func (r *report) call(ctx context.Context, addr string, client leaseholdv1.OwnerServiceClient) bool {
	attempt, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	response, err := client.ReportDeath(attempt, r.request)
	switch {
	case err != nil:
		return r.failed(addr, wire.ToError(err))
	case response.GetNotLeader() != nil:
		leader := response.GetNotLeader().GetLeader()
		return leader == "" || r.begin(ctx, leader)
	case response.GetOutcome() == leaseholdv1.DeathOutcome_DEATH_OUTCOME_UNSPECIFIED:
		return r.stop(addr, leasehold.Errorf(op, leasehold.ErrStale, addr, "unknown outcome: upgrade the supervisor"))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.acknowledged = true
	r.recorded = r.recorded || response.GetOutcome() == leaseholdv1.DeathOutcome_DEATH_OUTCOME_RECORDED
	r.end()
	return false
}

// failed records a failed call, and reports whether to repeat it.
func (r *report) failed(addr string, err error) bool {
	switch {
	case status.Code(err) == codes.Unimplemented:
		return r.older(addr, leasehold.Errorf(op, leasehold.ErrStale, addr, "the manager does not support death notices: upgrade it"))
	case leasehold.KindOf(err) == leasehold.ErrDenied, leasehold.KindOf(err) == leasehold.ErrInvalid:
		return r.stop(addr, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = err
	return true
}

// older records that a manager does not support notices, and reports whether to call it again: during an upgrade, it
// may support them when it has restarted. That is not so if all managers are older.
func (r *report) older(addr string, why error) bool {
	r.stop(addr, why)
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, why := range r.called {
		if why == nil {
			return true
		}
	}
	return false
}

// stop records why a manager is not called again.
func (r *report) stop(addr string, why error) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.called[addr], r.last = why, why
	return false
}

func (r *report) outcome(subject string) error {
	if r.acknowledged {
		return nil
	}
	for _, why := range r.called {
		if why != nil && leasehold.KindOf(r.last) != leasehold.ErrDenied {
			r.last = why // a denial, if there is one
		}
	}
	kind := leasehold.KindOf(r.last)
	if kind == leasehold.Other {
		kind = leasehold.ErrUnavailable
	}
	return leasehold.Errorf(op, kind, subject, "no leader has acknowledged the notice: %w", r.last)
}
