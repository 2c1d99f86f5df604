package lookup

import (
	"context"
	"iter"

	"github.com/leasehold-dev/leasehold"
)

// Watch yields the placement of a key: at first the current one, and then each with another owner, session, address or generation.
// A slow reader receives only the newest. The Generation is 0 while the key has no owner. The error is nil in all pairs except the
// last, as for [Lookup.Losses]. It wakes up for each change of the table.
func (l *Lookup) Watch(ctx context.Context, key leasehold.Key) iter.Seq2[Placement, error] {
	return func(yield func(Placement, error) bool) {
		var last Placement
		for first := true; l.endCause(ctx) == nil; first = false {
			s := l.current.Load()
			now, _ := place(s.table, key)
			last.Range, last.LSN = now.Range, now.LSN // of no interest
			if (first || now != last) && !yield(now, nil) {
				return
			}
			last = now
			select {
			case <-s.superseded:
			case <-ctx.Done():
			case <-l.ctx.Done():
			}
		}
		yield(Placement{}, l.endCause(ctx))
	}
}

// Group groups names by the address of their owners, for one request per server instead of one per name. Names without an owner
// are under "". Keys are those of [leasehold.KeyOf]. All are from one table. As for [Lookup.Find], a server refuses a name that it does not
// own: the caller retries those with [Lookup.Do].
func (l *Lookup) Group(names []string) map[string][]string {
	s, groups := l.current.Load(), make(map[string][]string)
	for _, name := range names {
		addr, _ := s.find(leasehold.KeyOf(name))
		groups[addr] = append(groups[addr], name)
	}
	return groups
}
