package leasemap

import (
	"cmp"
	"context"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/leasehold-dev/leasehold"
)

// A Store keeps the values of a map beyond the memory of its servers: package pgmap has one in
// PostgreSQL, and package storetest the tests for others. It must be safe for concurrent use.
//
// Each Load and Save has a token. Tokens are ordered by generation and then by number, and the
// tokens of a name rise from call to call. For each name the store keeps the highest token that it
// has received, atomically with the record, and refuses calls with lower ones. So a Load fences: a
// Save of an earlier owner that arrives later is refused, and so is one of the same owner that it
// believed to have failed. A name without a value has a token, too.
//
// There is none for Redis and etcd. Redis replicates asynchronously: a failover loses acknowledged saves, and the tokens that
// refuse late ones. WAIT does not prevent that, and a single Redis loses both in a crash unless it syncs its log for each
// command. etcd is safe, but slow for this: a batch is one transaction of at most 128 operations by default, each Load is a
// consensus write, and all members keep all values in a database of a few gigabytes. Package fenceetcd has transactions
// for the few values that fit.
//
// Tokens are those of one namespace, and of one map: each map needs a Store of its own.
type Store interface {
	// Load raises the token of a name, and returns its record, whose Version is zero if there
	// is no value. The error has the kind [leasehold.ErrStale] if the token is lower than the stored one, and
	// never ErrIndeterminate: a Load can be repeated.
	Load(ctx context.Context, name string, token Version) (Record, error)

	// Save stores records, whose names are different and sorted, and returns the names whose tokens are
	// lower than the stored ones; it has not changed those. It may be called again with a batch that it
	// has stored before. A record without a Version deletes the value, but not the token.
	//
	// An error of the kinds ErrUnavailable, ErrInvalid, ErrLimit and ErrNotFound means that
	// nothing was stored. After any other error, each record may have been stored, or be stored later.
	Save(ctx context.Context, batch []Record) (refused []string, err error)
}

// A Record is a name in a [Store]. Names have 1 to 1,024 bytes of UTF-8 without a zero byte.
type Record struct {
	Name    string
	Token   Version
	Version Version       // of the value; zero if there is none
	Value   []byte        // encoded by Config.Encode
	Key     leasehold.Key // of Config.Key; not in a Load
	Alarm   time.Time     // zero if there is none; only for an [AlarmStore]
	TTL     time.Duration // remaining, on the store's clock; 0 if the value does not expire. Load may return a negative one.
}

// Compare orders versions: by generation, then by number. It returns -1, 0 or 1.
func (v Version) Compare(other Version) int {
	return cmp.Or(cmp.Compare(v.Generation, other.Generation), cmp.Compare(v.Number, other.Number))
}

const maxStoredName = 1024 // bytes

// validateName returns an error for a name that a Store need not accept.
func validateName(op, name string) error {
	if name == "" || len(name) > maxStoredName || !utf8.ValidString(name) || strings.ContainsRune(name, 0) {
		return leasehold.Errorf(op, leasehold.ErrInvalid, name, "nothing was done: a stored name has 1 to %d bytes of UTF-8 without a zero byte", maxStoredName)
	}
	return nil
}

// unchanged reports whether an error of Save means that nothing was stored.
func unchanged(err error) bool {
	switch leasehold.KindOf(err) {
	case leasehold.ErrUnavailable, leasehold.ErrInvalid, leasehold.ErrLimit, leasehold.ErrNotFound:
		return true
	}
	return false
}
