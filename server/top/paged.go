package top

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold/server/cli"

	"github.com/leasehold-dev/leasehold/admin"
)

// topHistory is how many changes of a key are shown.
const topHistory = 100

// turnTo asks for what only the page needs that is looked at. Tables and histories, which
// may be large, it asks for again only when something has changed, and not at every look.
func (l *topLook) turnTo(ctx context.Context, from *admin.Client, s *Snapshot) {
	known := l.paged
	wish := Wish{s.Namespace, l.Page, l.Key}
	lsn := s.status().LSN
	fresh := known.Of == wish && known.Problem == "" && (l.pagedAt == lsn || l.looks%rarely != 1)
	p := topPaged{Of: wish}
	var err error
	switch {
	case l.Page == PageEvents:
		p.Log = l.log.Tail(s.Namespace, MostLogged)
	case l.Page == PageLookups:
		p.lookups, err = from.Lookups(ctx, s.Namespace)
		slices.SortStableFunc(p.lookups.Lookups, func(a, b admin.Lookup) int { return cmp.Compare(b.Behind, a.Behind) })
	case fresh:
		s.Paged = known
		return
	case l.Page == PageRanges:
		var all admin.Ranges
		all, err = from.Ranges(ctx, s.Namespace, "")
		p.Ranges = all.Ranges
	case l.Page == PageKey:
		p.Found, err = findKey(ctx, from, s.Namespace, l.Key)
	}
	if err != nil {
		p.Problem = cli.OneLine(err)
	}
	s.Paged, l.paged, l.pagedAt = p, p, lsn
}

// findKey says where a key is, and where it has been.
func findKey(ctx context.Context, from *admin.Client, namespace, text string) (*topFound, error) {
	key, err := keyTyped(text)
	if err != nil {
		return nil, err
	}
	found, err := from.Find(ctx, namespace, key.Key)
	if err != nil {
		return nil, err
	}
	history, err := from.History(ctx, namespace, key.Key, topHistory, time.Time{})
	return &topFound{Key: key, Held: found.Range, History: history}, err
}
