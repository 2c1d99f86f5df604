package access

import (
	"cmp"
	"context"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"google.golang.org/protobuf/proto"

	"github.com/leasehold-dev/leasehold"
)

// Limits are rate limits for each identity, so that one client cannot starve others.
// Processes that share an identity, such as the lookups of a namespace, share its limits.
// Calls between managers are not limited.
type Limits struct {
	// Calls is the rate of new calls per second, streams included, at which an identity is
	// throttled: the manager reads its connections less often. Burst is the number of calls
	// that it may start at once after a pause, such as when all its processes reconnect
	// after a restart of the manager. Calls beyond Burst are rejected. Default 200 and 5000.
	Calls float64
	Burst int
	// Streams is the number of open streams of an identity. Default 16,384.
	Streams int
	// Messages is the rate of messages per second on one stream; the burst is twice that.
	// An owner sends at most a few per second, and more while it is granted ranges. A
	// stream that exceeds the limit ends. Default 250.
	Messages float64
	// All is the rate of messages per second on all streams of an identity, except for
	// owners: their rate is twice Messages. Further messages wait, and delay those behind
	// them on the same stream, but not those of other identities. Default 5000, which is
	// enough for 16,384 lookups with one identity.
	All float64
	// Bytes is the rate of message bytes per second of an identity; the burst is four times
	// that. An owner of very many ranges sends some megabytes every few seconds. Calls and
	// streams that exceed it are rejected. Default 64 MiB.
	Bytes float64
}

// Limits of anonymous callers, which may only call the health service, for each host.
const (
	anonymousCalls   = 10
	anonymousBurst   = 50
	anonymousStreams = 16
)

func (l *Limits) validate() error {
	l.Calls = cmp.Or(l.Calls, 200)
	l.Burst = cmp.Or(l.Burst, 5000)
	l.Streams = cmp.Or(l.Streams, 16_384)
	l.Messages = cmp.Or(l.Messages, 250)
	l.All = cmp.Or(l.All, 5000)
	l.Bytes = cmp.Or(l.Bytes, 64<<20)
	if l.Calls < 0 || l.Burst < 1 || l.Streams < 1 || l.Messages < 0 || l.All < 0 || l.Bytes < 0 {
		return leasehold.Errorf(opOpen, leasehold.ErrInvalid, "", "Limits are %+v, all must be positive", *l)
	}
	return nil
}

// maxBudgets bounds the number of identities and anonymous hosts with budgets of their own.
// Further identities share one budget, and further anonymous hosts another.
const maxBudgets = 1 << 16

// budgets are the rate limiters of all callers, by [Caller.key].
type budgets struct {
	limits Limits

	mu sync.Mutex
	of map[string]*budget
}

type budget struct {
	calls    *rate.Limiter
	pace     *rate.Limiter // of calls that are not throttled
	messages *rate.Limiter // on all streams; nil: unlimited
	holds    *rate.Limiter // like messages, for streams of owners
	bytes    *rate.Limiter

	maxStreams int
	streams    int // guarded by the budgets' lock
}

func newBudgets(l Limits) *budgets { return &budgets{limits: l, of: make(map[string]*budget)} }

// get returns a caller's budget. The lock is held.
func (b *budgets) get(c *Caller) *budget {
	key := c.key()
	if found := b.of[key]; found != nil {
		return found
	}
	if len(b.of) >= maxBudgets {
		key = "others"
		if len(c.ids) == 0 {
			key = "other hosts" // anonymous callers must not use up the budget of identities
		}
		if found := b.of[key]; found != nil {
			return found
		}
	}
	l := b.limits
	made := &budget{bytes: limiter(l.Bytes, 4*l.Bytes)}
	if len(c.ids) == 0 {
		made.pace, made.calls, made.maxStreams = paceLimiter(anonymousCalls), limiter(anonymousCalls, anonymousBurst), anonymousStreams
	} else {
		made.pace, made.calls, made.maxStreams = paceLimiter(l.Calls), limiter(l.Calls, float64(l.Burst)), l.Streams
		made.messages, made.holds = shareLimiter(l.All), shareLimiter(2*l.Messages)
	}
	b.of[key] = made
	return made
}

