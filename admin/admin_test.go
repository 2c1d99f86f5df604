package admin_test

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/admin"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	"github.com/leasehold-dev/leasehold/internal/testkit/leak"
	"github.com/leasehold-dev/leasehold/manager"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
	"github.com/leasehold-dev/leasehold/store/mem"
)

func TestMain(m *testing.M) { leak.Main(m) }

// A fake is the service of a manager with scripted responses. It records the calls.
type fake struct {
	leaseholdv1.UnimplementedAdminServiceServer
	addr string

	create func() error
	owners func() (*leaseholdv1.ListOwnersResponse, error)
	watch  func(grpc.ServerStreamingServer[leaseholdv1.WatchResponse]) error
	calls  chan string
}

func (f *fake) GetStatus(context.Context, *leaseholdv1.GetStatusRequest) (*leaseholdv1.GetStatusResponse, error) {
	f.calls <- "status"
	return &leaseholdv1.GetStatusResponse{Leader: f.addr, Term: 1 << 60}, nil
}

func (f *fake) CreateNamespace(context.Context, *leaseholdv1.CreateNamespaceRequest) (*leaseholdv1.CreateNamespaceResponse, error) {
	f.calls <- "create"
	return &leaseholdv1.CreateNamespaceResponse{}, f.create()
}

func (f *fake) ListOwners(context.Context, *leaseholdv1.ListOwnersRequest) (*leaseholdv1.ListOwnersResponse, error) {
	f.calls <- "owners"
	return f.owners()
}

func (f *fake) ListRanges(_ *leaseholdv1.ListRangesRequest, s grpc.ServerStreamingServer[leaseholdv1.ListRangesResponse]) error {
	return s.Send(&leaseholdv1.ListRangesResponse{Lsn: 1})
}

func (f *fake) DrainOwner(context.Context, *leaseholdv1.DrainOwnerRequest) (*leaseholdv1.DrainOwnerResponse, error) {
	return &leaseholdv1.DrainOwnerResponse{}, nil
}

func (f *fake) ListMoves(context.Context, *leaseholdv1.ListMovesRequest) (*leaseholdv1.ListMovesResponse, error) {
	return &leaseholdv1.ListMovesResponse{}, nil
}

func (f *fake) Watch(_ *leaseholdv1.WatchRequest, s grpc.ServerStreamingServer[leaseholdv1.WatchResponse]) error {
	return f.watch(s)
}

func start(t *testing.T, f *fake) *fake {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f.addr, f.calls = l.Addr().String(), make(chan string, 1000)
	s := grpc.NewServer(wire.ServerOptions()...)
	leaseholdv1.RegisterAdminServiceServer(s, f)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = s.Serve(l)
	}()
	t.Cleanup(func() { s.Stop(); <-ended })
	return f
}

func (f *fake) called() []string {
	var all []string
	for len(f.calls) > 0 {
		all = append(all, <-f.calls)
	}
	return all
}

func dial(t *testing.T, managers ...string) *admin.Client {
	t.Helper()
	c, err := admin.New(admin.Config{Managers: managers})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// A manager that does not respond may have made the change, so no other manager gets it. Without a leader
// it was not made, and is retried.
func TestChangeIsSentOnce(t *testing.T) {
	for _, test := range []struct {
		name     string
		failures []error
		first    []string
		want     string
	}{
		{"no answer", []error{status.Error(codes.Unavailable, "the leader did not answer")}, []string{"status", "create"}, "The change may have been made"},
		{"refused", []error{status.Error(codes.InvalidArgument, "no")}, []string{"status", "create"}, "no"},
		{"no leader", []error{wire.FromError(leasehold.Errorf("", leasehold.ErrNotLeader, "", "no leader"))}, []string{"status", "create", "create"}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			first := &fake{create: func() error {
				if len(test.failures) == 0 {
					return nil
				}
				err := test.failures[0]
				test.failures = test.failures[1:]
				return err
			}}
			first, second := start(t, first), start(t, &fake{})
			_, err := dial(t, first.addr, second.addr).CreateNamespace(t.Context(), admin.Namespace{Name: "x"})
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v", err)
			}
			if unknown := test.name == "no answer"; errors.Is(err, leasehold.ErrIndeterminate) != unknown || errors.Is(err, leasehold.ErrUnavailable) {
				t.Errorf("error %v: indeterminate, want %t", err, unknown)
			}
			if got := first.called(); !slices.Equal(got, test.first) {
				t.Errorf("the first manager got %q, want %q", got, test.first)
			}
			if got := second.called(); len(got) != 0 {
				t.Errorf("the second manager got %q", got)
			}
		})
	}
}

