package manager

import (
	"math/rand/v2"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/partition"
)

// Config is what a leader knows about one namespace.
type Config struct {
	Namespace leasehold.Namespace
	Self      storage.ManagerID
	// Timing is what owners are told. Default [protocol.DefaultTiming].
	Timing protocol.Timing
	// Promised is how long owners may believe in what an earlier leader told
	// them, if that is longer than Timing says: the namespace was configured
	// otherwise. A new leader waits as long for the leases that it finds.
	Promised time.Duration
	// After is a generation that those of all leases are newer than. A table that has
	// a newer one goes on from there. It is of no use to a Volatile table, whose
	// generations begin with its term's.
	After  leasehold.Generation
	Policy partition.Policy // default consistent hashing, 64 virtual nodes
	Limits protocol.Limits  // default [protocol.DefaultLimits]

	// MaxOwners bounds how many sessions are heard at a time: members, those
	// who have said hello, and those who wait for a name. Sessions that a new
	// leader finds in the table, and does not hear, do not count, and neither do
	// those that are kept past their deadlines: they may be dead, and must not
	// keep the living out. Default 4096.
	MaxOwners int
	// Seams is how many ranges more than the policy needs the table may always
	// have. Beyond that, and beyond nearly twice as many as needed, leases that
	// lie side by side are recalled to be granted as one, which loses their
	// state. Default 64.
	Seams int
	// Gather is how long an owner that joins waits for others to join before
	// ranges are moved. Where keys are nobody's it is at most a sixteenth of it.
	// Default 0: not at all.
	Gather time.Duration
	// Backoff bounds the random wait after two messages have crossed. Default
	// 200 ms; see the owner's.
	Backoff time.Duration

	// Moves is how much state an owner sends, and takes in, at a time, in
	// ranges. Default 4.
	Moves int
	// MoveTimeout is how long a move may make no progress. Default 1 minute.
	MoveTimeout time.Duration
	// Rebalance is how often the policy is asked because of loads. Default 10 s.
	Rebalance time.Duration
	// Churn is the share of all keys that may be moved in a minute for the sake
	// of balance. Default 0.09.
	Churn float64

	Log LogLimits

	// Volatile: the table dies with the leader. Then owners must be able to tell
	// the next one all that matters: a source of a move is kept until the target
	// has its lease.
	Volatile bool

	// Deleted: the namespace is being deleted. Its leases expire, whether or not another
	// owner could take their ranges.
	Deleted bool

	Takeover Takeover

	// Rand draws backoffs.
	Rand *rand.Rand
}

// LogLimits bound the change log.
type LogLimits struct {
	// Age and Changes bound the changes kept for lookups. Longer serves
	// more of them without a snapshot, and costs about 80 bytes a change.
	// Defaults 5 minutes (Centrifuge 2.1.2) and 16,384.
	Age     time.Duration
	Changes int
	// BatchChanges bounds one commit. Default 4096.
	BatchChanges int
	// SnapshotEvery is after how many changes the store may shorten its log:
	// fewer makes takeovers faster, more makes commits cheaper. Default 4096.
	SnapshotEvery int
}

// A Takeover is how the leader's term began.
type Takeover struct {
	// FirstSeq is the newest message that was sent in the leader's term before
	// the machine was made: 0, unless the namespace was led in it before.
	FirstSeq protocol.Seq
	// Floor is what all numbers exceed that are given out from now on: a table that is below
	// it may have lost history. Uncertain: so may every table. A table that is below LostBelow
	// has lost history for certain. Clock is what the wall clock stood for when we took over
	// (see [storage.Clock]).
	Floor, LostBelow, Clock uint64
	Uncertain               bool
}

// Check reports what is wrong with the configuration.
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
		return bad("BatchChanges is %d, want at least 4: two leases that become one are three changes", c.Log.BatchChanges)
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
	if c.Backoff < 0 || c.Log.Age < 0 || c.Promised < 0 || c.Gather < 0 {
		return bad("backoff %v, log age %v and promise %v must not be negative", c.Backoff, c.Log.Age, c.Promised)
	}
	if c.MoveTimeout < 0 || c.Rebalance < 0 || !(c.Churn >= 0 && c.Churn <= 1) { // so written, NaN is refused
		return bad("move timeout %v and rebalance %v must not be negative, churn %v must be 0 to 1", c.MoveTimeout, c.Rebalance, c.Churn)
	}
	if c.Moves > protocol.MaxAtATime {
		return bad("Moves is %d, want at most %d", c.Moves, protocol.MaxAtATime)
	}
	return nil
}
