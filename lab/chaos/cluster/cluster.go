package cluster

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/lab/chaos/actor"
	"github.com/leasehold-dev/leasehold/lab/chaos/lan"
	"github.com/leasehold-dev/leasehold/manager"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
	"github.com/leasehold-dev/leasehold/server/proc"
)

// A Cluster has the processes of a run. Its methods are safe for concurrent use.
type Cluster struct {
	Managers, Stores, Owners, Callers []*Member
	Operator                          *lan.Host // it has no process
	// Unbounded: this kernel cannot limit the retransmission timeout of TCP as docs/operations/install.md requires.
	Unbounded bool

	cfg      Config
	managers *proc.Client
	stores   *proc.Client
	disks    proc.Process // holds the mount namespace of the disks

	mu       sync.Mutex
	copiedAt time.Time // when the backup was taken
}

// New prepares a cluster without processes.
func New(cfg Config) (*Cluster, error) {
	c := &Cluster{cfg: cfg}
	if err := c.addHosts(); err != nil {
		return nil, err
	}
	for i, s := range c.Stores {
		c.launch(s, cfg.Program, nil, c.storeArgs(i)...)
	}
	for i, m := range c.Managers {
		if m.Role == Manager {
			c.launch(m, cfg.Program, nil, c.managerArgs(i)...)
		}
	}
	for _, o := range c.Owners {
		c.launch(o, cmp.Or(cfg.OwnerProgram, cfg.Program), cfg.Owned, c.ownerArgs(o)...)
	}
	for i, m := range c.Callers {
		c.launch(m, cfg.Program, cfg.Called, c.callerArgs(i)...)
	}
	var err error
	if c.managers, err = c.dial(c.Managers); err != nil {
		return nil, err
	}
	c.stores, err = c.dial(c.Stores)
	return c, err
}

// addHosts creates all members, one per host, and the operator's host.
func (c *Cluster) addHosts() (err error) {
	stores, managers, servers, port := 0, members, Owner, uint16(ownerPort)
	switch c.cfg.Shape {
	case External:
		stores = members
	case Embedded:
		managers, servers, port = 0, Server, managerPort
	case Etcd, Flease:
	}
	for _, g := range []struct {
		role   Role
		letter string
		n      int
		port   uint16
		into   *[]*Member
	}{
		{Manager, "m", managers, managerPort, &c.Managers},
		{Store, "e", stores, clientPort, &c.Stores},
		{servers, "o", c.cfg.Owners, port, &c.Owners},
		{Caller, "c", c.cfg.Callers, 0, &c.Callers},
	} {
		for i := range g.n {
			name := g.letter + strconv.Itoa(i+1)
			host, err := c.cfg.Network.Host(name)
			if err != nil {
				return err
			}
			if g.role == Store || g.role == Manager || g.role == Server {
				err := host.ResendWithin(time.Second)
				if c.Unbounded = errors.Is(err, errors.ErrUnsupported); err != nil && !c.Unbounded {
					return fmt.Errorf("limiting the TCP retransmission timeout of a host: %w", err)
				}
			}
			m := &Member{Role: g.role, Host: host, Addr: host.At(g.port), Spared: c.cfg.Spare && i == 0}
			m.Name = name
			*g.into = append(*g.into, m)
		}
	}
	if c.cfg.Shape == Embedded {
		c.Managers = c.Owners[:min(len(c.Owners), manager.MaxPeers)]
	}
	c.Operator, err = c.cfg.Network.Host("operator")
	return err
}

const callTimeout = 500 * time.Millisecond

func (c *Cluster) dial(members []*Member) (*proc.Client, error) {
	return proc.Dial(addrs(members), insecure.NewCredentials(), callTimeout,
		grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) { return c.Operator.Dial(ctx, "tcp", addr) }))
}

func addrs(members []*Member) []string {
	var all []string
	for _, m := range members {
		all = append(all, m.Addr)
	}
	return all
}

