package loadgen

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/table"
	"github.com/leasehold-dev/leasehold/internal/runtime/clock"
	"github.com/leasehold-dev/leasehold/internal/runtime/store"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	"github.com/leasehold-dev/leasehold/lab/bench/proc"
	"github.com/leasehold-dev/leasehold/manager"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
	"github.com/leasehold-dev/leasehold/store/mem"
)

// TestMain lets the test's binary run in roles, as a benchmark does.
func TestMain(m *testing.M) {
	proc.Play(Roles())
	os.Exit(m.Run())
}

// TestSkimmer reads what the manager's own code has written, in parts of any size.
func TestSkimmer(t *testing.T) {
	holder := &table.Holder{Owner: "a", Addr: "a:1", Weight: 1}
	changes := []table.Change{{LSN: 8, Kind: table.Vacated, Generation: 1, Holder: holder}, {LSN: 9, Kind: table.Vacated, Generation: 2, Holder: holder}}
	full := table.New()
	if err := full.Apply(&table.Change{LSN: 1, Kind: table.Granted, Range: leasehold.All, Generation: 1, Holder: holder}); err != nil {
		t.Fatal(err)
	}
	var (
		stream []byte
		want   []update
	)
	add := func(u update, messages ...proto.Message) {
		var b []byte
		for _, m := range messages {
			b = append(b, marshal(t, m)...)
		}
		stream = append(binary.BigEndian.AppendUint32(append(stream, 0), uint32(len(b))), b...)
		want = append(want, u)
	}
	second := &leaseholdv1.FollowResponse{Kind: &leaseholdv1.FollowResponse_Update{Update: &leaseholdv1.Update{Echo: 12}}}
	for _, c := range []struct {
		reply protocol.LookupReply
		want  update
	}{
		{protocol.LookupReply{Namespace: "n", Leader: "a:1", Term: 300, Echo: 4, LSN: 7000}, update{echo: 4, lsn: 7000}},
		{protocol.LookupReply{Namespace: "n", LSN: 9, From: 7, Changes: changes}, update{lsn: 9, from: 7, changes: true}},
		{protocol.LookupReply{LSN: 2, Changes: changes, Age: 1e9}, update{lsn: 2, changes: true, age: time.Second}},
		{protocol.LookupReply{Echo: 1, LSN: 7, Snapshot: table.New()}, update{echo: 1, lsn: 7, table: true}},
		{
			protocol.LookupReply{LSN: 3000, Age: 1e9, Crossing: &table.Crossing{Gap: table.Gap{From: 1, After: 400, Base: 3000, Newest: 7}, Unproven: []leasehold.Key{5, 1 << 60}}},
			update{lsn: 3000, after: 400, base: 3000, age: time.Second},
		},
		{protocol.LookupReply{LSN: 3001, Crossing: &table.Crossing{Gap: table.Gap{After: 400, Base: 3000}}}, update{lsn: 3001, after: 400, base: 3000}},
		{protocol.LookupReply{Echo: 1, LSN: 1, Snapshot: full}, update{echo: 1, lsn: 1, table: true}},
	} {
		message := wire.FromLookupReply(&c.reply)
		add(c.want, message)
		c.want.echo = 12
		add(c.want, message, second)
	}
	add(update{}) // an empty message
	add(update{}, &leaseholdv1.FollowResponse{Why: "no idea"})
	for size := 1; size <= len(stream); size++ {
		var got []update
		s := &skimmer{receive: func(u update) { got = append(got, u) }}
		for part := range slices.Chunk(stream, size) {
			s.Take(part)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("in parts of %d bytes: got %+v, want %+v", size, got, want)
		}
	}
}