// If the first manager cannot respond, the next one gets the request, and is tried first from then on.
func TestRequestGoesToTheNextManager(t *testing.T) {
	for name, failure := range map[string]error{
		"no leader": wire.FromError(leasehold.Errorf("", leasehold.ErrNotLeader, "", "no leader")),
		"no store":  wire.FromError(leasehold.Errorf("", leasehold.ErrUnavailable, "", "the store is away")),
		"too slow":  status.Error(codes.DeadlineExceeded, "too slow"),
	} {
		t.Run(name, func(t *testing.T) {
			first := start(t, &fake{owners: func() (*leaseholdv1.ListOwnersResponse, error) { return nil, failure }})
			second := start(t, &fake{owners: func() (*leaseholdv1.ListOwnersResponse, error) { return &leaseholdv1.ListOwnersResponse{}, nil }})
			c := dial(t, first.addr, second.addr)
			for range 2 {
				if _, err := c.Owners(t.Context(), "x"); err != nil {
					t.Error(err)
				}
			}
			if got := len(first.called()); got != 1 {
				t.Errorf("the first manager got %d requests, want 1", got)
			}
		})
	}
}

func TestErrors(t *testing.T) {
	if _, err := admin.New(admin.Config{}); !errors.Is(err, leasehold.ErrInvalid) {
		t.Errorf("without managers: %v", err)
	}
	if _, err := admin.New(admin.Config{Managers: []string{"nowhere"}}); !errors.Is(err, leasehold.ErrInvalid) {
		t.Errorf("without a port: %v", err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
	_, err = dial(t, l.Addr().String()).Status(t.Context())
	if want := l.Addr().String() + ": connection refused"; !errors.Is(err, leasehold.ErrUnavailable) || !strings.Contains(err.Error(), want) {
		t.Errorf("without a manager: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := dial(t, l.Addr().String()).Status(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	f := start(t, &fake{owners: func() (*leaseholdv1.ListOwnersResponse, error) {
		return &leaseholdv1.ListOwnersResponse{Owners: []*leaseholdv1.OwnerStatus{{Holder: &leaseholdv1.Holder{Owner: "b"}}}}, nil
	}})
	var unknown *admin.UnknownOwnerError
	_, err = dial(t, f.addr).Drain(t.Context(), "x", "a", admin.OrderOptions{}, false)
	if !errors.As(err, &unknown) || !errors.Is(err, leasehold.ErrNotFound) || !slices.Equal(unknown.Known, []string{"b"}) {
		t.Errorf("an owner that does not exist: %v", err)
	}
}

// A wait continues during an election.
func TestWaitContinuesWithoutALeader(t *testing.T) {
	answers := 0
	f := start(t, &fake{owners: func() (*leaseholdv1.ListOwnersResponse, error) {
		answers++
		o := &leaseholdv1.OwnerStatus{Holder: &leaseholdv1.Holder{Owner: "a"}, State: leaseholdv1.OwnerState_OWNER_STATE_MEMBER, Draining: true}
		if answers == 2 {
			return nil, wire.FromError(leasehold.Errorf("", leasehold.ErrNotLeader, "", "no leader"))
		}
		return &leaseholdv1.ListOwnersResponse{Version: wire.Version, Owners: []*leaseholdv1.OwnerStatus{o}}, nil
	}})
	d, err := dial(t, f.addr).Drain(t.Context(), "x", "a", admin.OrderOptions{}, false)
	if err != nil {
		t.Fatal(err)
	}
	var troubles []error
	if err := d.Wait(t.Context(), func(_ admin.Progress, trouble error) { troubles = append(troubles, trouble) }); err != nil {
		t.Fatal(err)
	}
	if d.Outcome != admin.OutcomeDrained || len(troubles) != 1 || !errors.Is(troubles[0], leasehold.ErrUnavailable) {
		t.Errorf("outcome %s, reports %v", d.Outcome, troubles)
	}
}

// When a manager fails, Watch reports a gap and follows the next one.
func TestWatchFollowsTheNextManager(t *testing.T) {
	event := func(term uint64) *leaseholdv1.WatchResponse {
		return &leaseholdv1.WatchResponse{Event: &leaseholdv1.WatchResponse_Leader{Leader: &leaseholdv1.NotLeader{Term: term}}}
	}
	first := start(t, &fake{watch: func(s grpc.ServerStreamingServer[leaseholdv1.WatchResponse]) error {
		return errors.Join(s.Send(event(1)), status.Error(codes.Unavailable, "gone"))
	}})
	var got []string
	for e, err := range dial(t, first.addr).Watch(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		if got = append(got, e.Type); len(got) == 4 {
			break
		}
	}
	if want := []string{admin.EventLeader, admin.EventGap, admin.EventLeader, admin.EventGap}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	refusing := start(t, &fake{watch: func(grpc.ServerStreamingServer[leaseholdv1.WatchResponse]) error {
		return status.Error(codes.PermissionDenied, "no")
	}})
	for _, err := range dial(t, refusing.addr).Watch(t.Context(), "") {
		if !errors.Is(err, leasehold.ErrDenied) {
			t.Errorf("got %v", err)
		}
	}
}

// TestManager uses a real manager.
func TestManager(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m, err := manager.Start(manager.Config{Store: mem.New(), Listener: l})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close(context.Background()) //nolint:errcheck // the test has ended
	c := dial(t, l.Addr().String())
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()

	created, err := c.CreateNamespace(ctx, admin.Namespace{Name: "presence", Lease: admin.Seconds(4 * time.Second)})
	if err != nil || created.Renew != admin.Seconds(time.Second) || created.Policy != "balanced" {
		t.Fatalf("created %+v: %v", created, err)
	}
	if _, err := c.CreateNamespace(ctx, admin.Namespace{Name: "presence"}); !errors.Is(err, leasehold.ErrExists) {
		t.Errorf("created again: %v", err)
	}
	updated, err := c.UpdateNamespace(ctx, "presence", func(n *admin.Namespace) error { n.MaxOwners = 7; return nil })
	if err != nil || updated.MaxOwners != 7 || updated.Lease != created.Lease {
		t.Errorf("updated %+v: %v", updated, err)
	}
	// Backup waits until the table is loaded.
	saved, err := c.Backup(ctx)
	if err != nil || len(saved.Namespaces) != 1 {
		t.Errorf("backup %+v: %v", saved, err)
	}
	owners, err := c.Owners(ctx, "presence")
	if err != nil || len(owners.Owners) != 0 {
		t.Errorf("owners %+v: %v", owners, err)
	}
	found, err := c.Find(ctx, "presence", leasehold.KeyOf("alice"))
	if err != nil || found.Owner != "" || found.Keys() != leasehold.All {
		t.Errorf("found %+v: %v", found, err)
	}
	if err := c.DeleteNamespace(ctx, "presence"); err != nil {
		t.Error(err)
	}
	if _, err := c.Namespace(ctx, "presence"); !errors.Is(err, leasehold.ErrNotFound) {
		t.Errorf("deleted: %v", err)
	}
	restored, err := c.Restore(ctx, saved, nil)
	if err != nil || !slices.Equal(restored.Restored, []string{"presence"}) {
		t.Errorf("restored %+v: %v", restored, err)
	}
}
