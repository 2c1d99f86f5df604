package kv

import (
	"fmt"
	"strconv"

	"github.com/leasehold-dev/leasehold"
)

const (
	recordKey  = "record"
	termKey    = "term"
	catalogKey = "catalog"
)

type keys string

// keysOf returns the keys of a namespace. It rejects names that could collide with another namespace's keys.
func keysOf(ns leasehold.Namespace) (keys, error) {
	if err := ns.Validate(); err != nil {
		return "", err
	}
	return keys("ns/" + string(ns) + "/"), nil
}

func (k keys) head() string { return string(k) + "head" }

// log returns the key of the piece of the log that starts with a change. Numbers have a fixed width, so
// that keys sort numerically.
func (k keys) log(first leasehold.LSN) string { return fmt.Sprintf("%slog/%020d", string(k), first) }

// logEnd sorts after all pieces of the log.
func (k keys) logEnd() string { return string(k) + "log0" }

func (k keys) piece(at leasehold.LSN, i int) string {
	return fmt.Sprintf("%s%06d", k.snapshot(at), i)
}

// snapshot returns the prefix of a snapshot's pieces. It sorts after the pieces of all older ones.
func (k keys) snapshot(at leasehold.LSN) string {
	return fmt.Sprintf("%ssnapshot/%020d/", string(k), at)
}

// snapshotEnd sorts after all pieces of a snapshot.
func (k keys) snapshotEnd(at leasehold.LSN) string {
	return fmt.Sprintf("%ssnapshot/%020d0", string(k), at)
}

// snapshotsEnd sorts after all snapshots.
func (k keys) snapshotsEnd() string { return string(k) + "snapshot0" }

func encodeTerm(t leasehold.Term) []byte { return strconv.AppendUint(nil, uint64(t), 10) }

// decodeTerm decodes the value of the term's key, 0 if it is absent. Another encoding of a number is
// corrupt: guards compare the value, and no write would ever succeed.
func decodeTerm(e Entry) (leasehold.Term, error) {
	if e.Revision == 0 {
		return 0, nil
	}
	t, err := strconv.ParseUint(string(e.Value), 10, 64)
	if err != nil {
		return 0, corrupt(e.Key, err)
	}
	if term := leasehold.Term(t); string(encodeTerm(term)) == string(e.Value) {
		return term, nil
	}
	return 0, corrupt(e.Key, fmt.Errorf("the value is %q, want %d", e.Value, t))
}

// termGuard returns the guard for the term of the leader record.
func termGuard(t leasehold.Term) Guard { return Guard{Key: termKey, Value: encodeTerm(t)} }
