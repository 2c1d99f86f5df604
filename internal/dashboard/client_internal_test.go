package dashboard

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/keyrange"
	"github.com/leasehold-dev/leasehold/internal/table"
)

// A client is what the page makes of frames, in Go. Tenancies are by name.
type client struct {
	last   string // id
	lsn    uint64
	table  *keyrange.Map[seen]
	owners map[string]ownerJSON
	events []eventJSON
	live   live
	frames map[string]int // how many of each kind
}

type seen struct {
	generation uint64
	owner      string
	lost       uint64
}

func newClient() *client {
	return &client{owners: make(map[string]ownerJSON), frames: make(map[string]int)}
}

// take takes up frames as they are on the wire.
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
		var s snapshotJSON
		if err := json.Unmarshal(data, &s); err != nil {
			return err
		}
		c.owners = make(map[string]ownerJSON)
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
		var n newsJSON
		if err := json.Unmarshal(data, &n); err != nil {
			return err
		}
		c.events = append(c.events, n.Events...)
		for _, e := range n.Events {
			if e.LSN != "" {
				if err := c.change(e); err != nil {
					return err
				}
			}
		}
		if n.LSN != decimal(c.lsn) {
			return fmt.Errorf("at LSN %d after news that lead to %s", c.lsn, n.LSN)
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
		c.owners[o.ID] = o
	}
}

func (c *client) columns(s *snapshotJSON) error {
	if s.Table == nil {
		c.table = nil
		return nil
	}
	var build keyrange.Builder[seen]
	decode := func(text string) []byte {
		data, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			panic(err)
		}
		return data
	}
	starts, generations, lost, owners := decode(s.Table.Starts), decode(s.Table.Generations), decode(s.Table.Lost), decode(s.Table.Owners)
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
	c.table = build.Map()
	lsn, err := strconv.ParseUint(s.LSN, 10, 64)
	c.lsn = lsn
	return err
}

func (c *client) change(e eventJSON) error {
	lsn, err := strconv.ParseUint(e.LSN, 10, 64)
	if err != nil {
		return err
	}
	if lsn != c.lsn+1 {
		return fmt.Errorf("change %d comes after %d", lsn, c.lsn)
	}
	c.lsn = lsn
	start, err := leasehold.ParseKey(e.Start)
	if err != nil {
		return err
	}
	limit, err := leasehold.ParseKey(e.Limit)
	if err != nil {
		return err
	}
	generation, err := strconv.ParseUint(e.Generation, 10, 64)
	if err != nil {
		return err
	}
	keys := leasehold.Range{Start: start, Limit: limit}
	after := keyrange.NewMap(seen{})
	for r, before := range c.table.All() {
		after.Set(r, before)
	}
	next := seen{lost: lsn}
	if e.Kind != "vacated" {
		next = seen{generation: generation, owner: e.Owner}
		for _, before := range c.table.Within(keys) {
			next.lost = max(next.lost, before.lost)
		}
	}
	after.Set(keys, next)
	c.table = after
	return nil
}

// differs says where the client's table is another than a real one; "" if nowhere.
func (c *client) differs(from *table.Table) string {
	if c.table == nil || c.lsn != uint64(from.LSN()) {
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
