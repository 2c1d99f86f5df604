// Package dev runs what a developer needs to try things out: a manager, a namespace, a gateway, and on request two
// servers of an example service. Each is a child process, so that it can be killed like a real one.
package dev

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/admin"
	"github.com/leasehold-dev/leasehold/server/cli"
	"github.com/leasehold-dev/leasehold/server/console"
	"github.com/leasehold-dev/leasehold/server/daemon"
	"github.com/leasehold-dev/leasehold/server/proc"
	"github.com/leasehold-dev/leasehold/server/supervisor"
)

// The hidden subcommands of child processes.
const (
	ManagerCommand = "dev-manager"
	GatewayCommand = "dev-gateway"
	ServerCommand  = "dev-server"
)

// A Config describes a development cluster.
type Config struct {
	Program   string // the leasehold command
	Namespace string
	Key       string // where a request names its key, as the gateway's --key
	Manager   string // address of the manager
	HTTP      string // address of its dashboard
	Gateway   string // address of the gateway
	// DataDir is the directory of the manager's data and of all logs. If it is empty, a temporary directory is
	// used and removed at the end.
	DataDir string
	Example bool // run two presence servers
}

// exampleNamespace is the namespace that examples/presence joins.
const exampleNamespace = "presence"

// examples is the number of presence servers: two, so that one can take over from the other.
const examples = 2

const (
	startTimeout = 30 * time.Second
	// stopTimeout bounds the wait for processes that end. A server moves its keys first.
	stopTimeout = 10 * time.Second
)

// Run runs the cluster until ctx ends or a manager or gateway process ends.
func Run(ctx context.Context, cfg Config, out console.Screen) error {
	if cfg.Example && cfg.Key != exampleKey {
		return fmt.Errorf("--with-example requires --key %s: requests to the example name the user there", exampleKey)
	}
	if err := cfg.checkAddresses(); err != nil {
		return err
	}
	dir := cfg.DataDir
	if dir == "" {
		temporary, err := os.MkdirTemp("", "leasehold-dev-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(temporary) //nolint:errcheck // it is a temporary directory
		dir = temporary
	} else if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	client, err := admin.New(admin.Config{Managers: []string{cfg.Manager}, Timeout: time.Second})
	if err != nil {
		return err
	}
	defer client.Close() //nolint:errcheck // no request is in progress
	c := newCluster(cfg, dir, client, out)
	defer c.stop()
	if err := c.start(ctx); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	text, err := c.greeting(ctx)
	if err != nil {
		return err
	}
	if err := cli.Write(out, text); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return nil
	case err := <-c.failed:
		return err
	}
}

// exampleKey is where requests to the example service name their key.
const exampleKey = "path:2"

// checkAddresses fails if an address is in use.
func (cfg *Config) checkAddresses() error {
	for _, a := range [][2]string{{"listen", cfg.Manager}, {"http", cfg.HTTP}, {"gateway", cfg.Gateway}} {
		if _, port, err := net.SplitHostPort(a[1]); err != nil || port == "" || port == "0" {
			return fmt.Errorf("--%s: %q: want host:port", a[0], a[1])
		}
		l, err := daemon.ListenOn(a[0], a[1])
		if err != nil {
			return err
		}
		if err := l.Close(); err != nil {
			return err
		}
	}
	return nil
}

type cluster struct {
	cfg     Config
	dir     string
	admin   *admin.Client
	manager *proc.Process
	gateway *proc.Process
	servers []*proc.Process
	failed  chan error // the first failure of the manager or the gateway
}

func newCluster(cfg Config, dir string, client *admin.Client, out console.Screen) *cluster {
	c := &cluster{cfg: cfg, dir: dir, admin: client, failed: make(chan error, 1)}
	fail := func(err error) {
		select {
		case c.failed <- err:
		default:
		}
	}
	c.manager = c.process("manager", fail, ManagerCommand, "--listen", cfg.Manager, "--http", cfg.HTTP, "--data-dir", filepath.Join(dir, "data"))
	c.gateway = c.process("gateway", fail, GatewayCommand, "-n", cfg.Namespace, "--managers", cfg.Manager, "--listen", cfg.Gateway, "--health-listen", "", "--key", cfg.Key)
	for i := range examples {
		name := "server-" + strconv.Itoa(i+1)
		if cfg.Example {
			ended := func(error) {
				out.Say("%s has ended. Its keys have another server %s, and their statuses are lost.\n", name, takeover())
			}
			server := c.process(name, ended, ServerCommand, "--name", name, "-n", cfg.Namespace, "--manager", cfg.Manager)
			if supervisor.Supported {
				server.Launch.Supervisor = []string{cfg.Program, "run", "--log-level", "error", "--"}
			}
			c.servers = append(c.servers, server)
		}
	}
	return c
}

// takeover is when the keys of a server that was killed have another one.
func takeover() string {
	if supervisor.Supported {
		return "within milliseconds"
	}
	return "within 12 s"
}

