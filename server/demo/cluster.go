package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/runtime/pki"
	"github.com/leasehold-dev/leasehold/internal/testkit/oracle"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
	"github.com/leasehold-dev/leasehold/server/proc"
)

// A cluster is the processes of a demo and their files.
type cluster struct {
	cfg          Config
	dir          string
	addrs        []string // of the managers
	pages        []string // of their dashboards
	managers     []*member
	owners       []*member
	admin        *admin
	certificates *certificates // of all processes; nil for plain text
	oracle       *oracle.Oracle
	journal      *journal
	moved        movedCount
	restarting   atomic.Pointer[string] // name of the owner that is being restarted; nil if none is

	failed chan error // receives the first error that ends the demo
}

// A member is a manager or an owner.
type member struct {
	proc.Process
	addr string // of a manager; an owner listens on another port each time
}

// startTimeout bounds the start of all managers, and of all owners. They compete for few
// processors.
const startTimeout = 60 * time.Second

// newCluster prepares a cluster without processes.
func newCluster(cfg Config) (*cluster, error) {
	addrs, err := proc.FreePorts(3 * cfg.Managers)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "leasehold-demo-")
	if err != nil {
		return nil, err
	}
	c := &cluster{
		cfg: cfg, dir: dir, addrs: addrs[:cfg.Managers], pages: addrs[2*cfg.Managers:],
		oracle: oracle.New(cfg.Users), journal: newJournal(), failed: make(chan error, 1),
	}
	managers, owners := named("m", cfg.Managers), named("owner-", cfg.Owners)
	if cfg.TLS {
		if c.certificates, err = newCertificates(filepath.Join(dir, "pki"), managers, owners); err != nil {
			return c, err
		}
	}
	c.addManagers(managers, addrs[cfg.Managers:2*cfg.Managers])
	for _, name := range owners {
		args := []string{"demo-owner", "--name", name, "--managers", strings.Join(c.addrs, ","), "--users", strconv.Itoa(cfg.Users)}
		c.owners = append(c.owners, c.member(pki.Party{Role: pki.Owner, Namespace: namespace, Name: name}, "", c.observe, args))
	}
	c.admin, err = newAdmin(c.addrs, c.certificates.operatorCredentials())
	return c, err
}

// named returns names with numbers.
func named(prefix string, n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = prefix + strconv.Itoa(i+1)
	}
	return names
}

func (c *cluster) addManagers(names, peers []string) {
	group := make([]string, len(names))
	for i, name := range names {
		group[i] = name + "=" + peers[i]
	}
	for i, name := range names {
		args := []string{"demo-manager", "--listen", c.addrs[i], "--http", c.pages[i]}
		if c.cfg.Store == Flease {
			args = append(args, "--store", Flease, "--peers", strings.Join(c.addrs, ","), "--longest-lease", (c.cfg.Lease * 12 / 10).String())
		} else {
			args = append(args, "--name", name, "--members", strings.Join(group, ","), "--data-dir", filepath.Join(c.dir, name))
		}
		c.managers = append(c.managers, c.member(pki.Party{Role: pki.Manager, Name: name}, c.addrs[i], nil, args))
	}
}

func (c *cluster) member(p pki.Party, addr string, output func(io.Reader) error, args []string) *member {
	return &member{addr: addr, Process: proc.Process{
		Name: p.Name, Ended: c.fail,
		Launch: proc.Launch{
			Program: c.cfg.Program, Args: append(args, c.certificates.flags(p)...),
			Log: filepath.Join(c.dir, p.Name+".log"), Output: output,
		},
	}}
}

func (c *cluster) observe(from io.Reader) error { return oracle.ReadRecords(from, c.oracle.Observe) }

// fail ends the demo, if nothing else has.
func (c *cluster) fail(err error) {
	select {
	case c.failed <- err:
	default:
	}
}

// failure returns the error that ends the demo, and nil if there is none. A second call
// returns nil.
func (c *cluster) failure() error {
	select {
	case err := <-c.failed:
		return err
	default:
		return nil
	}
}

