package managerdns_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/runtime/managerdns"
)

// A zone is a resolver with records in memory: addresses by host, and "host:port" by service.
type zone struct {
	mu      sync.Mutex
	records map[string][]string
	queries int
	down    bool
}

var errNoServer = errors.New("no DNS server replies")

func (z *zone) set(name string, records ...string) {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.records[name] = records
}

func (z *zone) fail(down bool) {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.down = down
}

func (z *zone) count() int {
	z.mu.Lock()
	defer z.mu.Unlock()
	return z.queries
}

func (z *zone) LookupHost(_ context.Context, host string) ([]string, error) {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.queries++
	if z.down {
		return nil, errNoServer
	}
	return z.records[host], nil // not a copy: the caller must not modify it
}

func (z *zone) LookupSRV(ctx context.Context, service, proto, name string) (string, []*net.SRV, error) {
	if service != "" || proto != "" {
		return "", nil, fmt.Errorf("service %q, proto %q: want the whole name", service, proto)
	}
	records, err := z.LookupHost(ctx, name)
	var out []*net.SRV
	for _, r := range records {
		var port uint16
		host, text, _ := net.SplitHostPort(r)
		_, _ = fmt.Sscan(text, &port)
		out = append(out, &net.SRV{Target: host + ".", Port: port})
	}
	return name, out, err
}

// A client has the addresses of a group that runs until the end of the test.
type client struct {
	*managerdns.Group
	mu    sync.Mutex
	addrs []string
	calls int
	fails []string // targets
}

func run(t *testing.T, z *zone, targets ...string) *client {
	t.Helper()
	c := &client{}
	var err error
	c.Group, err = managerdns.New(managerdns.Config{Targets: targets, Resolver: z, Changed: func(addrs []string) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.addrs = addrs
		c.calls++
	}, Failed: func(target string, why error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.fails = append(c.fails, target); why == nil {
			t.Error("a failure without a reason")
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { c.Run(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
	synctest.Wait()
	return c
}

func (c *client) want(t *testing.T, calls int, addrs ...string) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if !slices.Equal(c.addrs, addrs) || c.calls != calls {
		t.Errorf("addresses %v after %d changes, want %v after %d", c.addrs, c.calls, addrs, calls)
	}
}

func elapse(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// All managers are replaced one by one.
func TestRecordsAreFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		z := &zone{records: map[string][]string{}}
		z.set("managers", "10.0.0.2", "10.0.0.1", "fd00::1")
		z.set("_leasehold._tcp.example", "m1.example:7400", "m2.example:7401")
		c := run(t, z, "dns:///managers:7400", "srv:///_leasehold._tcp.example", "m9:7400", "10.0.0.1:7400")
		c.want(t, 1, "10.0.0.1:7400", "10.0.0.2:7400", "[fd00::1]:7400", "m1.example:7400", "m2.example:7401", "m9:7400")
		z.set("managers", "10.0.0.3")
		elapse(30 * time.Second)
		c.want(t, 2, "10.0.0.1:7400", "10.0.0.3:7400", "m1.example:7400", "m2.example:7401", "m9:7400")
		z.set("_leasehold._tcp.example", "m3.example:7400")
		elapse(30 * time.Second)
		c.want(t, 3, "10.0.0.1:7400", "10.0.0.3:7400", "m3.example:7400", "m9:7400")
		elapse(time.Hour)
		c.want(t, 3, "10.0.0.1:7400", "10.0.0.3:7400", "m3.example:7400", "m9:7400")
	})
}

// After a failed connection the names are resolved again, at a limited rate with jitter.
func TestRefresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		z := &zone{records: map[string][]string{}}
		z.set("managers", "10.0.0.1")
		c := run(t, z, "dns:///managers:7400")
		elapse(5 * time.Second)
		z.set("managers", "10.0.0.2")
		c.Refresh()
		elapse(2 * time.Second)
		c.want(t, 2, "10.0.0.2:7400")
		before := z.count()
		broken := func(d time.Duration) {
			for end := time.Now().Add(d); time.Now().Before(end); elapse(100 * time.Millisecond) {
				c.Refresh()
			}
		}
		broken(time.Minute)
		if n := z.count() - before; n < 4 || n > 7 {
			t.Errorf("%d queries in a minute of failed connections, want them after 2, 4, 8 and 15 s and jitter", n)
		}
		elapse(time.Minute) // connections do not fail: the limit starts again
		before = z.count()
		broken(8 * time.Second)
		if n := z.count() - before; n < 1 {
			t.Error("no query in 8 s of failed connections")
		}
	})
}

// Many clients have lost the same manager: they do not resolve at the same time.
func TestJitterAfterFailedConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		z := &zone{records: map[string][]string{"managers": {"10.0.0.1"}}}
		const clients = 100
		var all []*client
		for range clients {
			all = append(all, run(t, z, "dns:///managers:7400"))
		}
		elapse(5 * time.Second)
		before := z.count()
		for _, c := range all {
			c.Refresh()
		}
		elapse(time.Second)
		if n := z.count() - before; n < clients/4 || n > 3*clients/4 {
			t.Errorf("%d of %d clients have resolved after half of the jitter", n, clients)
		}
		elapse(time.Second)
		if n := z.count() - before; n != clients {
			t.Errorf("%d of %d clients have resolved after the jitter", n, clients)
		}
	})
}

