package dashboard

import (
	"context"
	"encoding/binary"
	"errors"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/admin"
	"github.com/leasehold-dev/leasehold/internal/core/keyrange"
)

// A tenancy is the displayed state of a range.
type tenancy struct {
	generation leasehold.Generation
	owner      uint32        // 1 + an index into the table's names; 0: none
	lost       leasehold.LSN // the last change with a loss of state; 0: none
	since      uint32        // of the grant or the vacancy, in seconds since 1970; 0: unknown
	lostAt     uint32        // of the last loss of state, likewise
}

// A mirror is a copy of a lease table, with names of owners instead of sessions, and with the ages of
// leases. It is not safe for concurrent use; clones are independent.
type mirror struct {
	lsn    leasehold.LSN
	begun  leasehold.LSN // losses up to it are unknown
	names  []string
	index  map[string]uint32 // 1 + the index in names
	ranges *keyrange.Map[tenancy]
}

// mostNames bounds the names of a mirror before it is read again: names are never removed.
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

// clone returns a copy for reading. It shares the names, which are only appended to.
func (m *mirror) clone() *mirror {
	return &mirror{lsn: m.lsn, begun: m.begun, names: m.names[:len(m.names):len(m.names)], ranges: m.ranges.Clone()}
}

// Reasons to read the table again.
var (
	errGap   = errors.New("changes of the table were missed")
	errNames = errors.New("too many owners have come and gone")
)

// apply applies a change. It returns false for a duplicate, and an error after a gap.
func (m *mirror) apply(c *admin.Change) (bool, error) {
	switch {
	case c.LSN <= m.lsn:
		return false, nil
	case c.LSN != m.lsn+1:
		return false, errGap
	case len(m.names) >= mostNames:
		return false, errNames
	}
	m.lsn = c.LSN
	at := unixSeconds(c.At)
	if c.Kind == admin.ChangeVacated {
		m.ranges.Set(c.Keys(), tenancy{lost: c.LSN, since: at, lostAt: at})
		return true, nil
	}
	next := tenancy{generation: c.Generation, owner: m.owner(c.Owner), since: at}
	for _, before := range m.ranges.Within(c.Keys()) { // a new lease keeps the latest loss of the old ones
		if before.lost > next.lost {
			next.lost, next.lostAt = before.lost, before.lostAt
		}
	}
	m.ranges.Set(c.Keys(), next)
	return true, nil
}

func unixSeconds(at time.Time) uint32 { return uint32(max(0, at.Unix())) }

func readTable(ctx context.Context, client *admin.Client, namespace string, known *past) (*mirror, error) {
	all, err := client.Ranges(ctx, namespace, "")
	if err != nil {
		return nil, err
	}
	m := newMirror()
	m.lsn, m.begun = all.LSN, all.Begun
	var build keyrange.Builder[tenancy]
	for _, r := range all.Ranges {
		t := tenancy{generation: r.Generation, owner: m.owner(r.Owner), lost: r.LostAt, lostAt: known.lost[r.LostAt]}
		if t.since = known.granted[t.generation]; t.owner == 0 {
			t.since = t.lostAt
		}
		build.Append(leasehold.Key(r.Start), t)
	}
	if ranges := build.Map(); ranges != nil {
		m.ranges = ranges
	}
	return m, nil
}

// Limits of the part of the log that is read for the ages of leases: changes, and time. The age of older
// leases is unknown.
const (
	agePages   = 32
	agePage    = 4096
	ageTimeout = 300 * time.Millisecond
)

// A past is the relevant content of the log before the snapshot.
type past struct {
	granted map[leasehold.Generation]uint32 // time of grants, in seconds since 1970
	lost    map[leasehold.LSN]uint32        // time of losses, likewise
	newest  []admin.Change                  // newest first
}

// readPast reads the log within the limits.
func readPast(ctx context.Context, client *admin.Client, namespace string) *past {
	ctx, cancel := context.WithTimeout(ctx, ageTimeout)
	defer cancel()
	p := &past{granted: make(map[leasehold.Generation]uint32), lost: make(map[leasehold.LSN]uint32)}
	before := leasehold.LSN(0)
	for range agePages {
		changes, more, err := client.Changes(ctx, namespace, before, agePage)
		if err != nil {
			break
		}
		for _, c := range changes {
			before = c.LSN
			if c.Kind == admin.ChangeVacated {
				p.lost[c.LSN] = unixSeconds(c.At)
			} else {
				p.granted[c.Generation] = unixSeconds(c.At)
			}
		}
		if p.newest == nil {
			p.newest = changes[:min(mostEvents, len(changes))]
		}
		if !more {
			break
		}
	}
	return p
}

// columns are a table: each is the little-endian numbers of all ranges, which the page takes as typed
// arrays. JSON has them in base64.
type columns struct {
	Ranges      int    `json:"ranges"`
	Starts      []byte `json:"starts"`      // 64 bits
	Generations []byte `json:"generations"` // 64 bits
	Lost        []byte `json:"lost"`        // 64 bits
	Owners      []byte `json:"owners"`      // 32 bits: 1 + an index into names, 0 for none
	Since       []byte `json:"since"`       // 32 bits: seconds since 1970, 0 for unknown
	LostAt      []byte `json:"lostAt"`      // 32 bits: likewise
}

func (m *mirror) columns() *columns {
	n := m.ranges.Len()
	wide, narrow := func() []byte { return make([]byte, 0, 8*n) }, func() []byte { return make([]byte, 0, 4*n) }
	c := &columns{n, wide(), wide(), wide(), narrow(), narrow(), narrow()}
	order := binary.LittleEndian
	for r, t := range m.ranges.All() {
		c.Starts = order.AppendUint64(c.Starts, uint64(r.Start))
		c.Generations = order.AppendUint64(c.Generations, uint64(t.generation))
		c.Lost = order.AppendUint64(c.Lost, uint64(t.lost))
		c.Owners = order.AppendUint32(c.Owners, t.owner)
		c.Since = order.AppendUint32(c.Since, t.since)
		c.LostAt = order.AppendUint32(c.LostAt, t.lostAt)
	}
	return c
}
