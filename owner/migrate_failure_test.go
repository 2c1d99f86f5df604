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

// Whatever fails before the target has confirmed costs nothing: the range is
// served where it was, with all of its state, and the source's log says why.
func TestFailedMovesCostNothing(t *testing.T) {
	broken := errors.New("the disk is full")
	for name, test := range map[string]struct {
		export  func(exporter) exporter
		take    func(importer) importer
		says    string // in the source's log
		alsoFar string // in the target's log
	}{
		"Export fails": {
			export: func(exporter) exporter { return func(context.Context, *Export) error { return broken } },
			says:   "Export has failed: the disk is full",
		},
		"Export fails after Stop": {
			export: func(whole exporter) exporter {
				return func(ctx context.Context, out *Export) error { return errors.Join(whole(ctx, out), broken) }
			},
			says: "Export has failed: the disk is full",
		},
		"Export panics": {
			export: func(exporter) exporter { return func(context.Context, *Export) error { panic("oops") } },
			says:   "Export has panicked: oops",
		},
		"Export does not stop": {
			export: func(exporter) exporter { return func(context.Context, *Export) error { return nil } },
			says:   "without a call of Stop that succeeded",
		},
		"Export stops twice": {
			export: func(exporter) exporter {
				return func(_ context.Context, out *Export) error { return errors.Join(out.Stop(), out.Stop()) }
			},
			says: "Stop was called before",
		},
		"Export hangs": {
			export: func(exporter) exporter {
				return func(ctx context.Context, _ *Export) error {
					<-ctx.Done()
					time.Sleep(time.Minute)
					return nil
				}
			},
			says: "the exporter of this side sends no records",
		},
		"Export hangs after Stop": {
			export: func(whole exporter) exporter {
				return func(ctx context.Context, out *Export) error {
					err := whole(ctx, out)
					<-ctx.Done()
					return err
				}
			},
			says: "the target has not confirmed within 5s of the stop",
		},
		"Export sends too much": {
			export: func(exporter) exporter {
				return func(_ context.Context, out *Export) error { return out.Send(make([]byte, statemove.MaxRecord+1)) }
			},
			says: "the limit is 4194304",
		},
		"Import fails": {
			take: func(importer) importer {
				return func(context.Context, *Import) (func(leasehold.Lease), error) {
					return nil, leasehold.Errorf("import", leasehold.ErrLimit, "", "no room")
				}
			},
			says: "no room", alsoFar: "no room",
		},
		"Import panics": {
			take: func(importer) importer {
				return func(context.Context, *Import) (func(leasehold.Lease), error) { panic("oops") }
			},
			says: "Import has panicked: oops", alsoFar: "Import has panicked: oops",
		},
		"Import does not read": {
			take: func(importer) importer {
				return func(context.Context, *Import) (func(leasehold.Lease), error) { return nil, nil }
			},
			says: "transfer incomplete",
		},
		"Import hangs": {
			take: func(importer) importer {
				return func(ctx context.Context, _ *Import) (func(leasehold.Lease), error) {
					<-ctx.Done()
					time.Sleep(time.Minute)
					return nil, ctx.Err()
				}
			},
			says: "the importer of the target reads no records", alsoFar: "function=Import",
		},
		"Import does not return": {
			take: func(whole importer) importer {
				return func(ctx context.Context, in *Import) (func(leasehold.Lease), error) {
					install, err := whole(ctx, in)
					<-ctx.Done()
					return install, err
				}
			},
			says: "the target has not confirmed within 5s of the stop",
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
				crowd.ask()
				b := n.counts("10.0.0.2:8080", func(c *Config) {
					if test.take != nil {
						c.Mover.Import = test.take(c.Mover.Import)
					}
				})
				crowd.servers = append(crowd.servers, b)
				for range 60 {
					time.Sleep(time.Second)
					crowd.ask()
				}
				if got := leader.committed(" leaves "); got != 0 {
					t.Errorf("%d losses: %q", got, leader.changes)
				}
				if a.told.count(test.says) == 0 || b.told.count(test.alsoFar) == 0 {
					t.Errorf("not told %q and %q: %q and %q", test.says, test.alsoFar, a.told.lines, b.told.lines)
				}
				before := maps.Clone(crowd.want)
				crowd.until(time.Minute, func() bool { // every key is served again
					return !slices.ContainsFunc(keys(), func(k leasehold.Key) bool { return crowd.want[k] == before[k] })
				})
				if a.told.count("revoked") != 0 || b.told.count("granted") != 0 {
					t.Errorf("told %q and %q", a.told.lines, b.told.lines)
				}
			})
		})
	}
}

// State that has come and cannot be put in its place is lost, and that is said.
func TestFailedInstallIsALoss(t *testing.T) {
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
				if b.told.count("the state of a range is lost") == 0 {
					t.Errorf("told %q", b.told.lines)
				}
				time.Sleep(100 * time.Second)
				if got := len(a.has()) + len(b.has()); got != 256 {
					t.Errorf("%d of 256 keys have an owner", got)
				}
			})
		})
	}
}

// A cable is between owners, and can be cut.
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

// Connections between owners that break time and again delay a move, and that
// is all.
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
		if a.told.count("could not be moved") > 0 || leader.committed(" leaves ") > 0 {
			t.Errorf("told %q, changes %q", a.told.lines, leader.changes)
		}
	})
}

// A target that dies in the middle of it costs the source nothing.
func TestTargetDies(t *testing.T) {
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
			crowd.ask()
		}
		if len(a.has()) != 256 || leader.committed(" leaves ") > 0 {
			t.Errorf("%d keys are left, changes %q", len(a.has()), leader.changes)
		}
	})
}

// Close keeps time for the goodbye although an Export hangs, and names it.
func TestCloseWithAnExportThatHangs(t *testing.T) {
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
			t.Errorf("it took %v", took)
		}
		if leader.committed("(left)") == 0 || a.told.count("there was no time to move it") != 1 {
			t.Errorf("told %q, changes %q", a.told.lines, leader.changes)
		}
		close(calm)
		newCrowd(t, b).until(10*time.Second, func() bool { return len(b.has()) == 256 })
	})
}
