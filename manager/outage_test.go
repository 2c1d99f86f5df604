package manager_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"

	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	"github.com/leasehold-dev/leasehold/leaseholdtest"
	"github.com/leasehold-dev/leasehold/owner"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// lines is a log that may be read while it is written.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) has(part string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.text.String(), part)
}

// The only owner of a namespace is partitioned: it stays in the table, is shown as suspended, and the start and
// end of the outage are logged.
func TestOutageIsShown(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		var log lines
		c.logs = slog.NewTextHandler(&log, nil)
		c.start("m1")
		c.create("m1", pool())
		var cut atomic.Bool
		cfg := c.ownerConfig("a")
		cfg.DialOptions = append(cfg.DialOptions, grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) {
			if cut.Load() {
				return nil, errors.New("cut off")
			}
			conn, err := c.dial(ctx, addr)
			return &cutConn{conn, &cut}, err
		}))
		a, err := owner.Join(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer c.leave(a)
		suspended := func() bool {
			answer, err := c.admin("m1").ListOwners(t.Context(), &leaseholdv1.ListOwnersRequest{Version: wire.Version, Namespace: "pool"})
			if err != nil || len(answer.GetOwners()) != 1 {
				t.Fatalf("%v, %v", answer, err)
			}
			return answer.GetOwners()[0].GetSuspended()
		}
		eventually(t, time.Minute, "it has all keys", func() bool { return complete(a) })
		if suspended() {
			t.Error("a connected owner is shown as suspended")
		}
		cut.Store(true)
		time.Sleep(30 * time.Second)
		if !suspended() || !log.has("level=WARN msg=\"outage: 1 owner silent for longer than a lease") {
			t.Errorf("suspended: %t; the log has %s", suspended(), &log.text)
		}
		cut.Store(false)
		eventually(t, time.Minute, "it has all keys again", func() bool { return complete(a) })
		if suspended() || !log.has("level=INFO msg=\"end of the outage: an owner has sent a request") {
			t.Errorf("suspended: %t; the log has %s", suspended(), &log.text)
		}
	})
}

type cutConn struct {
	net.Conn
	cut *atomic.Bool
}

func (c *cutConn) Write(b []byte) (int, error) {
	if c.cut.Load() {
		return 0, errors.Join(errors.New("cut off"), c.Close()) // as in a real connection, reads fail, too
	}
	return c.Conn.Write(b)
}

func TestOutageMetrics(t *testing.T) {
	r := prometheus.NewRegistry()
	cfg := leaseholdtest.Config{Metrics: func(string) prometheus.Registerer { return r }}
	leaseholdtest.Run(t, cfg, func(t *testing.T, c *leaseholdtest.Cluster) {
		n := c.Node("a")
		n.Join(owner.Config{})
		c.Settle()
		const owners, outages = `leasehold_manager_owners_suspended{namespace="test"}`, `leasehold_manager_outages_total{namespace="test"}`
		figures(t, scraped(t, r), map[string]float64{owners: 0, outages: 0})
		n.Cut()
		c.Advance(20 * time.Second)
		figures(t, scraped(t, r), map[string]float64{owners: 1, outages: 1})
		n.Heal()
		c.Advance(20 * time.Second)
		figures(t, scraped(t, r), map[string]float64{owners: 0, outages: 1})
	})
}
