package owner

import (
	"context"
	"errors"
	"maps"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/manager"
	"github.com/leasehold-dev/leasehold/internal/runtime/statemove"
)

type (
	exporter = func(context.Context, *Export) error
	importer = func(context.Context, *Import) (func(leasehold.Lease), error)
)

// A failure before the target has confirmed loses nothing: the source
// serves the range with all of its state, and logs the reason.
func TestFailedMovesLoseNothing(t *testing.T) {
	broken := errors.New("the disk is full")
	for name, test := range map[string]struct {
		export func(exporter) exporter
		take   func(importer) importer
		source string // in the source's log
		target string // in the target's log
	}{
		"Export fails": {
			export: func(exporter) exporter { return func(context.Context, *Export) error { return broken } },
			source: "Export has failed: the disk is full",
		},
		"Export fails after Stop": {
			export: func(whole exporter) exporter {
				return func(ctx context.Context, out *Export) error { return errors.Join(whole(ctx, out), broken) }
			},
			source: "Export has failed: the disk is full",
		},
		"Export panics": {
			export: func(exporter) exporter { return func(context.Context, *Export) error { panic("oops") } },
			source: "Export has panicked: oops",
		},
		"Export does not stop": {
			export: func(exporter) exporter { return func(context.Context, *Export) error { return nil } },
			source: "without a successful call of Stop",
		},
		"Export stops twice": {
			export: func(exporter) exporter {
				return func(_ context.Context, out *Export) error { return errors.Join(out.Stop(), out.Stop()) }
			},
			source: "Stop was called twice",
		},
		"Export hangs": {
			export: func(exporter) exporter {
				return func(ctx context.Context, _ *Export) error {
					<-ctx.Done()
					time.Sleep(time.Minute)
					return nil
				}
			},
			source: "the exporter of this side sends no records",
		},
		"Export hangs after Stop": {
			export: func(whole exporter) exporter {
				return func(ctx context.Context, out *Export) error {
					err := whole(ctx, out)
					<-ctx.Done()
					return err
				}
			},
			source: "the target has not confirmed within 5s of the stop",
		},
		"Export sends too much": {
			export: func(exporter) exporter {
				return func(_ context.Context, out *Export) error { return out.Send(make([]byte, statemove.MaxRecord+1)) }
			},
			source: "the limit is 4194304",
		},
		"Import fails": {
			take: func(importer) importer {
				return func(context.Context, *Import) (func(leasehold.Lease), error) {
					return nil, leasehold.Errorf("import", leasehold.ErrLimit, "", "no room")
				}
			},
			source: "no room", target: "no room",
		},
		"Import panics": {
			take: func(importer) importer {
				return func(context.Context, *Import) (func(leasehold.Lease), error) { panic("oops") }
			},
			source: "Import has panicked: oops", target: "Import has panicked: oops",
		},
		"Import does not read": {
			take: func(importer) importer {
				return func(context.Context, *Import) (func(leasehold.Lease), error) { return nil, nil }
			},
			source: "transfer incomplete",
		},
		"Import hangs": {
			take: func(importer) importer {
				return func(ctx context.Context, _ *Import) (func(leasehold.Lease), error) {
					<-ctx.Done()
					time.Sleep(time.Minute)
					return nil, ctx.Err()
				}
			},
			source: "the importer of the target reads no records", target: "function=Import",
		},
		"Import does not return": {
			take: func(whole importer) importer {
				return func(ctx context.Context, in *Import) (func(leasehold.Lease), error) {
					install, err := whole(ctx, in)
					<-ctx.Done()
					return install, err
				}
			},
			source: "the target has not confirmed within 5s of the stop",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork(t)
				leader, _ := n.lead(manager.Config{})
				a := n.counts("10.0.0.1:8080", func(c *Config) {
					if test.export != nil {
						c.Mover.Export = test.export(c.Mover.Export)
					}
				})
				crowd := newCrowd(t, a)
				crowd.until(10*time.Second, func() bool { return len(a.has()) == 256 })
				crowd.send()
				b := n.counts("10.0.0.2:8080", func(c *Config) {
					if test.take != nil {
						c.Mover.Import = test.take(c.Mover.Import)
					}
				})
				crowd.servers = append(crowd.servers, b)
				for range 60 {
					time.Sleep(time.Second)
					crowd.send()
				}
				if got := leader.committed(" leaves "); got != 0 {
					t.Errorf("%d losses: %q", got, leader.changes)
				}
				if a.events.count(test.source) == 0 || b.events.count(test.target) == 0 {
					t.Errorf("%q and %q are missing in %q and %q", test.source, test.target, a.events.lines, b.events.lines)
				}
				before := maps.Clone(crowd.want)
				crowd.until(time.Minute, func() bool { // every key has an owner
					return !slices.ContainsFunc(keys(), func(k leasehold.Key) bool { return crowd.want[k] == before[k] })
				})
				if a.events.count("revoked") != 0 || b.events.count("granted") != 0 {
					t.Errorf("events %q and %q", a.events.lines, b.events.lines)
				}
			})
		})
	}
}