func (c *cluster) process(name string, ended func(error), args ...string) *proc.Process {
	return &proc.Process{Name: name, Ended: ended, Launch: proc.Launch{
		Program: c.cfg.Program, Args: args, Log: filepath.Join(c.dir, name+".log"),
	}}
}

// start starts all processes, and returns when requests have an owner, or without servers the gateway a table.
func (c *cluster) start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := c.manager.Start(); err != nil {
		return err
	}
	if err := c.until(ctx, "a manager that leads", c.createNamespace); err != nil {
		return err
	}
	for _, s := range append(c.servers, c.gateway) {
		if err := s.Start(); err != nil {
			return err
		}
	}
	if err := c.until(ctx, "a gateway that answers", c.gatewayAnswers); err != nil {
		return err
	}
	return c.until(ctx, "servers with leases", func(ctx context.Context) error {
		_, err := c.addresses(ctx)
		return err
	})
}

// until repeats a step until it succeeds. It ends early if a process has failed.
func (c *cluster) until(ctx context.Context, what string, try func(context.Context) error) error {
	var failed error
	err := proc.Until(ctx, func(ctx context.Context) error {
		select {
		case failed = <-c.failed:
			return nil
		default:
			return try(ctx)
		}
	})
	if failed != nil || err == nil {
		return failed
	}
	return leasehold.Errorf("start", leasehold.ErrUnavailable, "", "waiting for %s: %w; the logs are in %s", what, err, c.dir)
}

func (c *cluster) createNamespace(ctx context.Context) error {
	_, err := c.admin.CreateNamespace(ctx, admin.Namespace{Name: c.cfg.Namespace})
	if errors.Is(err, leasehold.ErrExists) {
		return nil
	}
	return err
}

func (c *cluster) gatewayAnswers(ctx context.Context) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+c.cfg.Gateway+"/", http.NoBody)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	return answer.Body.Close()
}

// addresses returns the address of each server by its name. It fails until all servers have leases.
func (c *cluster) addresses(ctx context.Context) (map[string]string, error) {
	if len(c.servers) == 0 {
		return nil, nil
	}
	all, err := c.admin.Owners(ctx, c.cfg.Namespace)
	if err != nil {
		return nil, err
	}
	addrs := make(map[string]string)
	for _, o := range all.Owners {
		if o.State == admin.OwnerMember && o.Leases > 0 {
			addrs[o.Owner] = o.Addr
		}
	}
	for _, s := range c.servers {
		if addrs[s.Name] == "" {
			return nil, fmt.Errorf("%s has no lease yet", s.Name)
		}
	}
	return addrs, nil
}

// greeting is what is printed once everything runs: addresses, and the commands to try next.
func (c *cluster) greeting(ctx context.Context) (string, error) {
	addrs, err := c.addresses(ctx)
	if err != nil {
		return "", err
	}
	facts := []console.Entry{
		{"manager", c.cfg.Manager},
		{"dashboard", console.Heading("http://" + c.cfg.HTTP + "/")},
		{"gateway", fmt.Sprintf("http://%s/, namespace %s, key %s", c.cfg.Gateway, c.cfg.Namespace, c.cfg.Key)},
	}
	for _, s := range c.servers {
		facts = append(facts, console.Entry{s.Name, fmt.Sprintf("%s, process %d", addrs[s.Name], s.Pid())})
	}
	kept := "removed at the end"
	if c.cfg.DataDir != "" {
		kept = "kept"
	}
	facts = append(facts, console.Entry{"data, logs", c.dir + ", " + kept})
	return console.Facts(facts) + "\nTo try next, in another terminal:\n\n" + strings.Join(c.commands(), "\n") + "\n\nCtrl-C ends everything.\n", nil
}

func (c *cluster) commands() []string {
	managers := ""
	if c.cfg.Manager != cli.DefaultManager {
		managers = " --managers " + c.cfg.Manager
	}
	in := " -n " + c.cfg.Namespace + managers
	if len(c.servers) == 0 {
		server := "  start a server of yours in namespace " + c.cfg.Namespace + ", with manager " + c.cfg.Manager
		if c.cfg.Namespace == exampleNamespace {
			server = "  go run ./examples/presence 127.0.0.1:8001 " + c.cfg.Manager + "   # a server of yours, or of the example"
		}
		return []string{server, "  leasehold top" + in}
	}
	url := "http://" + c.cfg.Gateway + "/status/alice"
	return []string{
		"  curl -X PUT -d 'at lunch' " + url,
		"  curl " + url,
		"  leasehold key find alice" + in,
		"  leasehold owner drain " + c.servers[0].Name + in + "   # its statuses move to the other server",
		"  kill -9 " + strconv.Itoa(c.servers[1].Pid()) + "   # its statuses are lost; another server has its keys " + takeover(),
		"  leasehold top" + in,
	}
}

// stop ends all processes, servers first, so that the manager records where their keys go.
func (c *cluster) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	for _, p := range append([]*proc.Process{c.gateway}, append(c.servers, c.manager)...) {
		if p.Alive() {
			_ = p.Terminate(ctx) // it is killed if it does not end
		}
		p.Close()
	}
}
