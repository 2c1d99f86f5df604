package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/chaos/lan"
	"github.com/leasehold-dev/leasehold/internal/child"
)

// A Cluster is the processes of a run. Its methods may be called from many
// goroutines at once.
type Cluster struct {
	Managers, Stores, Owners, Callers []*Member
	Operator                          *lan.Host // where nothing is but we
	// Unbounded: hosts could not be set up as docs/OPERATIONS.md says, and TCP waits for as long
	// as it likes before it sends again.
	Unbounded bool

	cfg    Config
	admin  *admin
	stores *admin
	disks  disks

	mu       sync.Mutex
	copiedAt time.Time // when the backup was taken
}

// New prepares a cluster that has no process yet.
func New(cfg Config) (*Cluster, error) {
	c := &Cluster{cfg: cfg}
	if err := c.settle(); err != nil {
		return nil, err
	}
	for i, s := range c.Stores {
		c.launch(s, cfg.Program, nil, c.storeArgs(i)...)
	}
	for i, m := range c.Managers {
		c.launch(m, cfg.Program, nil, c.managerArgs(i)...)
	}
	for _, o := range c.Owners {
		c.launch(o, cmp.Or(cfg.OwnerProgram, cfg.Program), cfg.Owned, c.ownerArgs(o)...)
	}
	for i, m := range c.Callers {
		c.launch(m, cfg.Program, cfg.Called, c.callerArgs(i)...)
	}
	var err error
	if c.Operator, err = cfg.Network.Host("operator"); err != nil {
		return nil, err
	}
	if c.admin, err = dialAll(c.Operator, addrs(c.Managers)); err != nil {
		return nil, err
	}
	c.stores, err = dialAll(c.Operator, addrs(c.Stores))
	return c, err
}

// settle gives everybody a host.
func (c *Cluster) settle() error {
	stores := 0
	if c.cfg.Shape == External {
		stores = members
	}
	for _, g := range []struct {
		role   Role
		letter string
		n      int
		port   uint16
		into   *[]*Member
	}{
		{Manager, "m", members, managerPort, &c.Managers},
		{Store, "e", stores, clientPort, &c.Stores},
		{Owner, "o", c.cfg.Owners, ownerPort, &c.Owners},
		{Caller, "c", c.cfg.Callers, 0, &c.Callers},
	} {
		for i := range g.n {
			name := g.letter + strconv.Itoa(i+1)
			host, err := c.cfg.Network.Host(name)
			if err != nil {
				return err
			}
			if g.role == Store || g.role == Manager {
				err := host.ResendWithin(time.Second)
				if c.Unbounded = errors.Is(err, errors.ErrUnsupported); err != nil && !c.Unbounded {
					return fmt.Errorf("setting up a host as docs/OPERATIONS.md says: %w", err)
				}
			}
			m := &Member{Role: g.role, Host: host, Addr: host.At(g.port), Spared: c.cfg.Spare && i == 0}
			m.Name = name
			*g.into = append(*g.into, m)
		}
	}
	return nil
}

func addrs(members []*Member) []string {
	var all []string
	for _, m := range members {
		all = append(all, m.Addr)
	}
	return all
}

// launch says what a member is. One that is not our own program cannot be another.
func (c *Cluster) launch(m *Member, program string, output func(string, time.Duration, io.Reader) error, args ...string) {
	m.args, m.programs = args, []string{program}
	if program == c.cfg.Program && c.cfg.Other != "" {
		m.programs = append(m.programs, c.cfg.Other)
	}
	m.Ended = func(err error) { m.revive(err, c.cfg.Failed) }
	m.Launch = child.Launch{Log: filepath.Join(c.cfg.Dir, m.Name+".log"), Where: m.Host.Do}
	if output != nil {
		m.output = func(offset time.Duration, r io.Reader) error { return output(m.Name, offset, r) }
	}
}

func (c *Cluster) managerArgs(i int) []string {
	m := c.Managers[i]
	args := []string{
		"demo-manager", "--insecure", "--listen", m.Addr, "--http", m.Host.At(pagePort),
		"--ttl", c.cfg.TTL.String(), "--drift", fmt.Sprint(c.cfg.Drift), "--log-level", "debug",
	}
	switch c.cfg.Shape {
	case Etcd:
	case Flease:
		return append(args, "--store", "flease", "--peers", strings.Join(addrs(c.Managers), ","),
			"--peer-key-file", filepath.Join(c.cfg.Dir, keyFile), "--longest-lease", c.hold().String())
	case External:
		var ends []string
		for _, s := range c.Stores {
			ends = append(ends, "http://"+s.Addr)
		}
		return append(args, "--etcd", strings.Join(ends, ","))
	}
	var group []string
	for _, other := range c.Managers {
		group = append(group, other.Name+"=http://"+other.Host.At(peerPort))
	}
	return append(args, "--name", m.Name, "--members", strings.Join(group, ","), "--data-dir", c.dataDir(m))
}

// keyFile is the secret that managers without a store share.
const keyFile = "peer.key"

