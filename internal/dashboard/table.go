package dashboard

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/keyrange"
	"github.com/leasehold-dev/leasehold/internal/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// A tenancy is what the page shows of a range.
type tenancy struct {
	generation uint64
	owner      uint32 // 1 + an index into the table's names; 0: nobody
	lost       uint64 // the change at which state was last lost; 0: never
	since      uint32 // when it was granted or vacated, in seconds since 1970; 0: not known
	lostAt     uint32 // when state was last lost, likewise
}

// A mirror is a copy of a lease table, for people: owners are names, whichever session
// has them, and ranges know since when they are what they are. It is not safe for
// concurrent use; clones are independent.
type mirror struct {
	lsn    uint64
	begun  uint64 // of losses up to there nobody knows
	names  []string
	index  map[string]uint32 // 1 + where it is in names
	ranges *keyrange.Map[tenancy]
}

// mostNames is how many names of owners a mirror knows before it is better made anew:
// those who are gone are never forgotten.
const mostNames = 1 << 16

func newMirror() *mirror {
	return &mirror{index: make(map[string]uint32), ranges: keyrange.NewMap(tenancy{})}
}

func (m *mirror) owner(name string) uint32 {
	if name == "" {
		return 0
	}
	i, known := m.index[name]
	if !known {
		m.names = append(m.names, name)
		i = uint32(len(m.names))
		m.index[name] = i
	}
	return i
}

// clone returns a copy for reading. Names are only appended, so that they are shared.
func (m *mirror) clone() *mirror {
	return &mirror{lsn: m.lsn, begun: m.begun, names: m.names[:len(m.names):len(m.names)], ranges: m.ranges.Clone()}
}

// Why a copy of a table cannot go on.
var (
	errGap   = errors.New("changes of the table were missed")
	errNames = errors.New("too many owners have come and gone")
)

// apply takes up a change. A change that the mirror has is skipped, and reported as
// false; one that comes after others that it does not have is an error.
func (m *mirror) apply(c *leaseholdv1.HistoryEntry) (bool, error) {
	switch {
	case c.GetLsn() <= m.lsn:
		return false, nil
	case c.GetLsn() != m.lsn+1:
		return false, errGap
	case len(m.names) >= mostNames:
		return false, errNames
	}
	m.lsn = c.GetLsn()
	keys := leasehold.Range{Start: leasehold.Key(c.GetLease().GetStart()), Limit: leasehold.Key(c.GetLease().GetLimit())}
	at := uint32(max(0, c.GetAt().AsTime().Unix()))
	if c.GetKind() == leaseholdv1.ChangeKind_CHANGE_KIND_VACATED {
		m.ranges.Set(keys, tenancy{lost: c.GetLsn(), since: at, lostAt: at})
		return true, nil
	}
	next := tenancy{generation: c.GetLease().GetGeneration(), owner: m.owner(c.GetHolder().GetOwner()), since: at}
	for _, before := range m.ranges.Within(keys) { // a loss outlives a new lease, of several the latest
		if before.lost > next.lost {
			next.lost, next.lostAt = before.lost, before.lostAt
		}
	}
	m.ranges.Set(keys, next)
	return true, nil
}

// readTable asks for the whole table.
func readTable(ctx context.Context, admin leaseholdv1.AdminServiceServer, namespace string, known *past) (*mirror, error) {
	m := newMirror()
	var build keyrange.Builder[tenancy]
	stream := &localStream[leaseholdv1.ListRangesResponse]{ctx: ctx, send: func(piece *leaseholdv1.ListRangesResponse) error {
		m.lsn, m.begun = piece.GetLsn(), piece.GetBegun()
		for _, r := range piece.GetRanges() {
			t := tenancy{generation: r.GetLease().GetGeneration(), owner: m.owner(r.GetOwner()), lost: r.GetLost(), lostAt: known.lost[r.GetLost()]}
			if t.since = known.granted[t.generation]; t.owner == 0 {
				t.since = t.lostAt
			}
			build.Append(leasehold.Key(r.GetLease().GetStart()), t)
		}
		return nil
	}}
	if err := admin.ListRanges(&leaseholdv1.ListRangesRequest{Version: wire.Version, Namespace: namespace}, stream); err != nil {
		return nil, wire.ToError(err)
	}
	if ranges := build.Map(); ranges != nil {
		m.ranges = ranges
	}
	return m, nil
}

// Bounds on how much of the past is read to find out how old leases are: changes, and
// the time it takes. What is older than that is of unknown age.
const (
	agePages    = 32
	agePage     = 4096
	agePatience = 300 * time.Millisecond
)

// A past is what the log says about the time before.
type past struct {
	granted map[uint64]uint32           // when leases were granted, by generation, in seconds since 1970
	lost    map[uint64]uint32           // when state was lost, by LSN, likewise
	newest  []*leaseholdv1.HistoryEntry // the newest changes, newest first
}

// readPast reads the log. It is no trouble if the past is not known.
func readPast(ctx context.Context, admin leaseholdv1.AdminServiceServer, namespace string) *past {
	ctx, cancel := context.WithTimeout(ctx, agePatience)
	defer cancel()
	p := &past{granted: make(map[uint64]uint32), lost: make(map[uint64]uint32)}
	request := &leaseholdv1.ListChangesRequest{Version: wire.Version, Namespace: namespace, Most: agePage}
	for range agePages {
		answer, err := admin.ListChanges(ctx, request)
		if err != nil {
			break
		}
		for _, c := range answer.GetChanges() {
			request.Before = c.GetLsn()
			at := uint32(max(0, c.GetAt().AsTime().Unix()))
			if c.GetKind() == leaseholdv1.ChangeKind_CHANGE_KIND_VACATED {
				p.lost[c.GetLsn()] = at
			} else {
				p.granted[c.GetLease().GetGeneration()] = at
			}
		}
		if p.newest == nil {
			p.newest = answer.GetChanges()[:min(mostEvents, len(answer.GetChanges()))]
		}
		if !answer.GetMore() {
			break
		}
	}
	return p
}

// tableJSON is a table in columns, each the little-endian numbers of all ranges, in
// base64: the page takes them as typed arrays.
type tableJSON struct {
	Ranges      int    `json:"ranges"`
	Starts      string `json:"starts"`      // 64 bits
	Generations string `json:"generations"` // 64 bits
	Lost        string `json:"lost"`        // 64 bits
	Owners      string `json:"owners"`      // 32 bits: 1 + an index into names, 0 for nobody
	Since       string `json:"since"`       // 32 bits: seconds since 1970, 0 for unknown
	LostAt      string `json:"lostAt"`      // 32 bits: likewise
}

func (m *mirror) columns() tableJSON {
	n := m.ranges.Len()
	starts, generations, lost := make([]byte, 0, 8*n), make([]byte, 0, 8*n), make([]byte, 0, 8*n)
	owners, since, lostAt := make([]byte, 0, 4*n), make([]byte, 0, 4*n), make([]byte, 0, 4*n)
	order := binary.LittleEndian
	for r, t := range m.ranges.All() {
		starts = order.AppendUint64(starts, uint64(r.Start))
		generations = order.AppendUint64(generations, t.generation)
		lost = order.AppendUint64(lost, t.lost)
		owners = order.AppendUint32(owners, t.owner)
		since = order.AppendUint32(since, t.since)
		lostAt = order.AppendUint32(lostAt, t.lostAt)
	}
	text := base64.StdEncoding.EncodeToString
	return tableJSON{n, text(starts), text(generations), text(lost), text(owners), text(since), text(lostAt)}
}
