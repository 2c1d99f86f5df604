package kv_test

import (
	"context"
	"errors"

	"github.com/leasehold-dev/leasehold/internal/runtime/store/kv"
	"github.com/leasehold-dev/leasehold/internal/runtime/store/memdb"
)

var errLost = errors.New("lost")

// A fate is the outcome of a transaction.
type fate int

const (
	arrives    fate = iota
	isLost          // not executed, outcome unknown
	unanswered      // executed, outcome unknown
	isLate          // executed later, outcome unknown
)

// A flakyDB is a database behind a network that drops and delays messages.
type flakyDB struct {
	memdb.DB
	fate func() fate // nil: no faults
	late []kv.Txn
	size int // of the largest value written
	ops  int // of the largest transaction
}

func (f *flakyDB) Commit(ctx context.Context, t kv.Txn) (kv.Result, error) {
	f.ops = max(f.ops, len(t.Guards)+len(t.Puts)+len(t.Deletes))
	for _, e := range t.Puts {
		f.size = max(f.size, len(e.Value))
	}
	what := arrives
	if f.fate != nil {
		what = f.fate()
	}
	switch what {
	case isLost:
		return kv.Result{}, errLost
	case isLate:
		f.late = append(f.late, t)
		return kv.Result{}, errLost
	case unanswered:
		if _, err := f.DB.Commit(ctx, t); err != nil {
			return kv.Result{}, err
		}
		return kv.Result{}, errLost
	default:
		return f.DB.Commit(ctx, t)
	}
}

// arrive executes a delayed transaction.
func (f *flakyDB) arrive(ctx context.Context, i int) error {
	t := f.late[i]
	f.late = append(f.late[:i], f.late[i+1:]...)
	_, err := f.DB.Commit(ctx, t)
	return err
}

// keys returns all keys with a prefix.
func (f *flakyDB) keys(ctx context.Context, prefix string) (keys []string, err error) {
	err = f.View().Scan(ctx, kv.Span{From: prefix, To: prefix + "\xff"}, func(e kv.Entry) error {
		keys = append(keys, e.Key)
		return nil
	})
	return keys, err
}