// call charges a call to its caller, and returns the pause before the next read of the
// caller's connection. A forwarded call is charged to the original caller; a manager's own
// calls are free.
func (b *budgets) call(s *session) (time.Duration, error) {
	if r := s.rights.Load(); r != nil && anySatisfies(r.grants, managersOnly) {
		return 0, nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	s.budget = b.get(&s.caller)
	now := time.Now()
	pause := s.budget.pause(now)
	if !s.budget.calls.AllowN(now, 1) {
		return pause, b.limitError(s, "exceeds %v calls per second", float64(s.budget.calls.Limit()))
	}
	return pause, nil
}

// maxPause bounds the delay of a connection: another process with the same identity may
// have made the calls.
const maxPause = 2 * time.Second

// pause charges a call to the pace, and returns the delay until the pace allows it.
func (b *budget) pause(now time.Time) time.Duration {
	reservation := b.pace.ReserveN(now, 1)
	pause := reservation.DelayFrom(now)
	if pause > maxPause {
		reservation.CancelAt(now)
		return maxPause
	}
	return pause
}

func (b *budgets) open(s *session) error {
	if s.budget == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if s.budget.streams >= s.budget.maxStreams {
		return b.limitError(s, "exceeds %d open streams", s.budget.maxStreams)
	}
	s.budget.streams++
	s.rate = limiter(b.limits.Messages, 2*b.limits.Messages)
	return nil
}

func (b *budgets) close(s *session) {
	if s.budget == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	s.budget.streams--
}

func limiter(perSecond, burst float64) *rate.Limiter {
	return rate.NewLimiter(rate.Limit(perSecond), max(1, int(burst)))
}

// paceLimiter has a burst of a tenth of a second.
func paceLimiter(perSecond float64) *rate.Limiter { return limiter(perSecond, perSecond/10) }

// shareLimiter has a small burst, so that messages of many identities interleave.
func shareLimiter(perSecond float64) *rate.Limiter { return limiter(perSecond, perSecond/20) }

// message charges a message of a stream, and waits until the identity's rate allows it.
func (b *budgets) message(ctx context.Context, s *session, message any) error {
	if s.rate != nil && !s.rate.Allow() {
		return b.limitError(s, "exceeds %v messages per second on one stream", b.limits.Messages)
	}
	if err := b.chargeBytes(s, message); err != nil {
		return err
	}
	if s.budget == nil || s.budget.messages == nil {
		return nil
	}
	share := s.budget.messages
	if s.method.need == holdLeases {
		share = s.budget.holds
	}
	if share.Allow() {
		return nil
	}
	return share.Wait(ctx)
}

func (b *budgets) chargeBytes(s *session, message any) error {
	m, ok := message.(proto.Message)
	if s.budget == nil || !ok || s.budget.bytes.AllowN(time.Now(), proto.Size(m)) {
		return nil
	}
	return b.limitError(s, "exceeds %v bytes per second", b.limits.Bytes)
}

func (b *budgets) limitError(s *session, format string, args ...any) error {
	return leasehold.Errorf(opCall, leasehold.ErrLimit, short(s.fullMethod), "%s "+format, append([]any{&s.caller}, args...)...)
}

// removeIdle removes the budgets that have no open stream and whose buckets are full.
func (b *budgets) removeIdle(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for key, of := range b.of {
		if of.streams == 0 && full(of.calls, now) && full(of.bytes, now) {
			delete(b.of, key)
		}
	}
}

// full reports whether the bucket is full.
func full(l *rate.Limiter, now time.Time) bool { return l.TokensAt(now) >= float64(l.Burst()) }
