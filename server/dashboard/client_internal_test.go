package dashboard

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/admin"
	"github.com/leasehold-dev/leasehold/internal/core/keyrange"
	"github.com/leasehold-dev/leasehold/internal/core/table"
)

// A client applies frames like the page, in Go. Tenancies are by name.
type client struct {
	last   string // id
	lsn    leasehold.LSN
	table  *keyrange.Map[seen]
	owners map[string]ownerRow
	events []admin.Event
	live   live
	frames map[string]int // how many of each kind
}

type seen struct {
	generation uint64
	owner      string
	lost       uint64
}

func newClient() *client {
	return &client{owners: make(map[string]ownerRow), frames: make(map[string]int)}
}

// take applies frames in their wire format.
func (c *client) take(wire []byte) error {
	for _, text := range bytes.Split(bytes.TrimSuffix(wire, []byte("\n\n")), []byte("\n\n")) {
		fields := make(map[string]string)
		for line := range strings.Lines(string(text)) {
			name, value, ok := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
			if !ok {
				return fmt.Errorf("%q is no line of an event", line)
			}
			fields[name] = value
		}
		c.last = fields["id"]
		c.frames[fields["event"]]++
		if err := c.frame(fields["event"], []byte(fields["data"])); err != nil {
			return err
		}
	}
	return nil
}

func (c *client) frame(event string, data []byte) error {
	switch event {
	case "snapshot":
		var s snapshotBody
		if err := json.Unmarshal(data, &s); err != nil {
			return err
		}
		c.owners = make(map[string]ownerRow)
		c.lively(s.live)
		c.events = s.Events
		return c.columns(&s)
	case "live":
		var l live
		if err := json.Unmarshal(data, &l); err != nil {
			return err
		}
		c.lively(l)
	case "news":
		var n news
		if err := json.Unmarshal(data, &n); err != nil {
			return err
		}
		c.events = append(c.events, n.Events...)
		for _, e := range n.Events {
			if e.Change == nil {
				continue
			}
			if err := c.change(e.Change); err != nil {
				return err
			}
		}
		if n.LSN != c.lsn {
			return fmt.Errorf("at LSN %d after a delta to LSN %d", c.lsn, n.LSN)
		}
	default:
		return fmt.Errorf("an event of kind %q", event)
	}
	return nil
}

func (c *client) lively(l live) {
	c.live = l
	if l.Owners == nil {
		return
	}
	for _, id := range l.Owners.Gone {
		delete(c.owners, id)
	}
	for _, o := range l.Owners.Set {
		c.owners[o.Session] = o
	}
}

func (c *client) columns(s *snapshotBody) error {
	if s.Table == nil {
		c.table = nil
		return nil
	}
	var build keyrange.Builder[seen]
	starts, generations, lost, owners := s.Table.Starts, s.Table.Generations, s.Table.Lost, s.Table.Owners
	order := binary.LittleEndian
	for i := range s.Table.Ranges {
		at := seen{generation: order.Uint64(generations[8*i:]), lost: order.Uint64(lost[8*i:])}
		if owner := order.Uint32(owners[4*i:]); owner > 0 {
			at.owner = s.Names[owner-1]
		}
		if !build.Append(leasehold.Key(order.Uint64(starts[8*i:])), at) {
			return fmt.Errorf("range %d of a snapshot is out of order", i)
		}
	}
	c.table, c.lsn = build.Map(), s.LSN
	return nil
}

func (c *client) change(e *admin.Change) error {
	if e.LSN != c.lsn+1 {
		return fmt.Errorf("change %d comes after %d", e.LSN, c.lsn)
	}
	c.lsn = e.LSN
	after := keyrange.NewMap(seen{})
	for r, before := range c.table.All() {
		after.Set(r, before)
	}
	next := seen{lost: uint64(e.LSN)}
	if e.Kind != admin.ChangeVacated {
		next = seen{generation: uint64(e.Generation), owner: e.Owner}
		for _, before := range c.table.Within(e.Keys()) {
			next.lost = max(next.lost, before.lost)
		}
	}
	after.Set(e.Keys(), next)
	c.table = after
	return nil
}

// differs returns the first difference between the client's table and the manager's, or "".
func (c *client) differs(from *table.Table) string {
	if c.table == nil || c.lsn != from.LSN() {
		return fmt.Sprintf("it is at LSN %d, want %d", c.lsn, from.LSN())
	}
	want := keyrange.NewMap(seen{})
	for r, e := range from.All() {
		at := seen{generation: uint64(e.Generation), lost: uint64(e.Lost)}
		if !e.Vacant() {
			at.owner = string(e.Holder.Owner)
		}
		want.Set(r, at)
	}
	for r, pair := range keyrange.Diff(c.table, want) {
		return fmt.Sprintf("%v is %+v, want %+v", r, pair[0], pair[1])
	}
	return ""
}
