package owner

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"

	"github.com/leasehold-dev/leasehold"
	machine "github.com/leasehold-dev/leasehold/internal/core/machine/manager"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// A porter denies access to every owner.
type porter struct {
	leaseholdv1.UnimplementedOwnerServiceServer
	requests atomic.Int64
}

func (p *porter) Hold(grpc.BidiStreamingServer[leaseholdv1.HoldRequest, leaseholdv1.HoldResponse]) error {
	p.requests.Add(1)
	return wire.FromError(leasehold.Errorf("hold", leasehold.ErrDenied, testNamespace, "it may not be called so"))
}

func TestJoinWithoutPermissionFailsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		n.serve(leaderAddr, &porter{})
		_, took, err := joinFor(t, time.Minute, n.config("10.0.0.1:8080"))
		wantError(t, err, leasehold.ErrDenied, testNamespace, "it may not be called so")
		if took > time.Second {
			t.Errorf("took %v", took)
		}
	})
}

// One manager with an older access file does not prevent Join.
func TestJoinIfOneManagerDenies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		_, stop := n.lead(machine.Config{Timing: protocol.DefaultTiming()})
		n.serve("standby:1", &porter{})
		for _, managers := range [][]string{{"standby:1", leaderAddr}, {leaderAddr, "standby:1"}, {"nobody:1", "standby:1", leaderAddr}} {
			cfg := n.config("10.0.0.1:8080")
			cfg.Managers = managers
			o, _, err := joinFor(t, time.Minute, cfg)
			if err != nil {
				t.Fatalf("%v: %v", managers, err)
			}
			_ = o.Close(t.Context())
		}
		stop()
	})
}

// slow is a resolver whose records of hosts arrive late.
type slow struct{ addrs []string }

func (slow) LookupSRV(context.Context, string, string, string) (string, []*net.SRV, error) {
	return "", nil, nil
}

func (s slow) LookupHost(context.Context, string) ([]string, error) {
	time.Sleep(2 * time.Second) // of a bubble
	return s.addrs, nil
}

// A denial by one manager is not final while others are being resolved; it is when the name has no records.
func TestDenialBeforeNamesAreResolved(t *testing.T) {
	for _, addrs := range [][]string{{"leader"}, nil} {
		synctest.Test(t, func(t *testing.T) {
			n := newNetwork(t)
			_, stop := n.lead(machine.Config{Timing: protocol.DefaultTiming()})
			n.serve("standby:1", &porter{})
			cfg := n.config("10.0.0.1:8080")
			cfg.Managers, cfg.Resolver = []string{"standby:1", "dns:///managers:1"}, slow{addrs}
			o, _, err := joinFor(t, time.Minute, cfg)
			if addrs == nil {
				wantError(t, err, leasehold.ErrDenied)
			} else if err != nil {
				t.Fatal(err)
			} else {
				_ = o.Close(t.Context())
			}
			stop()
		})
	}
}

// An owner whose permission is revoked logs that once and retries at a bounded
// rate.
func TestPermissionRevokedAfterJoin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		_, stop := n.lead(machine.Config{Timing: protocol.DefaultTiming()})
		var log bytes.Buffer
		cfg := n.config("10.0.0.1:8080")
		cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
		o, _, err := joinFor(t, time.Minute, cfg)
		if err != nil {
			t.Fatal(err)
		}
		stop()
		p := &porter{}
		stop = n.serve(leaderAddr, p)
		time.Sleep(2 * time.Minute)
		if _, held := o.Check(1); held {
			t.Error("the owner holds leases without renewals")
		}
		most := int64(2*time.Minute/protocol.DefaultTiming().Renew) + 20
		if requests := p.requests.Load(); requests < 20 || requests > most {
			t.Errorf("%d requests in two minutes, want 20 to %d", requests, most)
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		_ = o.Close(ended) // without a leader
		if said := strings.Count(log.String(), "does not permit"); said != 1 {
			t.Errorf("%d log lines about the denial:\n%s", said, &log)
		}
		stop()
	})
}

// While Join waits, the log contains one line: each manager with its error, and the advice.
func TestJoinLogsSilentManagers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		var log bytes.Buffer
		cfg := n.config("10.0.0.1:8080")
		cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
		_, _, err := joinFor(t, time.Minute, cfg)
		wantError(t, err, leasehold.ErrUnavailable)
		if strings.Count(log.String(), "\n") != 1 || !strings.Contains(log.String(), "no manager answers") {
			t.Errorf("want one line:\n%s", &log)
		}
		for _, want := range append(cfg.Managers, "advice=") {
			if !strings.Contains(log.String(), want) {
				t.Errorf("no %q:\n%s", want, &log)
			}
		}
	})
}
