package death

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/table"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// A manager replies to the n-th call, from 1.
type manager func(n int, r *leaseholdv1.ReportDeathRequest) (*leaseholdv1.ReportDeathResponse, error)

// A server is a manager with its calls.
type server struct {
	leaseholdv1.UnimplementedOwnerServiceServer
	answer   manager
	calls    atomic.Int32
	listener *bufconn.Listener
}

func (s *server) ReportDeath(_ context.Context, r *leaseholdv1.ReportDeathRequest) (*leaseholdv1.ReportDeathResponse, error) {
	return s.answer(int(s.calls.Add(1)), r)
}

// old is a manager of a version without the method.
type old struct {
	leaseholdv1.UnimplementedOwnerServiceServer
}

// A group is managers by address; others are unreachable.
type group map[string]*server

func newGroup(t *testing.T, managers map[string]manager) group {
	g := make(group)
	for addr, m := range managers {
		s := &server{answer: m, listener: bufconn.Listen(1 << 16)}
		g[addr] = s
		served := grpc.NewServer()
		if m == nil {
			leaseholdv1.RegisterOwnerServiceServer(served, old{})
		} else {
			leaseholdv1.RegisterOwnerServiceServer(served, s)
		}
		done := make(chan struct{})
		go func() { defer close(done); _ = served.Serve(s.listener) }()
		t.Cleanup(func() { served.Stop(); <-done })
	}
	return g
}

func (g group) options() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) {
			if s := g[addr]; s != nil {
				return s.listener.DialContext(ctx)
			}
			return nil, errors.New("unreachable")
		}),
	}
}

func (g group) report(ctx context.Context, managers ...string) error {
	_, err := Report(ctx, managers, g.options(), notice())
	return err
}

func notice() *Notice {
	return &Notice{Namespace: "sessions", Owner: "ann", Session: leasehold.Session{1}, Token: table.DeathToken{7}}
}

func outcome(o leaseholdv1.DeathOutcome) (*leaseholdv1.ReportDeathResponse, error) {
	return &leaseholdv1.ReportDeathResponse{Version: wire.Version, Kind: &leaseholdv1.ReportDeathResponse_Outcome{Outcome: o}}, nil
}

func acknowledges(int, *leaseholdv1.ReportDeathRequest) (*leaseholdv1.ReportDeathResponse, error) {
	return outcome(leaseholdv1.DeathOutcome_DEATH_OUTCOME_RECORDED)
}

func denies(int, *leaseholdv1.ReportDeathRequest) (*leaseholdv1.ReportDeathResponse, error) {
	return nil, wire.FromError(leasehold.Errorf("report death", leasehold.ErrDenied, "ann", "wrong token"))
}

func redirects(to string) manager {
	return func(int, *leaseholdv1.ReportDeathRequest) (*leaseholdv1.ReportDeathResponse, error) {
		return &leaseholdv1.ReportDeathResponse{Kind: &leaseholdv1.ReportDeathResponse_NotLeader{NotLeader: &leaseholdv1.NotLeader{Leader: to}}}, nil
	}
}

// after fails a number of calls before it replies.
func after(failures int, then manager) manager {
	return func(n int, r *leaseholdv1.ReportDeathRequest) (*leaseholdv1.ReportDeathResponse, error) {
		if n <= failures {
			return nil, status.Error(codes.Unavailable, "no leader")
		}
		return then(n, r)
	}
}

// upgraded does not support the first notices.
func upgraded(n int, r *leaseholdv1.ReportDeathRequest) (*leaseholdv1.ReportDeathResponse, error) {
	if n <= 3 {
		return nil, status.Error(codes.Unimplemented, "unknown method")
	}
	return acknowledges(n, r)
}

// afterRedirects leads after another manager.
func afterRedirects(calls int, to string, then manager) manager {
	return func(n int, r *leaseholdv1.ReportDeathRequest) (*leaseholdv1.ReportDeathResponse, error) {
		if n <= calls {
			return redirects(to)(n, r)
		}
		return then(n, r)
	}
}

// A leader that does not have the session acknowledges without an effect.
func TestOutcome(t *testing.T) {
	for o, want := range map[leaseholdv1.DeathOutcome]bool{
		leaseholdv1.DeathOutcome_DEATH_OUTCOME_RECORDED: true, leaseholdv1.DeathOutcome_DEATH_OUTCOME_UNKNOWN_SESSION: false,
	} {
		g := newGroup(t, map[string]manager{"a": func(int, *leaseholdv1.ReportDeathRequest) (*leaseholdv1.ReportDeathResponse, error) {
			return outcome(o)
		}})
		if recorded, err := Report(t.Context(), []string{"a"}, g.options(), notice()); recorded != want || err != nil {
			t.Errorf("%v: recorded %v, %v", o, recorded, err)
		}
	}
}

