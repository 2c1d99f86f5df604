package proc

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/leasehold-dev/leasehold"
)

// ManagersConfig describes a group of managers.
type ManagersConfig struct {
	Program string // the leasehold command
	Command string // its subcommand; empty: "manager run"
	Dir     string // for data directories and logs
	Count   int

	// Etcd, if set, are the endpoints of an etcd cluster that keeps the tables; Diskless managers
	// keep them in memory. By default each manager is a member of an etcd cluster of theirs.
	Etcd     []string
	Diskless bool

	// Host is the IP address at which they listen, and Where starts them there; by default they are on
	// loopback. Dial are options of calls to them.
	Host  string
	Where func(start func() error) error
	Dial  []grpc.DialOption

	// Flags, if set, returns further flags of a manager.
	Flags func(Member) []string
	// Ended, if set, is called when a manager ends by itself.
	Ended func(error)
	// Credentials are those of calls to the managers; nil: plain text.
	Credentials credentials.TransportCredentials
	// Timeout is that of one call to one manager. Default 1 s.
	Timeout time.Duration
}

// A Member is the place of a manager in its group.
type Member struct {
	Name    string
	Addr    string // of its clients
	HTTP    string // of its pages
	Peer    string // of other managers, if they are an etcd cluster
	DataDir string
}

// Args are the arguments of the manager with an index in a group.
func (c *ManagersConfig) Args(group []Member, i int) []string {
	m := group[i]
	args := append(strings.Fields(cmp.Or(c.Command, "manager run")), "--listen", m.Addr, "--http", m.HTTP)
	switch {
	case c.Diskless:
		args = append(args, "--store", "flease", "--peers", joined(group, func(m Member) string { return m.Addr }))
	case len(c.Etcd) > 0:
		args = append(args, "--etcd", strings.Join(c.Etcd, ","))
	default:
		args = append(args, "--name", m.Name, "--data-dir", m.DataDir)
		if len(group) > 1 {
			scheme := "http://"
			if c.Credentials != nil {
				scheme = "https://"
			}
			args = append(args, "--members", joined(group, func(m Member) string { return m.Name + "=" + scheme + m.Peer }))
		}
	}
	if c.Flags != nil {
		args = append(args, c.Flags(m)...)
	}
	return args
}

func joined(group []Member, text func(Member) string) string {
	var all []string
	for _, m := range group {
		all = append(all, text(m))
	}
	return strings.Join(all, ",")
}

// A Manager is the process of a member.
type Manager struct {
	Process
	Member Member
}

// Managers is a group of manager processes, for many goroutines at once.
type Managers struct {
	All []*Manager
	*Client
}

// NewManagers prepares a group without starting it.
func NewManagers(cfg ManagersConfig) (*Managers, error) {
	ports, err := FreePorts(3 * cfg.Count)
	if err != nil {
		return nil, err
	}
	if cfg.Host != "" {
		for i, addr := range ports {
			_, port, _ := net.SplitHostPort(addr) // it is an address
			ports[i] = net.JoinHostPort(cfg.Host, port)
		}
	}
	var group []Member
	for i := range cfg.Count {
		name := "m" + strconv.Itoa(i+1)
		group = append(group, Member{Name: name, Addr: ports[3*i], HTTP: ports[3*i+1], Peer: ports[3*i+2], DataDir: filepath.Join(cfg.Dir, name)})
	}
	g := &Managers{}
	for i, m := range group {
		g.All = append(g.All, &Manager{Member: m, Process: Process{
			Name: m.Name, Ended: cfg.Ended,
			Launch: Launch{Program: cfg.Program, Args: cfg.Args(group, i), Log: filepath.Join(cfg.Dir, m.Name+".log"), Where: cfg.Where},
		}})
	}
	secured := cfg.Credentials
	if secured == nil {
		secured = insecure.NewCredentials()
	}
	if g.Client, err = Dial(g.Addrs(), secured, cmp.Or(cfg.Timeout, time.Second), cfg.Dial...); err != nil {
		return nil, err
	}
	return g, nil
}

// Start starts all managers and waits for a leader.
func (g *Managers) Start(ctx context.Context) error {
	for _, m := range g.All {
		if err := m.Start(); err != nil {
			return err
		}
	}
	_, err := g.WaitForLeader(ctx)
	return err
}

// Addrs are the addresses of all managers.
func (g *Managers) Addrs() (addrs []string) {
	for _, m := range g.All {
		addrs = append(addrs, m.Member.Addr)
	}
	return addrs
}

// Leader returns the manager that leads, as the others report it, and its term.
func (g *Managers) Leader(ctx context.Context) (*Manager, leasehold.Term, error) {
	addr, term, err := g.Client.Leader(ctx)
	if err != nil {
		return nil, 0, err
	}
	i := slices.IndexFunc(g.All, func(m *Manager) bool { return m.Member.Addr == addr })
	if i < 0 {
		return nil, 0, fmt.Errorf("the leader %s is not of this group", addr)
	}
	return g.All[i], term, nil
}

// WaitForLeader waits for a leader that is alive.
func (g *Managers) WaitForLeader(ctx context.Context) (leader *Manager, err error) {
	err = Until(ctx, func(ctx context.Context) (err error) {
		leader, _, err = g.Leader(ctx)
		if err == nil && !leader.Alive() {
			err = fmt.Errorf("the leader %s is dead", leader.Name)
		}
		return err
	})
	if err != nil {
		err = fmt.Errorf("waiting for a leader: %w; %s", err, Tail(g.All[0].Launch.Log))
	}
	return leader, err
}

// Close kills all managers, and returns when they are gone.
func (g *Managers) Close() {
	var closing sync.WaitGroup
	for _, m := range g.All {
		closing.Go(m.Close)
	}
	closing.Wait()
	g.Client.Close()
}
