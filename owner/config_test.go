package owner

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/runtime/address"
)

func TestInvalidConfig(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*Config)
		text   string
	}{
		{"no namespace", func(c *Config) { c.Namespace = "" }, "namespace"},
		{"bad namespace", func(c *Config) { c.Namespace = "Presence" }, "use a-z"},
		{"no managers", func(c *Config) { c.Managers = nil }, "Managers has 0 addresses"},
		{"too many managers", func(c *Config) { c.Managers = make([]string, 65) }, "65"},
		{"manager without port", func(c *Config) { c.Managers = []string{"manager"} }, "Managers: want host:port, such as manager-1:7400"},
		{"no addr", func(c *Config) { c.Addr = "" }, "Addr: an address is missing"},
		{"addr without port", func(c *Config) { c.Addr = "10.0.0.1" }, "Addr: want host:port, such as 10.0.0.1:8080"},
		{"addr without host", func(c *Config) { c.Addr = ":8080" }, "is not reachable for callers"},
		{"wildcard addr", func(c *Config) { c.Addr = "0.0.0.0:8080" }, "is not reachable for callers"},
		{"wildcard addr, IPv6", func(c *Config) { c.Addr = "[::]:8080" }, "is not reachable for callers"},
		{"port 0", func(c *Config) { c.Addr = "10.0.0.1:0" }, `the port is "0"`},
		{"port by name", func(c *Config) { c.Addr = "10.0.0.1:http" }, `the port is "http"`},
		{"long addr", func(c *Config) { c.Addr = strings.Repeat("a", 300) + ":1" }, "want at most 256"},
		{"name that is not printable", func(c *Config) { c.Name = "a\nb" }, "not printable"},
		{"long name by default", func(c *Config) { c.Addr = strings.Repeat("a", 200) + ":1" }, "owner id"},
		{"mover without Import", func(c *Config) { c.Mover = &Mover{Export: noExport} }, "Export and Import are required"},
		{"mover without Export", func(c *Config) { c.Mover = &Mover{Import: noImport} }, "Export and Import are required"},
		{"mover in plaintext", func(c *Config) {
			c.Mover, c.Credentials = noMover(), insecure.NewCredentials()
		}, "Mover: Credentials and ServerCredentials are required"},
		{"mover with invalid address", func(c *Config) { c.Mover = noMover(); c.Mover.Advertise = "here" }, "Mover.Advertise: want host:port"},
		{"mover on an address of another computer", func(c *Config) { c.Mover = noMover(); c.Mover.Listen = "192.0.2.1:1" }, "Mover cannot listen: set Listen"},
		{"mover on a loopback address", func(c *Config) {
			c.Mover = noMover()
			c.Mover.Listen = "127.0.0.1:0"
		}, "Mover: the listener's address 127.0.0.1:"},
		{"mover on a loopback listener", func(c *Config) {
			c.Mover = noMover()
			c.Mover.Listener = onLoopback{bufconn.Listen(1)}
		}, `set Listen to ":7000", or Advertise`},
		{"mover with negative timeout", func(c *Config) { c.Mover = noMover(); c.Mover.StopTimeout = -1 }, "StopTimeout is -1ns"},
		{"mover on a listener without host:port", func(c *Config) { c.Mover = noMover(); c.Mover.Listener = bufconn.Listen(1) }, "Mover: set Advertise"},
		{"negative promise", func(c *Config) { c.MaxPromise = -1 }, "MaxPromise is -1ns"},
		{"promises with a mover", func(c *Config) { c.MaxPromise, c.WaitForPredecessor, c.Mover = 1, true, noMover() }, "MaxPromise and Mover are both set"},
		{"promises without waiting for the predecessor", func(c *Config) { c.MaxPromise = 1 }, "MaxPromise requires WaitForPredecessor"},
		{"remote managers in plaintext", func(c *Config) { c.Managers = append(c.Managers, "10.0.0.2:7400") }, "10.0.0.2:7400 is not a loopback address, and the connection would be plaintext: set Credentials, from package secure"},
		{"mover on all interfaces in plaintext", func(c *Config) { c.Mover = noMover(); c.Mover.Listen = ":0" }, "connections would be plaintext: set Credentials and ServerCredentials"},
		{"negative weight", func(c *Config) { c.Weight = -1 }, "weight"},
	} {
		t.Run(test.name, func(t *testing.T) {
			cfg := Config{Namespace: testNamespace, Managers: []string{"127.0.0.1:7400"}, Addr: "10.0.0.1:8080"}
			test.change(&cfg)
			_, err := Join(t.Context(), cfg)
			wantError(t, err, leasehold.ErrInvalid, test.text)
		})
	}
}

