package kv

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/table"
	"github.com/leasehold-dev/leasehold/internal/runtime/store"
)

// History implements [store.Store]. It returns at most [DefaultHistory]
// changes at a time.
func (s *Store) History(ctx context.Context, ns leasehold.Namespace, before leasehold.LSN, most int) ([]store.Past, error) {
	const op = "read history"
	ctx, leave, err := s.enter(ctx, op)
	if err != nil {
		return nil, err
	}
	defer leave()
	k, err := keysOf(ns)
	if err != nil {
		return nil, err
	}
	for range maxViews {
		var past []store.Past
		if past, err = history(ctx, s.db.View(), k, before, most); err == nil {
			return past, nil
		}
		if !errors.Is(err, ErrViewLost) {
			break
		}
	}
	return nil, failed(op, string(ns), err)
}

func history(ctx context.Context, v View, k keys, before leasehold.LSN, most int) ([]store.Past, error) {
	_, h, err := readHead(ctx, v, k)
	if err != nil {
		return nil, err
	}
	var past []store.Past
	// Newest first: what follows on the last table that took the place of a log, and then what came before that.
	for _, part := range []stretch{{h.forgotten, h.end}, h.earlier} {
		if before > 0 {
			part.end = min(part.end, before-1)
		}
		room := leasehold.LSN(max(0, min(most, DefaultHistory)-len(past)))
		part.after = max(part.after, part.end-min(part.end, room))
		read := len(past)
		err = readLog(ctx, v, k, part.after, part.end, func(at time.Time, changes []table.Change) {
			for i := range changes {
				past = append(past, store.Past{At: at, Change: changes[i]})
			}
		})
		if err != nil {
			return nil, err
		}
		slices.Reverse(past[read:])
	}
	return past, nil
}