func TestReport(t *testing.T) {
	for _, test := range []struct {
		name     string
		managers map[string]manager
		listed   []string
		want     error
	}{
		{"the leader acknowledges", map[string]manager{"a": acknowledges}, []string{"a"}, nil},
		{"one of three leads", map[string]manager{"a": redirects("b"), "b": acknowledges, "c": redirects("")}, []string{"a", "b", "c"}, nil},
		{"some are unreachable", map[string]manager{"b": acknowledges}, []string{"a", "b", "c"}, nil},
		{"the leader is not listed", map[string]manager{"a": redirects("x"), "x": acknowledges}, []string{"a"}, nil},
		{"a standby becomes leader", map[string]manager{"a": after(3, acknowledges)}, []string{"a"}, nil},
		{"one manager denies, another leads", map[string]manager{"a": denies, "b": after(2, acknowledges)}, []string{"a", "b"}, nil},
		{"one manager is older, another leads", map[string]manager{"a": nil, "b": after(2, acknowledges)}, []string{"a", "b"}, nil},
		{"the leader denies", map[string]manager{"a": denies, "b": redirects("a")}, []string{"a", "b"}, leasehold.ErrDenied},
		{"the leader is older until its upgrade", map[string]manager{"a": upgraded, "b": redirects("a")}, []string{"a", "b"}, nil},
		{"the leader is older until another leads", map[string]manager{"a": nil, "b": afterRedirects(3, "a", acknowledges)}, []string{"a", "b"}, nil},
		{"all are older", map[string]manager{"a": nil, "b": nil}, []string{"a", "b"}, leasehold.ErrStale},
		{"a manager is of a later version", map[string]manager{"a": func(int, *leaseholdv1.ReportDeathRequest) (*leaseholdv1.ReportDeathResponse, error) {
			return &leaseholdv1.ReportDeathResponse{}, nil
		}}, []string{"a"}, leasehold.ErrStale},
	} {
		t.Run(test.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			if err := newGroup(t, test.managers).report(ctx, test.listed...); !errors.Is(err, test.want) {
				t.Errorf("error %v, want %v", err, test.want)
			}
		})
	}
}

// A report without a reply ends with its context, and says why.
func TestReportEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	g := newGroup(t, map[string]manager{"a": func(n int, _ *leaseholdv1.ReportDeathRequest) (*leaseholdv1.ReportDeathResponse, error) {
		if n == 3 {
			cancel()
		}
		return nil, status.Error(codes.Unavailable, "no leader")
	}})
	if err := g.report(ctx, "a"); !errors.Is(err, leasehold.ErrUnavailable) {
		t.Errorf("error %v, want ErrUnavailable", err)
	}
	if n := g["a"].calls.Load(); n != 3 {
		t.Errorf("%d calls, want 3", n)
	}
}

// Names of managers are resolved.
func TestReportResolvesNames(t *testing.T) {
	g := newGroup(t, map[string]manager{"127.0.0.1:7400": acknowledges, "[::1]:7400": acknowledges})
	if err := g.report(t.Context(), "dns:///localhost:7400"); err != nil {
		t.Error(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := g.report(ended, "dns:///nothing.invalid:7400"); !errors.Is(err, leasehold.ErrUnavailable) {
		t.Errorf("error %v, want ErrUnavailable", err)
	}
}

// Redirects to ever new leaders do not start any number of calls.
func TestReportBoundsRedirects(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	r := &report{called: make(map[string]error), budget: 1 + maxUnlisted, options: group{}.options(), request: wire.FromDeathNotice(notice())}
	for i := range 3 * maxUnlisted {
		r.begin(ctx, string(rune('A'+i)))
	}
	cancel()
	r.running.Wait()
	if n := len(r.called); n != 1+maxUnlisted {
		t.Errorf("%d managers were called, want %d", n, 1+maxUnlisted)
	}
}

func TestReportRejectsInvalidNotices(t *testing.T) {
	for _, n := range []*Notice{{}, {Namespace: "sessions", Owner: "ann", Session: leasehold.Session{1}}, {Namespace: "sessions", Owner: "ann", Token: table.DeathToken{1}}} {
		if _, err := Report(t.Context(), []string{"a"}, nil, n); !errors.Is(err, leasehold.ErrInvalid) {
			t.Errorf("%v: error %v, want ErrInvalid", n, err)
		}
	}
	if _, err := Report(t.Context(), nil, nil, notice()); !errors.Is(err, leasehold.ErrInvalid) {
		t.Errorf("without managers: error %v, want ErrInvalid", err)
	}
}

func TestRequest(t *testing.T) {
	var got *leaseholdv1.ReportDeathRequest
	g := newGroup(t, map[string]manager{"a": func(n int, r *leaseholdv1.ReportDeathRequest) (*leaseholdv1.ReportDeathResponse, error) {
		got = r
		return acknowledges(n, r)
	}})
	if err := g.report(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	n, err := wire.ToDeathNotice(got)
	if err != nil || *n != *notice() || got.GetVersion() != wire.Version {
		t.Errorf("the manager received %v (%v) in version %d, want %v in version %d", n, err, got.GetVersion(), notice(), wire.Version)
	}
}