// TestSkimmerReadsInvalidMessages: the message after a malformed one is parsed.
func TestSkimmerReadsInvalidMessages(t *testing.T) {
	var got []update
	s := &skimmer{receive: func(u update) { got = append(got, u) }}
	s.Take(append([]byte{0, 0, 0, 0, 100}, bytes.Repeat([]byte{0xff}, 100)...))
	message := marshal(t, wire.FromLookupReply(&protocol.LookupReply{Echo: 3, LSN: 7}))
	s.Take(append([]byte{0, 0, 0, 0, byte(len(message))}, message...))
	if want := []update{{}, {echo: 3, lsn: 7}}; !slices.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestFind(t *testing.T) {
	b := marshal(t, &leaseholdv1.FollowResponse{
		Version: 1, Kind: &leaseholdv1.FollowResponse_Update{Update: &leaseholdv1.Update{Namespace: "n", Term: 3, Lsn: 300}},
	})
	if got := Find(b, 2, 5); got != 300 {
		t.Errorf("got %d, want 300", got)
	}
	for name, path := range map[string][]protowire.Number{"no field": {9}, "no inner field": {2, 9}, "no message": {1, 2}} {
		if got := Find(b, path...); got != 0 {
			t.Errorf("%s: %d", name, got)
		}
	}
	if got := Find([]byte{0xff, 0xff}, 1); got != 0 {
		t.Errorf("nonsense has the number %d", got)
	}
}

func marshal(t *testing.T, m proto.Message) []byte {
	t.Helper()
	b, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestCutMessage(t *testing.T) {
	b := []byte{0, 0, 0, 0, 2, 'a', 'b', 0, 0}
	message, rest, whole := cutMessage(b)
	if string(message) != "ab" || len(rest) != 2 || !whole {
		t.Errorf("%q %q %v", message, rest, whole)
	}
	for n := range 7 {
		if _, _, whole := cutMessage(b[:n]); whole {
			t.Errorf("%d bytes are a message", n)
		}
	}
}

func newClients(t *testing.T, managers ...string) *LeanClients {
	t.Helper()
	c := &LeanClients{ClientsConfig: ClientsConfig{"clients", managers}, clock: clock.New()}
	t.Cleanup(func() {
		for _, e := range append(c.owners, c.lookups...) {
			e.close(true)
		}
	})
	return c
}

// TestClients: owners and lookups connect, hold all keys and have proof, and are restarted.
func TestClients(t *testing.T) {
	c := newClients(t, startManagerAlone(t))
	const owners, lookups = 5, 23
	if err := c.Grow(Growth{Owners: owners, Lookups: lookups, Together: 4}, &Counts{}); err != nil {
		t.Fatal(err)
	}
	if n := len(c.lookups); n != 6 {
		t.Errorf("%d lookups have %d connections, want 6", lookups, n)
	}
	awaitWhole(t, c, owners, lookups)
	for _, crash := range []bool{false, true} {
		if err := c.Restart(Restart{Owners: 2, Lookups: lookups, Together: 4, Crash: crash}, &Counts{}); err != nil {
			t.Fatal(err)
		}
		awaitWhole(t, c, owners, lookups)
	}
	if n := c.counts(); n.Spurious() != 0 || n.Broken != 0 || n.Strange != 0 || n.Unheard != 0 || n.In == 0 || n.Out == 0 {
		t.Errorf("%+v", n)
	}
}

// TestClientProcesses: the counts are those of both processes, so that bytes never decrease.
func TestClientProcesses(t *testing.T) {
	managers := []string{startManagerAlone(t)}
	c, err := StartClients(t.Context(), "clients", managers, managers)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Grow(Growth{Owners: 2, Lookups: 3}); err != nil {
		t.Fatal(err)
	}
	last := int64(0)
	err = proc.Until(t.Context(), time.Millisecond, func(context.Context) error {
		n, err := c.Look()
		if n.In+n.Out < last {
			t.Errorf("%d bytes after %d", n.In+n.Out, last)
		}
		if last = n.In + n.Out; n.Holding != 2 || n.Proven != 3 {
			return errors.Join(err, fmt.Errorf("the counts are %+v", n))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestClientsFindTheLeader: a client of a manager that does not lead, or that ends, connects to
// another.
func TestClientsFindTheLeader(t *testing.T) {
	group := mem.New()
	first, leader := startManager(t, group)
	second, _ := startManager(t, group)
	c := newClients(t, first, second)
	const owners, lookups = 4, 6
	if err := c.Grow(Growth{Owners: owners, Lookups: lookups}, &Counts{}); err != nil {
		t.Fatal(err)
	}
	awaitWhole(t, c, owners, lookups)
	if err := leader.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	before := c.counts().Lowest
	if err := c.Restart(Restart{Owners: 2}, &Counts{}); err != nil { // makes changes that only the other can send
		t.Fatal(err)
	}
	awaitWhole(t, c, owners, lookups)
	if n := c.counts(); n.Lowest <= before {
		t.Errorf("nothing has changed: %+v", n)
	}
}

// TestLookupLeavesASilentManager: a lookup whose manager accepts the connection and never replies connects to the next.
func TestLookupLeavesASilentManager(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close() //nolint:errcheck // the test is over
	c := newClients(t, silent.Addr().String(), startManagerAlone(t))
	if err := c.Grow(Growth{Lookups: 1}, &Counts{}); err != nil {
		t.Fatal(err)
	}
	awaitCounts(t, c, func(n Counts) bool { return n.Proven > 0 })
}

func awaitWhole(t *testing.T, c *LeanClients, owners, lookups int) {
	t.Helper()
	awaitCounts(t, c, func(n Counts) bool { return n.Holding == owners && n.Proven == lookups && n.Share > 1-1e-9 })
}

func awaitCounts(t *testing.T, c *LeanClients, wanted func(Counts) bool) {
	t.Helper()
	err := proc.Until(t.Context(), 10*time.Millisecond, func(context.Context) error {
		if n := c.counts(); !wanted(n) {
			return fmt.Errorf("the counts are %+v", n)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func startManagerAlone(t *testing.T) string {
	t.Helper()
	addr, _ := startManager(t, mem.New())
	return addr
}

// startManager starts one with a store that it may share with others, and a namespace of short leases.
func startManager(t *testing.T, shared store.Store) (string, *manager.Manager) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l.Addr().String(), serveManager(t, shared, l)
}

func serveManager(t *testing.T, shared store.Store, l net.Listener) *manager.Manager {
	t.Helper()
	m, err := manager.Start(manager.Config{Store: shared, Listener: l, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close(context.Background()) })
	conn, err := proc.Dial(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close() //nolint:errcheck // it has done its work
	err = proc.CreateNamespace(t.Context(), conn, &leaseholdv1.NamespaceConfig{
		Name: "clients", Policy: "consistent", Timing: &leaseholdv1.Timing{Lease: int64(2 * time.Second), Renew: int64(500 * time.Millisecond), Drift: 1.1},
	})
	if kind := leasehold.KindOf(err); err != nil && kind != leasehold.ErrNotLeader {
		t.Fatal(err)
	}
	return m
}