func noExport(context.Context, *Export) error { return nil }

func noImport(context.Context, *Import) (func(leasehold.Lease), error) { return nil, nil }

func noMover() *Mover { return &Mover{Export: noExport, Import: noImport} }

// The Mover advertises an address that other owners can reach.
func TestMoverAdvertises(t *testing.T) {
	for _, test := range []struct {
		addr, listen string
		everywhere   bool
		advertises   string
	}{
		{"127.0.0.2:8080", "", false, "127.0.0.2"},
		{"127.0.0.2:8080", "0.0.0.0:0", true, "127.0.0.2"},
		{"127.0.0.2:8080", "127.0.0.1:0", false, "127.0.0.1"},
		{"localhost:8080", "", false, "127.0.0.1"},
		{"server-1:8080", "", true, "server-1"}, // host names are not resolved
		{"10.0.0.1:8080", ":0", true, "10.0.0.1"},
	} {
		given := noMover()
		given.Listen = test.listen
		given.Credentials, given.ServerCredentials = insecure.NewCredentials(), insecure.NewCredentials()
		cfg := Config{Namespace: testNamespace, Managers: []string{"127.0.0.1:7400"}, Addr: test.addr, Mover: given}
		if err := cfg.validate(); err != nil {
			t.Fatal(err)
		}
		if err := cfg.listen(); err != nil {
			t.Fatal(err)
		}
		on := cfg.Mover.Listener.Addr().String()
		_, port, err := net.SplitHostPort(on)
		if err != nil || address.Wildcard(on) != test.everywhere || cfg.Mover.Advertise != net.JoinHostPort(test.advertises, port) {
			t.Errorf("%+v: listens on %v and advertises %s", test, cfg.Mover.Listener.Addr(), cfg.Mover.Advertise)
		}
		if cfg.Mover.IdleTimeout != 30*time.Second || cfg.Mover.StopTimeout != 5*time.Second || cfg.Mover.InstallTimeout != 5*time.Second {
			t.Errorf("timeouts: %+v", cfg.Mover)
		}
		if given.Listener != nil || given.Advertise != "" {
			t.Error("the caller's Mover was changed")
		}
		if err := cfg.Mover.Listener.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A failed Join closes the listener.
func TestFailedJoinClosesListener(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"no address for other owners": func(*Config) {},
		"loopback address":            func(c *Config) { c.Mover.Listener = onLoopback{c.Mover.Listener} },
		"invalid namespace":           func(c *Config) { c.Namespace = "Presence" },
		"invalid name":                func(c *Config) { c.Name = "a\nb" },
	} {
		t.Run(name, func(t *testing.T) {
			listener := bufconn.Listen(1)
			cfg := Config{Namespace: testNamespace, Managers: []string{"127.0.0.1:7400"}, Addr: "10.0.0.1:8080", Mover: noMover()}
			cfg.Mover.Listener = listener
			change(&cfg)
			_, err := Join(t.Context(), cfg)
			wantError(t, err, leasehold.ErrInvalid)
			if conn, err := listener.Dial(); err == nil {
				_ = conn.Close()
				t.Error("the listener is still open")
			}
		})
	}
}

type onLoopback struct{ net.Listener }

func (onLoopback) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 1, 1), Port: 7000} }

func TestConfigDefaults(t *testing.T) {
	managers := []string{"127.0.0.1:7400"}
	cfg := Config{Namespace: testNamespace, Managers: managers, Addr: "[2001:db8::1]:8080"}
	if err := cfg.validate(); err != nil {
		t.Fatal(err)
	}
	managers[0] = "changed"
	if cfg.Name != "[2001:db8::1]:8080" || cfg.Weight != 1 || cfg.Logger == nil || cfg.Credentials == nil || cfg.Managers[0] != "127.0.0.1:7400" {
		t.Errorf("%+v", cfg)
	}
	a, err := cfg.holder()
	if err != nil {
		t.Fatal(err)
	}
	b, err := cfg.holder()
	if err != nil {
		t.Fatal(err)
	}
	if a.Session == b.Session {
		t.Error("two sessions are the same")
	}
}
