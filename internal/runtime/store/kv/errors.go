package kv

import (
	"errors"

	"github.com/leasehold-dev/leasehold"
)

// ErrViewLost means that the database no longer has what a view shows. A new
// view does not suffer from it.
var ErrViewLost = errors.New("what was read has been compacted meanwhile")

// corrupt says that a stored value makes no sense. Nothing of ours writes such
// a value, so that somebody else has, or a disk has lost something.
func corrupt(key string, why error) error {
	return leasehold.Errorf("read store", leasehold.ErrInternal, key,
		"the stored value makes no sense: %w; restore the store from a backup", why)
}

// failed wraps a database's error with what was being done. It keeps the
// error's kind, and calls an error without one Unavailable.
func failed(op, subject string, err error) error {
	if err == nil {
		return nil
	}
	kind := leasehold.KindOf(err)
	if kind == leasehold.Other {
		kind = leasehold.ErrUnavailable
	}
	return &leasehold.Error{Op: op, Kind: kind, Subject: subject, Err: err}
}
