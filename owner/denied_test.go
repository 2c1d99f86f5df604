package owner

import (
	"bytes"
	"context"
	"log/slog"
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

// A porter lets nobody in.
type porter struct {
	leaseholdv1.UnimplementedOwnerServiceServer
	asked atomic.Int64
}

func (p *porter) Hold(grpc.BidiStreamingServer[leaseholdv1.HoldRequest, leaseholdv1.HoldResponse]) error {
	p.asked.Add(1)
	return wire.FromError(leasehold.Errorf("hold", leasehold.ErrDenied, testNamespace, "it may not be called so"))
}

func TestJoinFailsAtOnceIfItIsNotPermitted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		n.serve(leaderAddr, &porter{})
		_, took, err := joinFor(t, time.Minute, n.config("10.0.0.1:8080"))
		wantError(t, err, leasehold.ErrDenied, testNamespace, "it may not be called so")
		if took > time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

// A manager whose access file is older than the leader's keeps nobody from joining.
func TestJoinWhereOneDenies(t *testing.T) {
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

// An owner whose permission is taken away says so once, asks in case it is given
// back, and does not flood the manager meanwhile.
func TestOwnerThatIsNotPermittedAnyMore(t *testing.T) {
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
			t.Error("it holds leases that nobody renews")
		}
		most := int64(2*time.Minute/protocol.DefaultTiming().Renew) + 20
		if asked := p.asked.Load(); asked < 20 || asked > most {
			t.Errorf("it has asked %d times in two minutes, want 20 to %d", asked, most)
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		_ = o.Close(ended) // nobody hears that it leaves
		if said := strings.Count(log.String(), "does not permit"); said != 1 {
			t.Errorf("it says so %d times:\n%s", said, &log)
		}
		stop()
	})
}

// Whoever waits for a leader finds in the log what it waits for, once for each manager.
func TestJoinSaysWhatItWaitsFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		var log bytes.Buffer
		cfg := n.config("10.0.0.1:8080")
		cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
		_, _, err := joinFor(t, time.Minute, cfg)
		wantError(t, err, leasehold.ErrUnavailable)
		if said := strings.Count(log.String(), "has not answered yet"); said != len(cfg.Managers) {
			t.Errorf("it says so %d times, want %d:\n%s", said, len(cfg.Managers), &log)
		}
	})
}
