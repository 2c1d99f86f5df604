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
	count  atomic.Int64 // of entries
	first  uint64       // what numbers of versions begin with
	spare  sync.Pool    // of *Entry[V]

	owner    *owner.Owner // nil unless Join has made it
	stop     context.CancelFunc
	sweeping sync.WaitGroup
}

// New returns a map for an owner that the application joins itself: it gives
// [Map.Mover] and [Map.Revoked] to [owner.Config], and the owner to [Map.Use] before
// the first operation. What has expired takes up room until [Map.Sweep] is called.
func New[V any](cfg Config[V]) (*Map[V], error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	m := &Map[V]{cfg: cfg, base: time.Now(), leases: nobody{}}
	if cfg.Weak {
		m.first = rand.Uint64N(1 << 62) //nolint:gosec // without a lease, versions must differ from other servers'; they need not be secret
	}
	return m, nil
}

type nobody struct{}

func (nobody) Check(leasehold.Key) (owner.Lease, bool) { return owner.Lease{}, false }
func (nobody) Held(owner.Lease) bool                   { return false }
func (nobody) Suspended(leasehold.Key) bool            { return false }
func (nobody) Await(context.Context, leasehold.Key) error {
	return leasehold.ErrNotOwner
}

// Join joins a namespace with a map as the server's state. The Mover of the owner's
// configuration is the map's, with the addresses and credentials of the one that is
// given, if one is; OnRevoke is called after the map has been told.
func Join[V any](ctx context.Context, as owner.Config, cfg Config[V]) (*Map[V], error) {
	m, err := New(cfg)
	if err != nil {
		return nil, err
	}
	mover := m.Mover()
	if given := as.Mover; given != nil {
		if given.Export != nil || given.Import != nil {
			return nil, leasehold.Errorf(opNew, leasehold.ErrInvalid, string(as.Namespace), "the map exports and imports: leave both out of Mover, or use New")
		}
		copied := *given
		copied.Export, copied.Import = mover.Export, mover.Import
		mover = &copied
	}
	as.Mover = mover
	revoked := as.OnRevoke
	as.OnRevoke = func(ended []leasehold.Lease, why leasehold.Cause) {
		m.Revoked(ended, why)
		if revoked != nil {
			revoked(ended, why)
		}
	}
	o, err := owner.Join(ctx, as)
	if err != nil {
		return nil, err
	}
	m.owner = o
	m.Use(o)
	sweeping, stop := context.WithCancel(context.Background()) //nolint:gosec // Close calls it
	m.stop = stop
	m.sweeping.Go(func() { m.sweepAlways(sweeping) })
	return m, nil
}

// Use says whose leases decide. It is called once, before the first operation.
func (m *Map[V]) Use(l owner.Checker) { m.leases = l }

// Owner returns what Join has joined.
func (m *Map[V]) Owner() *owner.Owner { return m.owner }

// Close gives all names back, with their values, as [owner.Owner.Close] does, and ends
// the map's goroutine. It is for a map that Join has made. Call it before the server
// stops serving.
func (m *Map[V]) Close(ctx context.Context) error {
	if m.owner == nil {
		return leasehold.Errorf("close map", leasehold.ErrInvalid, "", "it was made with New: close the owner that it was given")
	}
	err := m.owner.Close(ctx)
	m.stop()
	m.sweeping.Wait()
	return err
}

// Len returns how many names there are, those among them that have expired or belong
// to others by now and have not been removed yet.
func (m *Map[V]) Len() int { return int(m.count.Load()) }

// A Version names a value of a name. Versions are not reused, not even by another
// server. The zero Version is that of a name without a value.
type Version struct {
	Generation leasehold.Generation // of the lease under which the value was written
	Number     uint64               // of the write, in its process and among names that lie close together
}

// Exists reports whether there is a value.
func (v Version) Exists() bool { return v != Version{} }

// An Entry is a name while an operation has it. It must not be used after that.
type Entry[V any] struct {
	// Value is a copy, which takes the value's place if the operation succeeds. It is
	// the zero value if there is none.
	Value V
	// Version is that of the value before, and Next the one that it will have if it is
	// changed, to be stored in the value or sent elsewhere.
	Version, Next Version
	// Lease is what the operation has checked. Whatever has an effect elsewhere
	// carries its generation. It is zero if a weak map does not own the name.
	Lease owner.Lease

	deleted, kept, touched bool
	ttl                    time.Duration
}

// Delete removes the value if the operation succeeds.
func (e *Entry[V]) Delete() { e.deleted = true }

// Keep leaves the value as it is, and as old as it is, whatever becomes of e.Value: the
// operation was only reading.
func (e *Entry[V]) Keep() { e.kept = true }

// Touch leaves the value and its version as they are, whatever becomes of e.Value, and lets
// it last for another TTL.
func (e *Entry[V]) Touch() { e.touched = true }

// Expire sets for how long the value lasts, in place of Config.TTL; 0 is for ever, and less
// is not at all.
func (e *Entry[V]) Expire(after time.Duration) { e.ttl = after }

// An Option changes an operation.
type Option struct {
	conditional bool
	version     Version
	limited     bool
	ttl         time.Duration
}

// WithVersion makes an operation fail, with [leasehold.ErrStale], unless the value has a version; the
// zero Version means that there must be none.
func WithVersion(v Version) Option { return Option{conditional: true, version: v} }

// WithTTL sets for how long the value lasts, in place of Config.TTL; 0 is for ever, and less is
// not at all.
func WithTTL(d time.Duration) Option { return Option{limited: true, ttl: d} }

// Get returns a value, and whether there is one.
func (m *Map[V]) Get(name string) (V, bool, error) {
	value, version, err := m.GetVersion(name)
	return value, version.Exists(), err
}

// GetVersion returns a value and its version, for [WithVersion]. The version is zero if there is
// no value.
func (m *Map[V]) GetVersion(name string) (V, Version, error) {
	var value V
	var version Version
	if err := m.read(name, func(e *entry[V]) { value, version = e.value, e.version }); err != nil {
		var zero V
		return zero, Version{}, err
	}
	return value, version, nil
}

// Update changes a value, which is the zero value if there is none, and returns its new
// version. If change returns an error nothing happens. While it runs, other operations
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

// Touch lets a value last for another TTL, and reports whether there is one. Its version
// stays.
func (m *Map[V]) Touch(ctx context.Context, name string, options ...Option) (bool, error) {
	version, err := m.Do(ctx, name, func(e *Entry[V]) error { e.Touch(); return nil }, options...)
	return version.Exists(), err
}

// Do carries out an operation with all that there is to know. It is what the others are
// made of. It returns the version of the value when it has ended.
func (m *Map[V]) Do(ctx context.Context, name string, do func(*Entry[V]) error, options ...Option) (Version, error) {
	return m.operate(ctx, &operation[V]{name: name, do: do, options: options})
}

// String writes a version as text, and "none" for the one of no value.
func (v Version) String() string {
	if !v.Exists() {
		return "none"
	}
	return fmt.Sprintf("%d.%d", v.Generation, v.Number)
}

// MarshalText writes a version so that it can be sent to callers, as an ETag for instance;
// the one of no value is empty.
func (v Version) MarshalText() ([]byte, error) {
	if !v.Exists() {
		return nil, nil
	}
	return []byte(v.String()), nil
}

// UnmarshalText reads what MarshalText has written, and nothing else: callers compare versions
// as text, too.
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
		return leasehold.Errorf("parse version", leasehold.ErrInvalid, string(text), "want a version as it was given out, 5.17 for instance")
	}
	*v = read
	return nil
}