// Records without a valid address are ignored: a target "." means that the service does not exist.
func TestInvalidRecordsAreIgnored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		z := &zone{records: map[string][]string{"_leasehold._tcp.example": {":7400", "m 1:7400", "m2:0"}}}
		c := run(t, z, "srv:///_leasehold._tcp.example")
		if c.want(t, 0); len(c.fails) != 1 {
			t.Errorf("failed: %v", c.fails)
		}
		z.set("_leasehold._tcp.example", ":7400", "m1:7400")
		elapse(2 * time.Second)
		c.want(t, 1, "m1:7400")
	})
}

// The log has one line for each cause.
func TestLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		z := &zone{records: map[string][]string{}, down: true}
		for i := range 65 {
			z.records["managers"] = append(z.records["managers"], fmt.Sprintf("10.0.0.%d", i))
		}
		var log bytes.Buffer
		cfg := managerdns.Config{Targets: []string{"dns:///managers:7400"}, Resolver: z, Changed: func([]string) {}}
		cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
		g, err := managerdns.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		go g.Run(ctx)
		elapse(5 * time.Second)
		z.fail(false)
		elapse(5 * time.Minute)
		z.fail(true)
		elapse(5 * time.Minute)
		cancel()
		synctest.Wait()
		var got []string
		for line := range strings.Lines(log.String()) {
			_, text, _ := strings.Cut(line, `msg="`)
			text, _, _ = strings.Cut(text, `"`)
			got = append(got, text)
		}
		want := []string{
			"managers cannot be resolved", "addresses of managers resolved", "too many addresses of managers: the rest is ignored",
			"managers cannot be resolved: the last addresses are used",
		}
		if !slices.Equal(got, want) {
			t.Errorf("the log has %q, want %q", got, want)
		}
	})
}

// A failure of DNS keeps the addresses; without any, the names are resolved soon again.
func TestFailureOfDNS(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		z := &zone{records: map[string][]string{}, down: true}
		c := run(t, z, "dns:///managers:7400", "m1:7400")
		if c.want(t, 1, "m1:7400"); !slices.Equal(c.fails, []string{"dns:///managers:7400"}) {
			t.Errorf("failed: %v", c.fails)
		}
		z.set("managers", "10.0.0.1")
		z.fail(false)
		elapse(2 * time.Second)
		c.want(t, 2, "10.0.0.1:7400", "m1:7400")
		z.fail(true)
		elapse(time.Hour)
		c.want(t, 2, "10.0.0.1:7400", "m1:7400")
		z.fail(false)
		z.set("managers") // no records: for example no pod of a headless service is ready
		elapse(time.Hour)
		c.want(t, 2, "10.0.0.1:7400", "m1:7400")
	})
}

// Clients do not resolve at the same time.
func TestJitter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		z := &zone{records: map[string][]string{"managers": {"10.0.0.1"}}}
		const clients = 100
		for range clients {
			run(t, z, "dns:///managers:7400")
		}
		elapse(15 * time.Second)
		if n := z.count(); n > clients+5 {
			t.Errorf("%d queries in the first 15 s, want one per client", n)
		}
		elapse(7500 * time.Millisecond)
		if n := z.count() - clients; n < clients/4 || n > 3*clients/4 {
			t.Errorf("%d of %d clients have resolved after half of the jitter", n, clients)
		}
	})
}

// Addresses need no resolver, and no goroutine.
func TestAddressesAreNotResolved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		z := &zone{down: true}
		c := run(t, z, "m1:7400", "127.0.0.1:7400")
		elapse(time.Hour)
		if c.want(t, 1, "127.0.0.1:7400", "m1:7400"); z.count() > 0 {
			t.Errorf("%d queries", z.count())
		}
	})
}

func TestInvalidTargets(t *testing.T) {
	for text, want := range map[string]string{
		"":                            "an address is missing",
		"m1":                          "want host:port",
		"dns://managers:7400":         "three slashes",
		"dns://8.8.8.8/managers:7400": "three slashes",
		"dns:///managers":             "want host:port",
		"dns:///:7400":                "the host is missing",
		"srv://_leasehold._tcp.x":     "three slashes",
		"srv:///leasehold.example":    "srv:///_leasehold._tcp.example.org",
		"srv:///_leasehold._tcp.":     "srv:///_leasehold._tcp.example.org",
		"srv:///_a._tcp.b c":          "srv:///_leasehold._tcp.example.org",
		"xds:///managers":             "want host:port, dns:///host:port",
		"dns:///managers:7400":        "",
		"srv:///_leasehold._tcp.a.b":  "",
		"[::1]:7400":                  "",
	} {
		err := managerdns.Check(text, "m1:7400")
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
		if _, failed := managerdns.New(managerdns.Config{Targets: []string{text}}); (failed != nil) != (err != nil) ||
			failed != nil && leasehold.KindOf(failed) != leasehold.ErrInvalid {
			t.Errorf("%q: New returns %v", text, failed)
		}
	}
}