// State that has arrived and cannot be installed is lost, and the loss is recorded.
func TestFailedInstallIsLoss(t *testing.T) {
	for name, install := range map[string]func(leasehold.Lease){
		"panics": func(leasehold.Lease) { panic("oops") },
		"hangs":  func(leasehold.Lease) { time.Sleep(time.Minute) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork(t)
				leader, _ := n.lead(manager.Config{})
				a := n.counts("10.0.0.1:8080", asConfigured)
				time.Sleep(time.Second)
				b := n.counts("10.0.0.2:8080", func(c *Config) {
					whole := c.Mover.Import
					c.Mover.Import = func(ctx context.Context, in *Import) (func(leasehold.Lease), error) {
						_, err := whole(ctx, in)
						return install, err
					}
				})
				time.Sleep(100 * time.Second)
				if leader.committed(" moves from ") == 0 || leader.committed(" leaves 10.0.0.2:8080") == 0 {
					t.Errorf("changes %q", leader.changes)
				}
				if b.events.count("state of a range is lost") == 0 {
					t.Errorf("events %q", b.events.lines)
				}
				time.Sleep(100 * time.Second)
				if got := len(a.has()) + len(b.has()); got != 256 {
					t.Errorf("%d of 256 keys have an owner", got)
				}
			})
		})
	}
}

// A cable is a network between owners that can be cut.
type cable struct {
	*network
	mu    sync.Mutex
	conns []net.Conn
}

func (c *cable) dial(ctx context.Context, addr string) (net.Conn, error) {
	conn, err := c.network.dial(ctx, addr)
	if err == nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.conns = append(c.conns, conn)
	}
	return conn, err
}

func (c *cable) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range c.conns {
		_ = conn.Close()
	}
	c.conns = nil
}

// Broken connections between owners delay a move, but do not fail
// it.
func TestMovesSurviveBrokenConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		leader, _ := n.lead(manager.Config{})
		line := &cable{network: n}
		slowly := func(c *Config) {
			c.Mover.DialOptions = []grpc.DialOption{grpc.WithContextDialer(line.dial)}
			whole := c.Mover.Export
			c.Mover.Export = func(ctx context.Context, out *Export) error {
				line.cut()
				time.Sleep(50 * time.Millisecond)
				line.cut()
				return whole(ctx, out)
			}
		}
		a := n.counts("10.0.0.1:8080", slowly)
		crowd := newCrowd(t, a)
		crowd.until(10*time.Second, func() bool { return len(a.has()) == 256 })
		b := n.counts("10.0.0.2:8080", slowly)
		crowd.servers = append(crowd.servers, b)
		crowd.until(time.Minute, func() bool { return len(b.has()) > 80 && len(a.has())+len(b.has()) == 256 })
		if a.events.count("could not be moved") > 0 || leader.committed(" leaves ") > 0 {
			t.Errorf("events %q, changes %q", a.events.lines, leader.changes)
		}
	})
}

// A crash of the target during a move loses nothing.
func TestTargetCrashes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		leader, _ := n.lead(manager.Config{})
		a := n.counts("10.0.0.1:8080", asConfigured)
		crowd := newCrowd(t, a)
		crowd.until(10*time.Second, func() bool { return len(a.has()) == 256 })
		begun := make(chan struct{}, 1000)
		b := n.counts("10.0.0.2:8080", func(c *Config) {
			c.Mover.Import = func(ctx context.Context, _ *Import) (func(leasehold.Lease), error) {
				begun <- struct{}{}
				<-ctx.Done()
				return nil, context.Cause(ctx)
			}
		})
		<-begun
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_ = b.owner.Close(ctx)
		for range 60 {
			time.Sleep(time.Second)
			crowd.send()
		}
		if len(a.has()) != 256 || leader.committed(" leaves ") > 0 {
			t.Errorf("%d keys are left, changes %q", len(a.has()), leader.changes)
		}
	})
}

// Close releases the leases in time although an Export hangs, and its error contains the Export.
func TestCloseWithHangingExport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		leader, _ := n.lead(manager.Config{})
		calm := make(chan struct{})
		a := n.counts("10.0.0.1:8080", func(c *Config) {
			c.Mover.Export = func(context.Context, *Export) error {
				<-calm
				return nil
			}
		})
		time.Sleep(time.Second)
		b := n.counts("10.0.0.2:8080", asConfigured)
		time.Sleep(time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		begun := time.Now()
		err := a.owner.Close(ctx)
		wantError(t, err, leasehold.ErrUnavailable, "Export", "has not returned")
		if took := time.Since(begun); took != 20*time.Second {
			t.Errorf("took %v", took)
		}
		if leader.committed("(left)") == 0 || a.events.count("the move timed out") != 1 {
			t.Errorf("events %q, changes %q", a.events.lines, leader.changes)
		}
		close(calm)
		newCrowd(t, b).until(10*time.Second, func() bool { return len(b.has()) == 256 })
	})
}
