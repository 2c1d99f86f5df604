package main

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold/admin"
)

// topHistory is how many changes of a key are shown.
const topHistory = 100

// turnTo asks for what only the page needs that is looked at. Tables and histories, which
// may be large, it asks for again only when something has changed, and not at every look.
func (l *topLook) turnTo(ctx context.Context, from *admin.Client, s *topSnapshot) {
	known := l.paged
	wish := topWish{s.Namespace, l.page, l.key}
	lsn := s.status().LSN
	fresh := known.of == wish && known.problem == "" && (l.pagedAt == lsn || l.looks%rarely != 1)
	p := topPaged{of: wish}
	var err error
	switch {
	case l.page == pageEvents:
		p.log = l.log.tail(s.Namespace, mostLogged)
	case l.page == pageLookups:
		p.lookups, err = from.Lookups(ctx, s.Namespace)
		slices.SortStableFunc(p.lookups.Lookups, func(a, b admin.Lookup) int { return cmp.Compare(b.Behind, a.Behind) })
	case fresh:
		s.paged = known
		return
	case l.page == pageRanges:
		var all admin.Ranges
		all, err = from.Ranges(ctx, s.Namespace, "")
		p.ranges = all.Ranges
	case l.page == pageKey:
		p.found, err = findKey(ctx, from, s.Namespace, l.key)
	}
	if err != nil {
		p.problem = oneLine(err)
	}
	s.paged, l.paged, l.pagedAt = p, p, lsn
}

// findKey says where a key is, and where it has been.
func findKey(ctx context.Context, from *admin.Client, namespace, text string) (*topFound, error) {
	key, err := keyTyped(text)
	if err != nil {
		return nil, err
	}
	found, err := from.Find(ctx, namespace, key.key)
	if err != nil {
		return nil, err
	}
	history, err := from.History(ctx, namespace, key.key, topHistory, time.Time{})
	return &topFound{key: key, held: found.Range, history: history}, err
}
