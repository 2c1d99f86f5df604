package crowd

import (
	"bytes"
	"context"
	"encoding/binary"
	"log/slog"
	"net"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/protocol"
	"github.com/leasehold-dev/leasehold/internal/table"
	"github.com/leasehold-dev/leasehold/internal/wire"
	"github.com/leasehold-dev/leasehold/manager"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/mem"
)

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
		s := &skimmer{hear: func(u update) { got = append(got, u) }}
		for part := range slices.Chunk(stream, size) {
			s.take(part)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("in parts of %d bytes: got %+v, want %+v", size, got, want)
		}
	}
}

// TestSkimmerEndsWithNonsense: it says so, and does not go on for ever.
func TestSkimmerEndsWithNonsense(t *testing.T) {
	heard := 0
	s := &skimmer{hear: func(u update) {
		heard++
		if u != (update{}) {
			t.Errorf("it has read %+v", u)
		}
	}}
	s.take(append([]byte{0, 0, 0, 1, 0}, bytes.Repeat([]byte{0xff}, 100)...))
	if heard == 0 {
		t.Error("nothing was said of it")
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

// TestCrowd: owners and lookups come, hold all keys and know it, and are restarted.
func TestCrowd(t *testing.T) {
	addr := startManager(t)
	c := &crowd{managers: []string{addr}, namespace: "crowd", clock: clock.New()}
	t.Cleanup(func() {
		for _, s := range append(c.owners, c.lookups...) {
			s.close(true)
		}
	})
	const owners, lookups = 5, 23
	if err := c.obey(Order{Do: Grow, Owners: owners, Lookups: lookups, Together: 4}); err != nil {
		t.Fatal(err)
	}
	if n := len(c.lookups); n != 6 {
		t.Errorf("%d lookups have %d connections, want 6", lookups, n)
	}
	awaitWhole(t, c, owners, lookups)
	for _, crash := range []bool{false, true} {
		if err := c.obey(Order{Do: Restart, Owners: 2, Lookups: lookups, Together: 4, Crash: crash}); err != nil {
			t.Fatal(err)
		}
		awaitWhole(t, c, owners, lookups)
	}
	if n := c.counts(); n.Spurious() != 0 || n.Broken != 0 || n.Strange != 0 || n.Unheard != 0 || n.In == 0 || n.Out == 0 {
		t.Errorf("%+v", n)
	}
}

// TestCrowdFindsTheLeader: whoever has come to a manager that does not lead, or that goes, turns
// to another.
func TestCrowdFindsTheLeader(t *testing.T) {
	group := mem.New()
	first, leader := startManagerWith(t, group)
	second, _ := startManagerWith(t, group)
	c := &crowd{managers: []string{first, second}, namespace: "crowd", clock: clock.New()}
	t.Cleanup(func() {
		for _, s := range append(c.owners, c.lookups...) {
			s.close(true)
		}
	})
	const owners, lookups = 4, 6
	if err := c.obey(Order{Do: Grow, Owners: owners, Lookups: lookups}); err != nil {
		t.Fatal(err)
	}
	awaitWhole(t, c, owners, lookups)
	if err := leader.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	before := c.counts().Lowest
	if err := c.obey(Order{Do: Restart, Owners: 2}); err != nil { // makes changes that only the other can tell
		t.Fatal(err)
	}
	awaitWhole(t, c, owners, lookups)
	if n := c.counts(); n.Lowest <= before {
		t.Errorf("nothing has changed: %+v", n)
	}
}

// TestCrowdLeavesASilentManager: a lookup whose manager accepts the connection and never answers turns to the next.
func TestCrowdLeavesASilentManager(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close() //nolint:errcheck // the test is over
	addr := startManager(t)
	c := &crowd{managers: []string{silent.Addr().String(), addr}, namespace: "crowd", clock: clock.New()}
	t.Cleanup(func() {
		for _, s := range c.lookups {
			s.close(true)
		}
	})
	if err := c.obey(Order{Do: Grow, Lookups: 1}); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); c.counts().Proven == 0; {
		if time.Now().After(deadline) {
			t.Fatalf("the lookup stays where it is: %+v", c.counts())
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func awaitWhole(t *testing.T, c *crowd, owners, lookups int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		n := c.counts()
		if n.Holding == owners && n.Proven == lookups && n.Share > 1-1e-9 {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("not whole: %+v", n)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// startManager returns the address of a manager with a namespace of short leases.
func startManager(t *testing.T) string {
	addr, _ := startManagerWith(t, mem.New())
	return addr
}

// startManagerWith starts one with a store that it may share with others, which lead already.
func startManagerWith(t *testing.T, group store.Store) (string, *manager.Manager) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m, err := manager.Start(manager.Config{Store: group, Listener: l, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close(context.Background()) })
	addr := l.Addr().String()
	conn, err := grpc.NewClient("passthrough:///"+addr, append(wire.DialOptions(), grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close() //nolint:errcheck // it has done its work
	request := &leaseholdv1.CreateNamespaceRequest{Version: wire.Version, Namespace: &leaseholdv1.NamespaceConfig{
		Name: "crowd", Timing: &leaseholdv1.Timing{Lease: int64(2 * time.Second), Renew: int64(500 * time.Millisecond), Drift: 1.1},
	}}
	for { // until it leads
		_, err := leaseholdv1.NewAdminServiceClient(conn).CreateNamespace(t.Context(), request)
		if err == nil || leasehold.KindOf(wire.ToError(err)) == leasehold.Exists {
			return addr, m
		}
		if t.Context().Err() != nil {
			t.Fatal(err)
		}
	}
}
