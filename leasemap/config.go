package leasemap

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"time"

	"github.com/leasehold-dev/leasehold"
)

// Config configures a map. The zero Config is valid.
type Config[V any] struct {
	// TTL is the time after which a value expires that is neither changed nor touched. Zero
	// means that values do not expire, and is invalid with Weak.
	TTL time.Duration
	// Max limits the number of names. Default 1 million.
	Max int

	// Key returns the key of a name. Callers must use the same function. Default
	// [leasehold.KeyOf].
	Key func(name string) leasehold.Key

	// Encode and Decode convert a value for the move to another server.
	// Encode appends to dst; name and value are at most 4 MiB. Both must be safe for
	// concurrent use, and compatible between the versions of the application.
	// Default: JSON, which omits unexported fields and replaces invalid
	// UTF-8 in strings. A value that cannot be encoded prevents its range from moving, and
	// the range is lost at Close, which returns an error. The owner's log contains the name.
	Encode func(dst []byte, v *V) ([]byte, error)
	Decode func(data []byte, v *V) error

	// Store keeps the values beyond the memory of the servers, so that a crash loses none that were saved. See
	// "Persistence" in the package's documentation. It must not be used by another map, and is invalid with Weak.
	Store Store
	// WriteBehind saves values after operations have returned. Nil means write-through: a change returns when the
	// store has it.
	WriteBehind *WriteBehind
	// StoreTimeout limits a call of the store. Default 5 s.
	StoreTimeout time.Duration
	// MaxLoads limits concurrent loads, so that the takeover of a crashed server's keys does not overload the
	// store. Default 32.
	MaxLoads int

	// Evict makes a map that is full remove values that were not used recently, instead of failing
	// with ErrLimit. A map with a Store always does. OnEvict is called with each, without a lock, and
	// possibly after the name has another value.
	Evict   bool
	OnEvict func(name string, value V)

	// OnAlarm is called at the time of an alarm, see [Entry.Alarm], on the server that owns the name. It is the function of
	// an operation: while it runs, no other operation on the name does, and its result is saved. After an error it is called
	// again, with backoff. It is called at least once, also after a crash of the server if the map has an [AlarmStore], then within
	// ten seconds of the takeover, and never on two servers at once while the lease is held: effects outside of the map must carry the generation of the
	// lease. The context ends when Close begins. Up to 16 names have their alarms at once: one that may wait
	// for long needs a timeout, or it delays the others. A map of New has no alarms.
	// A server without OnAlarm, as there are during its introduction, keeps the alarms of values that it has loaded. A Set of
	// another value ends its alarm there.
	OnAlarm func(ctx context.Context, name string, e *Entry[V]) error

	// Resident runs in a goroutine for each name with a value, on the server that owns it and as long as it does: from the
	// first operation on, or from the arrival of the value on. Its state is the value, which it changes with operations, such
	// as [Map.Do]. Its context ends as soon as the lease has ended or is suspended, when the value ends, and before the range moves: the
	// lease is held until the resident has returned, for [owner.Mover.StopTimeout] at most, and what it saves meanwhile
	// (with [context.WithoutCancel]) moves with the name. A range does not move while it does not return. It runs
	// again if the move fails or the lease resumes, on the next server, and, after it has returned by itself, at the next
	// operation: to end for good it deletes the value. No two run for a name at once while the lease is held: effects outside of
	// the map must carry the generation of the lease. Values with a resident are not evicted. A map of New has none.
	Resident func(ctx context.Context, name string)

	// Weak prefers availability: see the package's documentation.
	Weak bool
}

const (
	opNew      = "new map"
	opGet      = "get"
	opUpdate   = "update"
	defaultMax = 1_000_000

	defaultMaxLoads     = 32
	defaultStoreTimeout = 5 * time.Second
	maxRecord           = 4 << 20 // bytes
)

func (c *Config[V]) validate() error {
	c.Max = cmp.Or(c.Max, defaultMax)
	if c.Key == nil {
		c.Key = leasehold.KeyOf
	}
	switch {
	case c.Max < 0 || c.TTL < 0:
		return leasehold.Errorf(opNew, leasehold.ErrInvalid, "", "Max is %d and TTL %v: want 0 or more", c.Max, c.TTL)
	case (c.Encode == nil) != (c.Decode == nil):
		return leasehold.Errorf(opNew, leasehold.ErrInvalid, "", "only one of Encode and Decode is set: set both or neither")
	case c.Weak && c.TTL == 0:
		return leasehold.Errorf(opNew, leasehold.ErrInvalid, "", "TTL is 0 in a weak map, which keeps values of names that it does not own until they expire: set TTL")
	}
	if c.Encode == nil {
		c.Encode = func(dst []byte, v *V) ([]byte, error) { return appendJSON(dst, v) }
		c.Decode = func(data []byte, v *V) error { return json.Unmarshal(data, v) }
	}
	return c.validateStore()
}

func (c *Config[V]) storesAlarms() bool {
	_, is := c.Store.(AlarmStore)
	return is
}

func (c *Config[V]) validateStore() error {
	c.MaxLoads, c.StoreTimeout = cmp.Or(c.MaxLoads, defaultMaxLoads), cmp.Or(c.StoreTimeout, defaultStoreTimeout)
	switch {
	case c.MaxLoads < 0 || c.StoreTimeout < 0:
		return leasehold.Errorf(opNew, leasehold.ErrInvalid, "", "MaxLoads is %d and StoreTimeout %v: want 0 or more", c.MaxLoads, c.StoreTimeout)
	case c.Store != nil && c.Weak:
		return leasehold.Errorf(opNew, leasehold.ErrInvalid, "", "a weak map has no leases, which a Store needs: set only one of Weak and Store")
	case c.OnAlarm != nil && c.Weak:
		return leasehold.Errorf(opNew, leasehold.ErrInvalid, "", "a weak map has no leases, which OnAlarm needs: set only one of Weak and OnAlarm")
	case c.Resident != nil && c.Weak:
		return leasehold.Errorf(opNew, leasehold.ErrInvalid, "", "a weak map has no leases, which Resident needs: set only one of Weak and Resident")
	case c.OnAlarm != nil && c.Store != nil && !c.storesAlarms():
		return leasehold.Errorf(opNew, leasehold.ErrInvalid, "", "OnAlarm needs an AlarmStore, which Store is not: a crash would lose alarms")
	case c.WriteBehind == nil:
		return nil
	case c.Store == nil:
		return leasehold.Errorf(opNew, leasehold.ErrInvalid, "", "WriteBehind is set without Store")
	}
	behind := *c.WriteBehind
	c.WriteBehind = &behind
	return behind.validate(c.Max)
}

// appendJSON encodes without HTML escapes, which make a value up to six times as long, and
// possibly longer than maxRecord.
func appendJSON(dst []byte, v any) ([]byte, error) {
	buffer := bytes.NewBuffer(dst)
	encoder := json.NewEncoder(buffer)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(v)
	return buffer.Bytes(), err
}
