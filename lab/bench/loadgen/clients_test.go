package loadgen

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"testing"
	"time"

	"google.golang.org/grpc/credentials/insecure"
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
	process "github.com/leasehold-dev/leasehold/server/proc"
	"github.com/leasehold-dev/leasehold/store/mem"
)

// TestMain lets the test's binary run in roles, as a benchmark does.
func TestMain(m *testing.M) {
	proc.Play(Roles())
	os.Exit(m.Run())
}

// TestParseUpdate reads what the manager's own code has written.
func TestParseUpdate(t *testing.T) {
	holder := &table.Holder{Owner: "a", Addr: "a:1", Weight: 1}
	changes := []table.Change{{LSN: 8, Kind: table.Vacated, Generation: 1, Holder: holder}, {LSN: 9, Kind: table.Vacated, Generation: 2, Holder: holder}}
	full := table.New()
	if err := full.Apply(&table.Change{LSN: 1, Kind: table.Granted, Range: leasehold.All, Generation: 1, Holder: holder}); err != nil {
		t.Fatal(err)
	}
	check := func(want update, messages ...proto.Message) {
		t.Helper()
		var b []byte
		for _, m := range messages {
			b = append(b, marshal(t, m)...)
		}
		if got := parseUpdate(b); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
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
		check(c.want, message)
		c.want.echo = 12
		check(c.want, message, second)
	}
	check(update{}) // an empty message
	check(update{}, &leaseholdv1.FollowResponse{Why: "no idea"})
	if got := parseUpdate(bytes.Repeat([]byte{0xff}, 100)); got != (update{}) {
		t.Errorf("a malformed message is %+v", got)
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

func startClients(t *testing.T, managers ...string) *Clients {
	t.Helper()
	c := &Clients{ClientsConfig: ClientsConfig{Namespace: "clients", Managers: managers}, clock: clock.New()}
	t.Cleanup(func() {
		for _, one := range append(c.owners, c.lookups...) {
			one.close()
		}
	})
	return c
}

// TestClients: owners and lookups connect, hold all keys and have proof, and are restarted.
func TestClients(t *testing.T) {
	c := startClients(t, startManagerAlone(t))
	const owners, lookups = 5, 23
	if err := c.Grow(Growth{Owners: owners, Lookups: lookups}, nil); err != nil {
		t.Fatal(err)
	}
	awaitWhole(t, c, owners, lookups)
	if err := c.Restart(0, nil); err != nil {
		t.Fatal(err)
	}
	awaitWhole(t, c, owners, lookups)
	if n := c.counts(); n.Spurious() != 0 || n.Strange != 0 || n.Bytes == 0 {
		t.Errorf("%+v", n)
	}
}

// TestClientProcesses: the processes have the sessions, and bytes never decrease.
func TestClientProcesses(t *testing.T) {
	g, err := StartClients(t.Context(), 2, ClientsConfig{Namespace: "clients", Managers: []string{startManagerAlone(t)}})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	if err := errors.Join(g[0].Call("Grow", Growth{Owners: 2}, nil), g[1].Call("Grow", Growth{Lookups: 3}, nil)); err != nil {
		t.Fatal(err)
	}
	last := int64(0)
	err = proc.Until(t.Context(), time.Millisecond, func(context.Context) error {
		n, err := Look(g)
		if n.Bytes < last {
			t.Errorf("%d bytes after %d", n.Bytes, last)
		}
		if last = n.Bytes; n.Holding != 2 || n.Proven != 3 {
			return errors.Join(err, fmt.Errorf("the counts are %+v", n))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestLookupsFindTheLeader: lookups of a manager that ends connect to another.
func TestLookupsFindTheLeader(t *testing.T) {
	group := mem.New()
	first, leader := startManager(t, group)
	second, _ := startManager(t, group)
	c := startClients(t, first, second)
	const lookups = 6
	if err := c.Grow(Growth{Lookups: lookups}, nil); err != nil {
		t.Fatal(err)
	}
	awaitCounts(t, c, func(n Counts) bool { return n.Proven == lookups })
	before := c.counts().Lowest
	if err := leader.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	owners := startClients(t, second)
	if err := owners.Grow(Growth{Owners: 2}, nil); err != nil { // makes changes that only the other can send
		t.Fatal(err)
	}
	awaitCounts(t, c, func(n Counts) bool { return n.Proven == lookups && n.Lowest > before })
}

// TestLookupLeavesASilentManager: a lookup whose manager accepts the connection and never replies connects to the next.
func TestLookupLeavesASilentManager(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close() //nolint:errcheck // the test is over
	c := startClients(t, silent.Addr().String(), startManagerAlone(t))
	if err := c.Grow(Growth{Lookups: 1}, nil); err != nil {
		t.Fatal(err)
	}
	awaitCounts(t, c, func(n Counts) bool { return n.Proven > 0 })
}

func awaitWhole(t *testing.T, c *Clients, owners, lookups int) {
	t.Helper()
	awaitCounts(t, c, func(n Counts) bool { return n.Holding == owners && n.Proven == lookups && n.Share > 1-1e-9 })
}

func awaitCounts(t *testing.T, c *Clients, wanted func(Counts) bool) {
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
	client, err := process.Dial([]string{l.Addr().String()}, insecure.NewCredentials(), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	config := &leaseholdv1.NamespaceConfig{
		Name: "clients", Policy: "consistent", Timing: &leaseholdv1.Timing{Lease: int64(2 * time.Second), Renew: int64(500 * time.Millisecond), Drift: 1.1},
	}
	err = process.Until(t.Context(), func(ctx context.Context) error {
		_, err := client.CreateNamespace(ctx, config)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return m
}