// start starts all processes and returns when every key has an owner.
func (c *cluster) start(ctx context.Context) error {
	c.journal.add("starting %d managers and %d owners in %s", len(c.managers), len(c.owners), c.dir)
	if err := startAll(c.managers); err != nil {
		return err
	}
	if err := c.awaitStart(ctx, "a leader", c.ready); err != nil {
		return err
	}
	if err := startAll(c.owners); err != nil {
		return err
	}
	return c.awaitStart(ctx, "an owner for every key", c.settled)
}

func startAll(members []*member) error {
	for _, m := range members {
		if err := m.Start(); err != nil {
			return err
		}
	}
	return nil
}

// awaitStart is await, but returns when a process has failed.
func (c *cluster) awaitStart(ctx context.Context, what string, holds func(context.Context) (bool, error)) error {
	var failed error
	err := await(ctx, "waiting for "+what, startTimeout, func(ctx context.Context) (bool, error) {
		if failed = c.failure(); failed != nil {
			return true, nil //nolint:nilerr // there is nothing to wait for any more
		}
		return holds(ctx)
	})
	if err != nil && ctx.Err() == nil {
		err = fmt.Errorf("%w; %s", err, proc.Tail(c.managers[0].Launch.Log))
	}
	return errors.Join(err, failed)
}

// ready reports whether there is a leader, and creates the namespace.
func (c *cluster) ready(ctx context.Context) (bool, error) {
	led, err := c.admin.leader(ctx, 0)
	if err != nil {
		return false, err
	}
	if err := c.admin.create(ctx, &c.cfg); err != nil {
		return false, err
	}
	c.journal.add("%s leads", c.nameOf(led.leader))
	for i, m := range c.managers {
		c.journal.add("the dashboard of %s is at %s", m.Name, c.page(i))
	}
	return true, nil
}

// page is the URL of a manager's dashboard. With TLS a browser needs a certificate for it.
func (c *cluster) page(i int) string { return c.cfg.scheme() + "://" + c.pages[i] + "/" }

// settled reports whether every owner is a member and has leases, and every key has an
// owner.
func (c *cluster) settled(ctx context.Context) (bool, error) {
	all, err := c.admin.owners(ctx)
	if err != nil {
		return false, err
	}
	settled := make(map[string]bool)
	for _, o := range all {
		if isMember(o) && o.GetLeases() > 0 {
			settled[o.GetHolder().GetOwner()] = true
		}
	}
	for _, o := range c.owners {
		if !settled[o.Name] {
			return false, fmt.Errorf("%s has no leases yet", o.Name)
		}
	}
	ranges, err := c.admin.ranges(ctx)
	if err != nil {
		return false, err
	}
	for _, r := range ranges {
		if r.GetOwner() == "" {
			return false, leasehold.Errorf("demo", leasehold.ErrNoOwner, "", "there are keys without an owner")
		}
	}
	return true, nil
}

// settledAndStill reports whether all is settled and nothing moves.
func (c *cluster) settledAndStill(ctx context.Context) (bool, error) {
	if ok, err := c.settled(ctx); !ok {
		return false, err
	}
	moves, err := c.admin.moves(ctx)
	if err == nil && moves > 0 {
		err = fmt.Errorf("%d ranges are moving", moves)
	}
	return err == nil, err
}

func isMember(o *leaseholdv1.OwnerStatus) bool {
	return o.GetState() == leaseholdv1.OwnerState_OWNER_STATE_MEMBER
}

// managerAt returns the manager with an address, nil if there is none.
func (c *cluster) managerAt(addr string) *member {
	if i := slices.Index(c.addrs, addr); i >= 0 {
		return c.managers[i]
	}
	return nil
}

// nameOf names the manager with an address.
func (c *cluster) nameOf(addr string) string {
	if m := c.managerAt(addr); m != nil {
		return m.Name
	}
	return addr
}

// close kills all processes, waits for their end, and removes their files unless they are
// to be kept.
func (c *cluster) close() error {
	var closing sync.WaitGroup
	for _, m := range slices.Concat(c.owners, c.managers) {
		closing.Go(m.Close)
	}
	closing.Wait()
	if c.admin != nil {
		c.admin.Close()
	}
	c.certificates.close()
	if c.cfg.Keep {
		return nil
	}
	return os.RemoveAll(c.dir)
}