// launch sets the command of a member. The other build replaces only the leasehold command.
func (c *Cluster) launch(m *Member, program string, output func(string, time.Duration, io.Reader) error, args ...string) {
	m.args, m.programs = args, []string{program}
	if program == c.cfg.Program && c.cfg.Other != "" && m.Role != Server {
		m.programs = append(m.programs, c.cfg.Other)
	}
	m.Ended = func(err error) { m.revive(err, c.cfg.Failed) }
	m.Launch = proc.Launch{Log: filepath.Join(c.cfg.Dir, m.Name+".log"), Where: m.Host.Do}
	if output != nil {
		m.output = func(offset time.Duration, r io.Reader) error { return output(m.Name, offset, r) }
	}
}

func (c *Cluster) managerArgs(i int) []string {
	var group []proc.Member
	for _, m := range c.Managers {
		group = append(group, proc.Member{Name: m.Name, Addr: m.Addr, HTTP: m.Host.At(pagePort), Peer: m.Host.At(peerPort), DataDir: c.dataDir(m)})
	}
	cfg := proc.ManagersConfig{Command: "demo-manager", Diskless: c.cfg.Shape == Flease}
	for _, s := range c.Stores {
		cfg.Etcd = append(cfg.Etcd, "http://"+s.Addr)
	}
	args := append(cfg.Args(group, i), "--insecure", "--ttl", c.cfg.TTL.String(), "--drift", fmt.Sprint(Drift), "--log-level", "debug")
	if cfg.Diskless {
		hold := time.Duration(float64(c.cfg.Lease) * Drift)
		args = append(args, "--peer-key-file", filepath.Join(c.cfg.Dir, keyFile), "--longest-lease", hold.String())
	}
	return args
}

// keyFile has the secret that managers without a store share.
const keyFile = "peer.key"

func (c *Cluster) dataDir(m *Member) string { return filepath.Join(c.cfg.Dir, m.Name) }

func (c *Cluster) storeArgs(i int) []string {
	s := c.Stores[i]
	args := []string{"chaos-store", "--name", s.Name, "--dir", c.dataDir(s), "--client", s.Addr}
	for _, other := range c.Stores {
		args = append(args, "--peer", other.Name+"="+other.Host.At(peerPort))
	}
	return args
}

func (c *Cluster) ownerArgs(o *Member) []string {
	args := []string{
		"chaos-owner", "--name", o.Name, "--listen", o.Host.At(ownerPort), "--watched", strconv.Itoa(Watched),
	}
	if o.Role == Server {
		args = append(args, "--self", o.Addr, "--members", strings.Join(addrs(c.Owners), ","),
			"--peer-key-file", filepath.Join(c.cfg.Dir, keyFile), "--ttl", c.cfg.TTL.String(), "--lease", c.cfg.Lease.String())
	} else {
		args = append(args, "--managers", strings.Join(addrs(c.Managers), ","))
	}
	if c.cfg.LeasesOff {
		args = append(args, "--leases-off")
	}
	return append(args, c.cfg.OwnerArgs...)
}

func (c *Cluster) callerArgs(i int) []string {
	return []string{
		"chaos-caller", "--number", strconv.Itoa(i), "--managers", strings.Join(addrs(c.Managers), ","),
		"--registers", strconv.Itoa(Registers), "--workers", strconv.Itoa(workers), "--every", callEvery.String(),
		"--poll", (Stale / 6).String(), "--stale", Stale.String(),
	}
}

// All returns all members.
func (c *Cluster) All() []*Member {
	if c.cfg.Shape == Embedded {
		return slices.Concat(c.Owners, c.Callers)
	}
	return slices.Concat(c.Stores, c.Managers, c.Owners, c.Callers)
}

// startTimeout is for processes that start on a loaded computer.
const startTimeout = 60 * time.Second

