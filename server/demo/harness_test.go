package demo

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/credentials/insecure"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/admin"
	"github.com/leasehold-dev/leasehold/internal/testkit/leak"
	"github.com/leasehold-dev/leasehold/internal/testkit/oracle"
	"github.com/leasehold-dev/leasehold/manager"
	"github.com/leasehold-dev/leasehold/owner"
	"github.com/leasehold-dev/leasehold/server/proc"
	"github.com/leasehold-dev/leasehold/store/mem"
)

// TestMain runs the test binary as one of the processes that tests start, selected by its first
// argument.
func TestMain(m *testing.M) {
	children := map[string]func(args []string) error{
		"honest-owner": func(args []string) error {
			return RunOwner(context.Background(), OwnerConfig{
				Name: leasehold.OwnerID(args[0]), Managers: args[1:], Users: watchedUsers, Records: os.Stdout, Logger: slog.New(slog.DiscardHandler),
			})
		},
		"careless-owner": func([]string) error { return runCareless() },
		"sleeper":        func([]string) error { select {} },
		"demo-manager":   func([]string) error { return fmt.Errorf("the disk is full of toys") },
	}
	if len(os.Args) > 1 {
		if role, ok := children[os.Args[1]]; ok {
			go proc.EndWithParent(os.Stdin)
			fmt.Fprintln(os.Stderr, role(os.Args[2:]))
			os.Exit(3)
		}
	}
	leak.Main(m)
}

// careless always reports that it owns every key.
type careless struct{}

func (careless) Check(key leasehold.Key) (owner.Lease, bool) {
	return owner.Lease{Lease: leasehold.Lease{Range: leasehold.All, Generation: 1}, Key: key}, true
}

func (careless) Held(owner.Lease) bool { return true }

// watchedUsers is the number of users that owners in tests watch.
const watchedUsers = 50

// runCareless runs an owner like RunOwner's, without a lease and without a server.
func runCareless() error {
	session, err := leasehold.NewSession(rand.Reader)
	if err != nil {
		return err
	}
	cfg := OwnerConfig{Records: os.Stdout}
	return oracle.NewSentinel(careless{}, session, newUsers(watchedUsers).keys(), cfg.write).Run(context.Background())
}

