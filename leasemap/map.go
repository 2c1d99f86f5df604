package leasemap

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/owner"
)

// A Map holds the values of the names that this server owns.
type Map[V any] struct {
	cfg    Config[V]
	leases owner.Checker
	base   time.Time

	shards [shardCount]shard[V]
	count  atomic.Int64  // of entries
	first  uint64        // offset of version numbers
	spare  sync.Pool     // of *Entry[V]
	hand   atomic.Uint32 // of the eviction

	loads   chan struct{} // semaphore of loads
	unsaved *queue[V]     // nil without a store; of write-through: values that have moved here without being stored
	behind  WriteBehind   // Config.WriteBehind, or that for those
	alarms  *alarms[V]    // nil without OnAlarm

	residents *residents[V] // nil without Resident

	group *Group // nil for a map of New
	alone bool   // a map of Join, whose group has no other
}

// New returns a map whose leases another Checker reports: a test, for instance. It does not move
// values, so it refuses an [owner.Owner]: use [Join], or a [Group] for several maps of one
// owner. It has no goroutine: expired values occupy memory until [Map.Sweep] is called, and write-behind saves when
// [Map.Flush] is called.
func New[V any](cfg Config[V], leases owner.Checker) (*Map[V], error) {
	if _, moves := leases.(*owner.Owner); moves || leases == nil {
		return nil, leasehold.Errorf(opNew, leasehold.ErrInvalid, "", "leases is nil or an Owner, whose moves would lose the values: use Join, or a Group for several maps of one owner")
	}
	m, err := newMap(cfg)
	if err != nil {
		return nil, err
	}
	m.leases = leases
	return m, nil
}

// newMap returns a map without an owner, also if the configuration is invalid.
func newMap[V any](cfg Config[V]) (*Map[V], error) {
	err := cfg.validate()
	m := &Map[V]{cfg: cfg, base: time.Now(), leases: noOwner{}}
	if cfg.Weak {
		m.first = rand.Uint64N(1 << 62) //nolint:gosec // versions of different servers must differ; they are not secret
	}
	m.loads = make(chan struct{}, max(0, m.cfg.MaxLoads))
	if m.cfg.Store != nil {
		if m.behind = (WriteBehind{OnLost: func([]string, error) {}}); m.cfg.WriteBehind != nil {
			m.behind = *m.cfg.WriteBehind
		} else {
			_ = m.behind.validate(m.cfg.Max) // sets the defaults
		}
		m.unsaved = newQueue[V](m.behind.Batch)
	}
	if cfg.OnAlarm != nil {
		m.alarms = newAlarms[V]()
	}
	if cfg.Resident != nil {
		m.residents = new(residents[V])
	}
	return m, err
}

// noOwner is the Checker before Join.
type noOwner struct{}

func (noOwner) Check(leasehold.Key) (owner.Lease, bool) { return owner.Lease{}, false }
func (noOwner) Held(owner.Lease) bool                   { return false }
func (noOwner) Suspended(leasehold.Key) bool            { return false }
func (noOwner) Await(context.Context, leasehold.Key) error {
	return leasehold.ErrNotOwner
}

// Join joins a namespace with one map as the server's state: see [Group.Join]. For several
// maps, use a [Group].
func Join[V any](ctx context.Context, as owner.Config, cfg Config[V]) (*Map[V], error) {
	var g Group
	m := Add(&g, "", cfg)
	m.alone = true
	if err := g.Join(ctx, as); err != nil {
		return nil, err
	}
	return m, nil
}

// use sets the group after it has joined, and the Checker of its leases.
func (m *Map[V]) use(g *Group, leases owner.Checker) { m.group, m.leases = g, leases }

// Owner returns the owner of the map, nil for a map of New.
func (m *Map[V]) Owner() *owner.Owner {
	if m.group == nil {
		return nil
	}
	return m.group.owner
}

const opClose = "close map"

// Close moves all names with their values to other servers, as [owner.Owner.Close] does, and ends
// the map's goroutine. It is for a map of Join. Call it before the server
// stops serving.
func (m *Map[V]) Close(ctx context.Context) error {
	if !m.alone {
		return leasehold.Errorf(opClose, leasehold.ErrInvalid, "", "the map is not from Join: close its Group, or nothing if it is from New")
	}
	return m.group.Close(ctx)
}

// Len returns the number of names, including names that have expired or are owned by
// another server and are not removed yet.
func (m *Map[V]) Len() int { return int(m.count.Load()) }

// A Version identifies a value of a name. Versions are not reused, not even by another
// server. The zero Version means that the name has no value.
type Version struct {
	Generation leasehold.Generation // of the lease under which the value was written
	Number     uint64               // of the write, in its process and among names with adjacent keys
}

// Exists reports whether there is a value.
func (v Version) Exists() bool { return v != Version{} }