// Start starts all processes, and returns when the namespace exists.
func (c *Cluster) Start(ctx context.Context) error {
	secret := make([]byte, 32)
	_, _ = rand.Read(secret) // the error is always nil
	if err := os.WriteFile(filepath.Join(c.cfg.Dir, keyFile), []byte(hex.EncodeToString(secret)+"\n"), 0o600); err != nil {
		return err
	}
	if c.Keepers() != nil {
		if err := c.mount(); err != nil {
			return err
		}
	}
	managers, servers := c.Managers, c.Owners
	if c.cfg.Shape == Embedded {
		managers, servers = c.Owners, nil
	}
	if err := start(c.Stores, managers); err != nil {
		return err
	}
	if _, err := c.Create(ctx); err != nil {
		return err
	}
	return start(servers, c.Callers)
}

func start(groups ...[]*Member) error {
	for _, m := range slices.Concat(groups...) {
		if err := m.Start(); err != nil {
			return err
		}
	}
	return nil
}

// StoreLeader returns the leader of the stores.
func (c *Cluster) StoreLeader(ctx context.Context) (*Member, error) {
	i, err := c.stores.First(ctx, func(ctx context.Context, to grpc.ClientConnInterface) error {
		s, err := etcdserverpb.NewMaintenanceClient(to).Status(ctx, &etcdserverpb.StatusRequest{})
		if err == nil && s.GetLeader() != s.GetHeader().GetMemberId() {
			err = errors.New("not the leader")
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return c.Stores[i], nil
}

// Create creates the namespace if it does not exist, and reports whether it did not. Managers without a store
// lose it when all of them are down at the same time.
func (c *Cluster) Create(ctx context.Context) (missing bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	err = proc.Until(ctx, func(ctx context.Context) (err error) {
		missing, err = c.managers.CreateNamespace(ctx, &leaseholdv1.NamespaceConfig{
			Name:   string(actor.Namespace),
			Timing: &leaseholdv1.Timing{Lease: int64(c.cfg.Lease), Renew: int64(c.cfg.Lease / actor.RenewalsPerLease), Drift: Drift},
		})
		return err
	})
	if err != nil {
		return false, fmt.Errorf("waiting for a leader: %w; %s", err, proc.Tail(c.Managers[0].Launch.Log))
	}
	return missing, nil
}

// Leader returns the leader according to the managers.
func (c *Cluster) Leader(ctx context.Context) (*Member, error) {
	addr, _, err := c.managers.Leader(ctx)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(c.Managers, func(m *Member) bool { return m.Addr == addr })
	if i < 0 {
		return nil, leasehold.Errorf("chaos", leasehold.Other, addr, "the leader is not a member of the cluster")
	}
	return c.Managers[i], nil
}

// Term returns the highest term of any manager.
func (c *Cluster) Term(ctx context.Context) (leasehold.Term, error) {
	_, term, err := c.managers.Leader(ctx)
	return term, err
}

// Revert restarts every member that runs the other build as this one.
func (c *Cluster) Revert() (failed error) {
	for _, m := range c.All() {
		other := false
		m.Configure(func(o *Options) { other, o.Program = o.Program != 0, 0 })
		if other {
			failed = errors.Join(failed, m.End(), m.Start())
		}
	}
	return failed
}

// Blank returns the number of managers that were started since the last call: without a store they lost their tables.
func (c *Cluster) Blank() (blank int) {
	for _, m := range c.Managers {
		m.locked(func() {
			if m.life.known != m.life.starts {
				blank++
			}
			m.life.known = m.life.starts
		})
	}
	return blank
}

// Revived returns the number of restarts of processes that ended by themselves, by role and reason.
func (c *Cluster) Revived() map[string]int {
	by := make(map[string]int)
	for _, m := range c.All() {
		m.locked(func() {
			for why, n := range m.revived {
				by[why] += n
			}
		})
	}
	return by
}

// Close kills all processes, and waits for their end.
func (c *Cluster) Close() {
	var closing sync.WaitGroup
	for _, m := range c.All() {
		closing.Go(m.Close)
	}
	closing.Wait()
	c.disks.Close()
	c.managers.Close()
	c.stores.Close()
}