// TestDualOwnershipIsDetected runs real owners against a real manager, and sends requests for the
// same users to all of them. The oracle reports no violation. Then an owner joins that ignores
// leases, and the oracle reports it although it receives no requests.
func TestDualOwnershipIsDetected(t *testing.T) {
	addr := startManager(t)
	dialed, err := proc.Dial([]string{addr}, insecure.NewCredentials(), adminTimeout)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(dialed.Close)
	a, err := admin.New(admin.Config{Managers: []string{addr}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close() })
	cfg := DefaultConfig()
	ctx, fail := context.WithCancelCause(t.Context())
	c := &cluster{
		cfg: cfg, managers: &proc.Managers{All: []*proc.Manager{{Member: proc.Member{Addr: addr}}}, Client: dialed}, admin: a,
		oracle: oracle.New(cfg.Users), journal: &journal{out: io.Discard}, fail: fail,
	}
	wait(t, c.createNamespace)
	for _, name := range []string{"ann", "bob"} {
		c.owners = append(c.owners, startOwner(t, c, name, "honest-owner", name, addr))
	}
	wait(t, c.settled)
	owners, err := c.members(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var addrs []string
	for _, o := range owners {
		addrs = append(addrs, o.Addr)
	}
	const users = watchedUsers
	accepted := requestFromAll(t, addrs, users) // about three for each user, unless its key moves
	if accepted < 2*users {
		t.Errorf("honest owners accepted %d requests about %d users", accepted, users)
	}
	until(t, func(v oracle.Verdict) bool { return v.Checked >= uint64(accepted) && v.Tenures >= users }, c.oracle)
	if v := c.oracle.Judge(); v.First != "" {
		t.Error(v.First)
	}

	startOwner(t, c, "eve", "careless-owner")
	until(t, func(v oracle.Verdict) bool { return v.Duals >= users }, c.oracle)
	if err := context.Cause(ctx); err != nil {
		t.Error(err)
	}
}

// requestFromAll sends three requests for each user to each server, and returns the number of
// responses that accept ownership.
func requestFromAll(t *testing.T, addrs []string, n int) int {
	t.Helper()
	client := &http.Client{}
	defer client.CloseIdleConnections()
	accepted := 0
	for range 3 {
		for _, u := range newUsers(n).each(n) {
			for _, addr := range addrs {
				response, err := client.Get("http://" + addr + "/presence/" + u.name())
				if err != nil {
					t.Fatal(err)
				}
				_ = response.Body.Close()
				if response.StatusCode == http.StatusOK {
					accepted++
				}
			}
		}
	}
	return accepted
}

// startManager runs a manager in this process.
func startManager(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m, err := manager.Start(manager.Config{Store: mem.New(), Listener: listener, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := m.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return listener.Addr().String()
}

// startOwner runs the test binary as an owner whose records the cluster's oracle reads.
func startOwner(t *testing.T, c *cluster, name string, args ...string) *proc.Process {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	m := &proc.Process{
		Name: name, Ended: c.fail,
		Launch: proc.Launch{Program: program, Args: args, Log: filepath.Join(t.TempDir(), name), Output: c.observe},
	}
	if err := m.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m
}

func wait(t *testing.T, try func(context.Context) error) {
	t.Helper()
	if err := await(t.Context(), t.Name(), try); err != nil {
		t.Fatal(err)
	}
}

// until waits for a verdict.
func until(t *testing.T, reached func(oracle.Verdict) bool, o *oracle.Oracle) {
	t.Helper()
	wait(t, func(context.Context) error {
		if v := o.Judge(); !reached(v) {
			return fmt.Errorf("the verdict is %+v", v)
		}
		return nil
	})
}

// TestFailedProcessIsReported: the error contains the output of the failed process, and no files
// are left behind.
func TestFailedProcessIsReported(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cfg := DefaultConfig()
	cfg.Program = program
	_, err = Run(t.Context(), cfg, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "exit status 3") || !strings.Contains(err.Error(), "the disk is full of toys") {
		t.Errorf("got %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("files left behind: %v, %v", left, err)
	}
}

func TestConfigIsValidated(t *testing.T) {
	for _, test := range []struct {
		change func(*Config)
		want   string
	}{
		{func(*Config) {}, ""},
		{func(c *Config) { c.For = 10 * time.Second }, ""},
		{func(c *Config) { c.For = 9 * time.Second }, "--for 9s: want at least 10s"},
		{func(c *Config) { c.For = -1 }, "--for -1ns: want at least 10s"},
		{func(c *Config) { c.Managers = 2 }, "--managers 2: want 3 to 9"},
		{func(c *Config) { c.Owners = 1 }, "--owners 1: want 2 to 64"},
		{func(c *Config) { c.Users = 0 }, "--users 0: want 1 to 2000000"},
		{func(c *Config) { c.ValueSize = 0 }, "--value-size 0: want 1 to 2000"},
		{func(c *Config) { c.Rounds = 1 }, "--rounds 1: it is for --rolling-restart"},
		{func(c *Config) { c.Rolling, c.Rounds = true, 1 }, ""},
		{func(c *Config) { c.Rolling, c.Rounds = true, -1 }, "--rounds -1: want 0 to"},
		{func(c *Config) { c.Outage = time.Minute }, ""},
		{func(c *Config) { c.Outage = time.Millisecond }, "--outage 1ms: want at least 1s"},
		{func(c *Config) { c.Outage = time.Hour }, "--outage 1h0m0s at --rate 1000: too many requests"},
		{func(c *Config) { c.Outage, c.Store = time.Minute, Flease }, "forget their table"},
		{func(c *Config) { c.Outage, c.Rolling = time.Minute, true }, "cannot be combined"},
		{func(c *Config) { c.Rate = 1 << 20 }, "--rate 1048576: want 1 to 100000"},
		{func(c *Config) { c.Lease = time.Second }, "--lease 1s: want 6s to 1m0s; it must outlast a failover"},
		{func(c *Config) { c.KillEvery = 0 }, "--kill-every 0s: want at least 1s"},
		{func(c *Config) { c.Program = "" }, "no program"},
	} {
		cfg := DefaultConfig()
		cfg.Program = "x"
		test.change(&cfg)
		err := cfg.Validate()
		if (test.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("got %v, want %q", err, test.want)
		}
	}
}
