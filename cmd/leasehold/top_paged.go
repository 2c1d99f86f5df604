package main

import (
	"context"
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold/internal/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// topHistory is how many changes of a key are shown.
const topHistory = 100

// turnTo asks for what only the page needs that is looked at. Tables and histories, which
// may be large, it asks for again only when something has changed, and not at every look.
func (l *topLook) turnTo(ctx context.Context, to admin, s *topSnapshot) {
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
		p.lookups, p.total, err = lookupsAt(ctx, to, s.Namespace)
	case fresh:
		s.paged = known
		return
	case l.page == pageRanges:
		var all rangesDocument
		all, err = listRanges(ctx, to, s.Namespace, "")
		p.ranges = all.Ranges
	case l.page == pageKey:
		p.found, err = findKey(ctx, to, s.Namespace, l.key)
	}
	if err != nil {
		p.problem = oneLine(wire.ToError(err))
	}
	s.paged, l.paged, l.pagedAt = p, p, lsn
}

// lookupsAt are those that follow a manager, which lags most first.
func lookupsAt(ctx context.Context, to admin, namespace string) (all []topLookup, total int, err error) {
	answer, err := to.ListLookups(ctx, &leaseholdv1.ListLookupsRequest{Version: wire.Version, Namespace: namespace})
	if err != nil {
		return nil, 0, err
	}
	for _, s := range answer.GetLookups() {
		all = append(all, topLookup{s.GetAddr(), time.Duration(s.GetConnectedFor()), time.Duration(s.GetHeard()), s.GetBehind()})
	}
	slices.SortStableFunc(all, func(a, b topLookup) int { return int(min(b.behind, 1<<30)) - int(min(a.behind, 1<<30)) })
	return all, int(answer.GetTotal()), nil
}

// findKey says where a key is, and where it has been.
func findKey(ctx context.Context, to admin, namespace, text string) (*topFound, error) {
	key, err := keyTyped(text)
	if err != nil {
		return nil, err
	}
	held, err := to.LookupKey(ctx, &leaseholdv1.LookupKeyRequest{Version: wire.Version, Namespace: namespace, Key: uint64(key.key)})
	if err != nil {
		return nil, err
	}
	past, err := to.ListHistory(ctx, &leaseholdv1.ListHistoryRequest{Version: wire.Version, Namespace: namespace, Key: uint64(key.key), Most: topHistory})
	if err != nil {
		return nil, err
	}
	f := &topFound{key: key, held: rangeJSON(held.GetRange(), held.GetBegun())}
	for _, e := range past.GetEntries() {
		f.history.Entries = append(f.history.Entries, changeJSON(e))
	}
	return f, nil
}
