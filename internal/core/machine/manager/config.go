package manager

import (
	"math/rand/v2"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/partition"
)

// Config is a leader's configuration of one namespace.
type Config struct {
	Namespace leasehold.Namespace
	Self      storage.ManagerID
	// Timing is sent to owners. Default [protocol.DefaultTiming].
	Timing protocol.Timing
	// Promised is how long leases of earlier leaders may last, if longer than Timing: the configuration has
	// changed since. A new leader waits that long before the leases that it finds expire.
	Promised time.Duration
	// After is a lower bound of generations: all new leases have newer ones. A table with a newer generation
	// continues from that. Volatile tables ignore it, because their generations begin with their term.
	After  leasehold.Generation
	Policy partition.Policy // default consistent hashing, 64 virtual nodes
	Limits protocol.Limits  // default [protocol.DefaultLimits]

	// MaxOwners bounds the number of connected sessions: members, sessions that have not become members yet, and
	// those that wait for an owner name. Sessions that a new leader finds in the table do not count before their
	// first request, and neither do sessions kept past their deadlines: they may be dead, and must not lock others
	// out. Default 4096.
	MaxOwners int
	// Seams is how many ranges more than the policy needs the table may always have. If the table has more, and
	// nearly twice as many as needed, adjacent leases are recalled and granted as one, which loses their state.
	// Default 64.
	Seams int
	// Gather is the delay between a join and the next policy run, so that one run covers several joins. If keys
	// have no owner, it is at most a sixteenth of that. Default 0: no delay.
	Gather time.Duration
	// Backoff bounds the random delay of a resend after a race. Default 200 ms; see the owner's.
	Backoff time.Duration

	// Moves is the limit of ranges that an owner sends, and receives, at a time. Default 4.
	Moves int
	// MoveTimeout is how long a move may make no progress. Default 1 minute.
	MoveTimeout time.Duration
	// Rebalance is the interval between policy runs because of loads. Default 10 s.
	Rebalance time.Duration
	// Churn is the share of all keys that may move in a minute for balance. Default 0.09.
	Churn float64
	// MinLoad is the mean load per owner, per second, below which there is nothing to balance. Default 50: fewer
	// requests are mostly noise, and no server notices them. Reported costs have another unit.
	MinLoad float64

	Log LogLimits

	// Volatile: the table exists only in the leader's memory. Then owners must be able to report everything that
	// the next leader needs: the source of a move stays in its session until the target has the lease.
	Volatile bool

	// Deleted: the namespace is being deleted. Its leases expire even if no other owner could take their ranges.
	Deleted bool

	Takeover Takeover

	// Rand draws backoffs.
	Rand *rand.Rand
}

// LogLimits are the limits of the change log.
type LogLimits struct {
	// Age and Changes bound the changes kept for lookups. Larger values avoid snapshots, and cost about 80 bytes
	// per change. Defaults 5 minutes (Centrifuge 2.1.2) and 16,384.
	Age     time.Duration
	Changes int
	// BatchChanges bounds one commit. Default 4096.
	BatchChanges int
	// SnapshotEvery is the number of changes between snapshots, after which the store may compact its log. Fewer
	// make takeovers faster, more make commits cheaper. Default 4096.
	SnapshotEvery int
}

// A Takeover is the information that a leader has at the start of its term.
type Takeover struct {
	// FirstSeq is the newest sequence number used in this term before the machine was created: 0, unless the
	// namespace was led in this term before.
	FirstSeq protocol.Seq
	// Floor is below all LSNs and generations that this leader may assign: a table below it may have lost history.
	// Uncertain: any table may have. A table below LostBelow has certainly lost history. Clock is the number of
	// the wall clock at the takeover (see [storage.Clock]).
	Floor, LostBelow, Clock uint64
	Uncertain               bool
}

// Check reports the first error in the configuration.
func (c Config) Check() error { return c.validate() }

func (c *Config) validate() error {
	if err := c.Namespace.Validate(); err != nil {
		return err
	}
	bad := func(format string, args ...any) error {
		return leasehold.Errorf("manager", leasehold.ErrInvalid, string(c.Namespace), format, args...)
	}
	if c.Rand == nil || c.Self == "" {
		return bad("Self and Rand must be set")
	}
	if c.Timing == (protocol.Timing{}) {
		c.Timing = protocol.DefaultTiming()
	}
	if err := c.Timing.Validate(); err != nil {
		return err
	}
	if c.Policy == nil {
		c.Policy = partition.Consistent{}
	}
	if c.Limits == (protocol.Limits{}) {
		c.Limits = protocol.DefaultLimits
	}
	for _, d := range []struct {
		field *int
		usual int
		name  string
	}{
		{&c.MaxOwners, 4096, "MaxOwners"},
		{&c.Seams, 64, "Seams"},
		{&c.Log.Changes, 1 << 14, "LogChanges"},
		{&c.Moves, 4, "Moves"},
		{&c.Log.BatchChanges, 4096, "BatchChanges"},
		{&c.Log.SnapshotEvery, 4096, "SnapshotEvery"},
	} {
		if *d.field == 0 {
			*d.field = d.usual
		}
		if *d.field < 0 {
			return bad("%s is %d, want more than 0", d.name, *d.field)
		}
	}
	if c.Log.BatchChanges < 4 {
		return bad("BatchChanges is %d, want at least 4: merging two leases takes three changes", c.Log.BatchChanges)
	}
	if c.Backoff == 0 {
		c.Backoff = 200 * time.Millisecond
	}
	if c.Log.Age == 0 {
		c.Log.Age = 5 * time.Minute
	}
	if c.MoveTimeout == 0 {
		c.MoveTimeout = time.Minute
	}
	if c.Rebalance == 0 {
		c.Rebalance = 10 * time.Second
	}
	if c.Churn == 0 {
		c.Churn = 0.09
	}
	if c.MinLoad == 0 {
		c.MinLoad = 50
	}
	if c.Backoff < 0 || c.Log.Age < 0 || c.Promised < 0 || c.Gather < 0 {
		return bad("backoff %v, log age %v and promised lease time %v must not be negative", c.Backoff, c.Log.Age, c.Promised)
	}
	if c.MoveTimeout < 0 || c.Rebalance < 0 || !(c.Churn >= 0 && c.Churn <= 1) { // this form also rejects NaN
		return bad("move timeout %v and rebalance %v must not be negative, churn %v must be 0 to 1", c.MoveTimeout, c.Rebalance, c.Churn)
	}
	if !(c.MinLoad > 0) {
		return bad("MinLoad is %v, want more than 0", c.MinLoad)
	}
	if c.Moves > protocol.MaxAtATime {
		return bad("Moves is %d, want at most %d", c.Moves, protocol.MaxAtATime)
	}
	return nil
}
