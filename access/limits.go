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

// Limits bound what one identity may ask of a manager, so that it cannot keep
// others from being served. Processes that share an identity, as the lookups of a
// namespace may, share its limits. Managers have none among themselves.
type Limits struct {
	// Calls is how many calls an identity may begin in a second, streams included. For those
	// beyond, its connections are not read for a moment, so that it takes turns with others.
	// Burst is how many it may begin all the same if it has not begun any for a while: all
	// that share it connect again when a manager is restarted. Those beyond are refused.
	// Default 200 and 5000.
	Calls float64
	Burst int
	// Streams is how many streams an identity may have open. Default 16,384.
	Streams int
	// Messages is how many messages a second a stream may send, or twice as many at
	// once. An owner sends a few in a second at most, but more while it is given
	// ranges. A stream that sends more ends. Default 250.
	Messages float64
	// All is how many messages a second an identity may send on all of its streams; but as
	// an owner, twice Messages. Those beyond wait, and with them what follows on their
	// streams: other identities are served meanwhile. Default 5000, which is enough for
	// 16,384 lookups that share one.
	All float64
	// Bytes is how much an identity may send in a second, in messages, or four times as
	// much at once: an owner of very many ranges sends some megabytes every few seconds.
	// Default 64 MiB.
	Bytes float64
}

// Those whom nobody knows may ask for the server's health, as often from one host.
const (
	strangersCalls   = 10
	strangersBurst   = 50
	strangersStreams = 16
)

func (l *Limits) validate() error {
	l.Calls = cmp.Or(l.Calls, 200)
	l.Burst = cmp.Or(l.Burst, 5000)
	l.Streams = cmp.Or(l.Streams, 16_384)
	l.Messages = cmp.Or(l.Messages, 250)
	l.All = cmp.Or(l.All, 5000)
	l.Bytes = cmp.Or(l.Bytes, 64<<20)
	if l.Calls < 0 || l.Burst < 1 || l.Streams < 1 || l.Messages < 0 || l.All < 0 || l.Bytes < 0 {
		return leasehold.Errorf(opOpen, leasehold.ErrInvalid, "", "Limits are %+v, want more than 0 of each", *l)
	}
	return nil
}

// maxBudgets bounds how many identities, and hosts of strangers, are counted. Those
// beyond share one budget, and strangers another.
const maxBudgets = 1 << 16

// budgets are what has been asked of a manager, by identity.
type budgets struct {
	limits Limits

	mu sync.Mutex
	of map[string]*budget
}

type budget struct {
	calls    *rate.Limiter
	pace     *rate.Limiter // of calls that nobody has to wait for
	messages *rate.Limiter // of all streams; nil: as many as they like
	holds    *rate.Limiter // of those as an owner
	bytes    *rate.Limiter
	most     int // streams

	streams int // guarded by the budgets' lock
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
			key = "other strangers" // who must not spend what is others'
		}
		if found := b.of[key]; found != nil {
			return found
		}
	}
	l := b.limits
	made := &budget{bytes: limiter(l.Bytes, 4*l.Bytes)}
	if len(c.ids) == 0 {
		made.pace, made.calls, made.most = evenly(strangersCalls), limiter(strangersCalls, strangersBurst), strangersStreams
	} else {
		made.pace, made.calls, made.most = evenly(l.Calls), limiter(l.Calls, float64(l.Burst)), l.Streams
		made.messages, made.holds = smoothly(l.All), smoothly(2*l.Messages)
	}
	b.of[key] = made
	return made
}

// call counts a call, and returns for how long its caller is not to make another. Managers are
// not counted, but for calls that they pass on, which are those of their callers.
func (b *budgets) call(s *session) (time.Duration, error) {
	if r := s.rights.Load(); r != nil && anyMeets(r.grants, forManagers) {
		return 0, nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	s.budget = b.get(&s.caller)
	now := time.Now()
	pause := s.budget.pause(now)
	if !s.budget.calls.AllowN(now, 1) {
		return pause, b.over(s, "makes more than %v calls in a second", float64(s.budget.calls.Limit()))
	}
	return pause, nil
}

// longestPause is for how long a connection is not read because its identity makes calls too
// fast. Others that share it may be the ones that do.
const longestPause = 2 * time.Second

// pause counts a call, and returns what it is too fast by.
func (b *budget) pause(now time.Time) time.Duration {
	turn := b.pace.ReserveN(now, 1)
	pause := turn.DelayFrom(now)
	if pause > longestPause {
		turn.CancelAt(now)
		return longestPause
	}
	return pause
}

func (b *budgets) open(s *session) error {
	if s.budget == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if s.budget.streams >= s.budget.most {
		return b.over(s, "has %d streams open, and that is the limit", s.budget.most)
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

// limiter lets as many pass in a second, and so many of them at once.
func limiter(perSecond, atOnce float64) *rate.Limiter {
	return rate.NewLimiter(rate.Limit(perSecond), max(1, int(atOnce)))
}

// evenly lets as many pass in a second, and a tenth of them at once.
func evenly(n float64) *rate.Limiter { return limiter(n, n/10) }

// smoothly lets as many pass in a second, and hardly more at once: whoever sends much takes
// turns with the others.
func smoothly(n float64) *rate.Limiter { return limiter(n, n/20) }

// message counts a message of a stream, and waits until it is its identity's turn.
func (b *budgets) message(ctx context.Context, s *session, message any) error {
	if s.rate != nil && !s.rate.Allow() {
		return b.over(s, "sends more than %v messages in a second on one stream", b.limits.Messages)
	}
	if err := b.weigh(s, message); err != nil {
		return err
	}
	if s.budget == nil || s.budget.messages == nil {
		return nil
	}
	share := s.budget.messages
	if s.method.need == toHold {
		share = s.budget.holds
	}
	if share.Allow() {
		return nil
	}
	return share.Wait(ctx)
}

func (b *budgets) weigh(s *session, message any) error {
	m, ok := message.(proto.Message)
	if s.budget == nil || !ok || s.budget.bytes.AllowN(time.Now(), proto.Size(m)) {
		return nil
	}
	return b.over(s, "sends more than %v bytes in a second", b.limits.Bytes)
}

func (b *budgets) over(s *session, format string, args ...any) error {
	return leasehold.Errorf(opCall, leasehold.ErrLimit, short(s.fullMethod), "%s "+format, append([]any{&s.caller}, args...)...)
}

// tidy forgets those who have not asked for anything for so long that it is as if
// they never had.
func (b *budgets) tidy(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for key, of := range b.of {
		if of.streams == 0 && full(of.calls, now) && full(of.bytes, now) {
			delete(b.of, key)
		}
	}
}

// full reports whether it is as if nothing had ever been taken.
func full(l *rate.Limiter, now time.Time) bool { return l.TokensAt(now) >= float64(l.Burst()) }