// An Entry is a name during an operation. It must not be used after the operation.
type Entry[V any] struct {
	// Value is a copy, which replaces the value if the operation succeeds. It is
	// the zero value if there is none.
	Value V
	// Version is the current version, and Next the version after a
	// change, to be stored in the value or sent to other services.
	Version, Next Version
	// Lease is the checked lease. Effects outside of the map must
	// carry its generation. It is zero if a weak map does not own the name.
	Lease owner.Lease

	deleted, kept, touched bool
	ttl                    time.Duration
	alarm                  time.Time // pending
	alarmed                bool      // Alarm was called
}

// Delete removes the value if the operation succeeds.
func (e *Entry[V]) Delete() { e.deleted = true }

// Keep makes the operation a read: it keeps the value, its version and its expiry, and
// discards changes of e.Value. Only Alarm has an effect.
func (e *Entry[V]) Keep() { e.kept = true }

// Touch keeps the value and its version, discards changes of e.Value, and restarts the
// TTL.
func (e *Entry[V]) Touch() { e.touched = true }

// Expire sets the TTL of the value instead of Config.TTL; with 0 it does not expire, with a
// negative TTL it expires at once.
func (e *Entry[V]) Expire(after time.Duration) { e.ttl = after }

// An Option modifies an operation.
type Option struct {
	conditional bool
	version     Version
	limited     bool
	ttl         time.Duration
}

// WithVersion makes an operation fail with [leasehold.ErrStale] unless the value has version v; the
// zero Version requires that there is no value.
func WithVersion(v Version) Option { return Option{conditional: true, version: v} }

// WithTTL sets the TTL of the value instead of Config.TTL; with 0 it does not expire, with a
// negative TTL it expires at once.
func WithTTL(d time.Duration) Option { return Option{limited: true, ttl: d} }

// Get returns a value. It reports false if there is none. A map with a Store may have to load it,
// for twice Config.StoreTimeout at most, with the wait for an operation on the name: [Map.GetContext] has a context.
func (m *Map[V]) Get(name string) (V, bool, error) {
	value, version, err := m.GetVersion(name)
	return value, version.Exists(), err
}

// GetVersion returns a value and its version, for [WithVersion]. The version is zero if there is
// no value. It loads like Get.
func (m *Map[V]) GetVersion(name string) (V, Version, error) {
	return m.GetContext(context.Background(), name)
}

// GetContext is GetVersion with a context for the load of a value that is not in memory.
func (m *Map[V]) GetContext(ctx context.Context, name string) (V, Version, error) {
	var value V
	var version Version
	if err := m.read(ctx, name, func(e *entry[V]) { value, version = e.value, e.version }); err != nil {
		var zero V
		return zero, Version{}, err
	}
	return value, version, nil
}

// Update changes a value, which is the zero value if there is none, and returns its new
// version. If change returns an error the value is kept. While change runs, other operations
// on the name wait, and so does a move of the name to another server. It must not use the
// map for its own name.
func (m *Map[V]) Update(ctx context.Context, name string, change func(*V) error, options ...Option) (Version, error) {
	return m.operate(ctx, &operation[V]{name: name, change: change, options: options})
}

// Set replaces a value, and returns its new version.
func (m *Map[V]) Set(ctx context.Context, name string, value V, options ...Option) (Version, error) {
	return m.operate(ctx, &operation[V]{name: name, value: value, options: options})
}

// Delete removes a value, if there is one.
func (m *Map[V]) Delete(ctx context.Context, name string, options ...Option) error {
	_, err := m.Do(ctx, name, func(e *Entry[V]) error { e.Delete(); return nil }, options...)
	return err
}

// Touch restarts the TTL of a value, and reports whether there is one. It keeps the version.
func (m *Map[V]) Touch(ctx context.Context, name string, options ...Option) (bool, error) {
	version, err := m.Do(ctx, name, func(e *Entry[V]) error { e.Touch(); return nil }, options...)
	return version.Exists(), err
}

// Do executes an operation on an [Entry], with all of its options. It returns the version
// after the operation.
func (m *Map[V]) Do(ctx context.Context, name string, do func(*Entry[V]) error, options ...Option) (Version, error) {
	return m.operate(ctx, &operation[V]{name: name, do: do, options: options})
}

// String formats a version, or "none" for the zero Version.
func (v Version) String() string {
	if !v.Exists() {
		return "none"
	}
	return fmt.Sprintf("%d.%d", v.Generation, v.Number)
}

// MarshalText encodes a version for callers, as an ETag for instance;
// the zero Version is empty.
func (v Version) MarshalText() ([]byte, error) {
	if !v.Exists() {
		return nil, nil
	}
	return []byte(v.String()), nil
}

// UnmarshalText decodes the text of MarshalText. It accepts only the canonical text, because
// callers also compare versions as text.
func (v *Version) UnmarshalText(text []byte) error {
	*v = Version{}
	if len(text) == 0 {
		return nil
	}
	generation, number, _ := strings.Cut(string(text), ".")
	g, err := strconv.ParseUint(generation, 10, 64)
	n, err2 := strconv.ParseUint(number, 10, 64)
	read := Version{leasehold.Generation(g), n}
	if err != nil || err2 != nil || read.String() != string(text) {
		return leasehold.Errorf("parse version", leasehold.ErrInvalid, string(text), "want a version such as 5.17")
	}
	*v = read
	return nil
}
