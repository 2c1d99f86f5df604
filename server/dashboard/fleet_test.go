package dashboard_test

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	"github.com/leasehold-dev/leasehold/lookup"
	"github.com/leasehold-dev/leasehold/manager"
	"github.com/leasehold-dev/leasehold/owner"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
	"github.com/leasehold-dev/leasehold/secret"
	"github.com/leasehold-dev/leasehold/server/dashboard"
	"github.com/leasehold-dev/leasehold/store/mem"
)

// pool is the namespace of the tests in real time.
const pool = "pool"

// A fleet is managers with their dashboards, and owners, in this process. It runs in real time,
// because a browser is part of it.
type fleet struct {
	t        testing.TB
	disk     *mem.Disk
	managers []*station
}

// A station is a manager and its dashboard.
type station struct {
	*manager.Manager
	page   string // where the dashboard is
	server *http.Server
	board  *dashboard.Dashboard
	gone   bool
}

func quietLog() *slog.Logger { return slog.New(slog.DiscardHandler) }

// startFleet starts managers, and makes the namespace.
func startFleet(t testing.TB, managers int, config *leaseholdv1.NamespaceConfig) *fleet {
	t.Helper()
	f := &fleet{t: t, disk: mem.NewDisk()}
	for range managers {
		f.start()
	}
	config.Name = pool
	f.await("a leader", func(ctx context.Context) bool {
		_, err := f.admin().CreateNamespace(ctx, &leaseholdv1.CreateNamespaceRequest{Version: wire.Version, Namespace: config})
		return err == nil || leasehold.KindOf(wire.ToError(err)) == leasehold.ErrExists
	})
	return f
}

func (f *fleet) start() {
	f.t.Helper()
	listen := func() net.Listener {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			f.t.Fatal(err)
		}
		return l
	}
	m, err := manager.Start(manager.Config{Store: f.disk.Open(), StoreName: "in memory", Listener: listen(), TTL: time.Second, Logger: quietLog(), Build: "test"})
	if err != nil {
		f.t.Fatal(err)
	}
	board, err := dashboard.New(dashboard.Config{Admin: m.Admin(), Token: secret.New(token), Logger: quietLog()})
	if err != nil {
		f.t.Fatal(err)
	}
	at := listen()
	s := &station{Manager: m, page: "http://" + at.Addr().String() + "/", board: board, server: &http.Server{Handler: board, ReadHeaderTimeout: time.Second, ReadTimeout: 2 * time.Second, WriteTimeout: 2 * time.Second}}
	go s.server.Serve(at) //nolint:errcheck // Close ends it
	f.managers = append(f.managers, s)
	f.t.Cleanup(s.stop)
}

func (s *station) stop() {
	if s.gone {
		return
	}
	s.gone = true
	s.board.Close()
	_ = s.server.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_ = s.Close(ctx) // without a release, the standby waits for the timeout
}

// admin returns the admin server of a running manager.
func (f *fleet) admin() leaseholdv1.AdminServiceServer {
	for _, s := range f.managers {
		if !s.gone {
			return s.Admin()
		}
	}
	panic("no manager lives")
}

// leader returns the leading manager.
func (f *fleet) leader() *station {
	f.t.Helper()
	var leads *station
	f.await("a leader", func(ctx context.Context) bool {
		answer, err := f.admin().GetStatus(ctx, &leaseholdv1.GetStatusRequest{Version: wire.Version})
		for _, s := range f.managers {
			if err == nil && !s.gone && s.Addr() == answer.GetLeader() {
				leads = s
			}
		}
		return leads != nil
	})
	return leads
}

// await waits for a condition.
func (f *fleet) await(what string, so func(context.Context) bool) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), browserPatience)
	defer cancel()
	for !so(ctx) {
		select {
		case <-ctx.Done():
			f.t.Fatalf("there was no %s", what)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (f *fleet) addrs() []string {
	var out []string
	for _, s := range f.managers {
		out = append(out, s.Addr())
	}
	return out
}

// join starts an owner that transfers its (empty) state. It stops at the end of the test.
func (f *fleet) join(name string, weight float64) *owner.Owner {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), browserPatience)
	defer cancel()
	o, err := owner.Join(ctx, owner.Config{
		Namespace: pool, Managers: f.addrs(), Addr: "127.0.0.1:8080", Name: leasehold.OwnerID(name), Weight: weight, Logger: quietLog(),
		Mover: &owner.Mover{
			Export: func(_ context.Context, out *owner.Export) error { return out.Stop() },
			Import: func(_ context.Context, in *owner.Import) (func(leasehold.Lease), error) {
				for _, err := range in.Records() {
					if err != nil {
						return nil, err
					}
				}
				return nil, nil //nolint:nilnil // there is nothing to install
			},
		},
	})
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { kill(o) })
	return o
}

// kill ends an owner without a handoff.
func kill(o *owner.Owner) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = o.Close(ctx)
}

// look starts a lookup.
func (f *fleet) look(at ...string) *lookup.Lookup {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), browserPatience)
	defer cancel()
	l, err := lookup.Open(ctx, lookup.Config{Namespace: pool, Managers: at, Logger: quietLog()})
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { _ = l.Close(context.Background()) })
	return l
}