// hold is for how long a leader keeps a range from others that it hears nothing of.
func (c *Cluster) hold() time.Duration { return time.Duration(float64(c.cfg.Lease) * c.cfg.Drift) }

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
		"chaos-owner", "--name", o.Name, "--listen", o.Addr,
		"--managers", strings.Join(addrs(c.Managers), ","), "--watched", strconv.Itoa(c.cfg.Watched),
	}
	if c.cfg.LeasesOff {
		args = append(args, "--leases-off")
	}
	return append(args, c.cfg.OwnerArgs...)
}

func (c *Cluster) callerArgs(i int) []string {
	return []string{
		"chaos-caller", "--number", strconv.Itoa(i), "--managers", strings.Join(addrs(c.Managers), ","),
		"--registers", strconv.Itoa(c.cfg.Registers), "--workers", strconv.Itoa(c.cfg.Workers), "--every", c.cfg.Every.String(),
		"--poll", (c.cfg.Stale / 6).String(), "--stale", c.cfg.Stale.String(),
	}
}

// All are all members.
func (c *Cluster) All() []*Member { return slices.Concat(c.Stores, c.Managers, c.Owners, c.Callers) }

// startPatience is for processes that start. They compete for few processors.
const startPatience = 60 * time.Second

// Start starts all processes, and returns when the namespace is there.
func (c *Cluster) Start(ctx context.Context) error {
	if err := writeKey(filepath.Join(c.cfg.Dir, keyFile)); err != nil {
		return err
	}
	if c.keepers() != nil {
		if err := c.mount(); err != nil {
			return err
		}
	}
	for _, m := range slices.Concat(c.Stores, c.Managers) {
		if err := m.Start(); err != nil {
			return err
		}
	}
	if _, err := c.Create(ctx); err != nil {
		return err
	}
	for _, m := range slices.Concat(c.Owners, c.Callers) {
		if err := m.Start(); err != nil {
			return err
		}
	}
	return nil
}

// StoreLeader returns the store that leads the others.
func (c *Cluster) StoreLeader(ctx context.Context) (*Member, error) {
	i, err := c.stores.storeLeader(ctx)
	if err != nil {
		return nil, err
	}
	return c.Stores[i], nil
}

// Create sees to it that there is the namespace, as an operator does, and reports whether
// there was none. Managers without a store have none any more when all of them have been
// dead at a time.
func (c *Cluster) Create(ctx context.Context) (missing bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	err = await(ctx, func(ctx context.Context) error {
		err := c.admin.create(ctx, &c.cfg)
		missing = err == nil
		if errors.Is(err, leasehold.Exists) {
			return nil
		}
		return err
	})
	if err != nil {
		return false, fmt.Errorf("waiting for a leader: %w; %s", err, child.Tail(c.Managers[0].Launch.Log))
	}
	return missing, nil
}

// Leader returns the manager that leads, as the others have it.
func (c *Cluster) Leader(ctx context.Context) (*Member, error) {
	addr, _, err := c.admin.leader(ctx)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(c.Managers, func(m *Member) bool { return m.Addr == addr })
	if i < 0 {
		return nil, leasehold.Errorf("chaos", leasehold.Other, addr, "it leads, and is none of our managers")
	}
	return c.Managers[i], nil
}

// Term returns the latest term that any manager has heard of.
func (c *Cluster) Term(ctx context.Context) (leasehold.Term, error) {
	_, term, err := c.admin.leader(ctx)
	return term, err
}

// endPatience is for a process that is asked to end.
const endPatience = 5 * time.Second

// Revert restarts every member that runs the other build as this one.
func (c *Cluster) Revert(ctx context.Context) (failed error) {
	for _, m := range c.All() {
		if !m.revert() {
			continue
		}
		ending, cancel := context.WithTimeout(ctx, endPatience)
		failed = errors.Join(failed, m.End(ending), m.Start())
		cancel()
	}
	return failed
}

// Blank says how many managers have another process than when it was last asked. Without a
// store these have lost what they knew.
func (c *Cluster) Blank() int {
	blank := 0
	for _, m := range c.Managers {
		if m.restarted() {
			blank++
		}
	}
	return blank
}

// Revived says how often processes were started because they had ended by themselves.
func (c *Cluster) Revived() int {
	n := 0
	for _, m := range c.All() {
		n += m.Revived()
	}
	return n
}

// Close kills all processes, and returns when they are gone.
func (c *Cluster) Close() {
	var closing sync.WaitGroup
	for _, m := range c.All() {
		if m.Ended != nil {
			closing.Go(m.Close)
		}
	}
	closing.Wait()
	c.disks.holder.Close()
	for _, a := range []*admin{c.admin, c.stores} {
		if a != nil {
			a.Close()
		}
	}
}

// await asks again and again until there is no error, or returns the last one.
func await(ctx context.Context, try func(context.Context) error) error {
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for {
		err := try(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return errors.Join(err, ctx.Err())
		}
	}
}
