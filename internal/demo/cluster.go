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
	"github.com/leasehold-dev/leasehold/internal/child"
	"github.com/leasehold-dev/leasehold/internal/pki"
	"github.com/leasehold-dev/leasehold/internal/witness"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// A cluster is the processes of a demo and what they leave on disk.
type cluster struct {
	cfg      Config
	dir      string
	addrs    []string // of the managers
	pages    []string // of their dashboards
	managers []*member
	owners   []*member
	admin    *admin
	// certificates are those of all processes; nil for plain text.
	certificates *certificates
	oracle       *witness.Oracle
	journal      *journal
	moved        movedCount
	// restarting is the owner that is being restarted; nil or empty if none is.
	restarting atomic.Pointer[string]

	failed chan error // gets the first of the troubles that end a demo
}

// Patience with processes that start. They compete for few processors.
const (
	managersPatience = 60 * time.Second
	ownersPatience   = 60 * time.Second
)

// newCluster prepares a cluster that has no process yet.
func newCluster(cfg Config) (*cluster, error) {
	addrs, err := child.FreePorts(3 * cfg.Managers)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "leasehold-demo-")
	if err != nil {
		return nil, err
	}
	c := &cluster{
		cfg: cfg, dir: dir, addrs: addrs[:cfg.Managers], pages: addrs[2*cfg.Managers:],
		oracle: witness.NewOracle(cfg.Users), journal: newJournal(), failed: make(chan error, 1),
	}
	managers, owners := named("m", cfg.Managers), named("owner-", cfg.Owners)
	if cfg.TLS {
		if c.certificates, err = newCertificates(filepath.Join(dir, "pki"), managers, owners); err != nil {
			return c, err
		}
	}
	c.nameManagers(addrs[cfg.Managers : 2*cfg.Managers])
	for _, name := range owners {
		c.owners = append(c.owners, c.member(name, "", c.observe, append([]string{
			"demo-owner",
			"--name", name, "--managers", strings.Join(c.addrs, ","), "--users", strconv.Itoa(cfg.Users),
		}, c.certificates.flags(pki.Party{Role: pki.Owner, Namespace: namespace, Name: name})...)...))
	}
	c.admin, err = newAdmin(c.addrs, c.certificates.ordering())
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

func (c *cluster) nameManagers(peers []string) {
	manager := func(i int, args ...string) {
		name := fmt.Sprintf("m%d", i+1)
		args = append([]string{"demo-manager", "--listen", c.addrs[i], "--http", c.pages[i]}, args...)
		c.managers = append(c.managers, c.member(name, c.addrs[i], nil,
			append(args, c.certificates.flags(pki.Party{Role: pki.Manager, Name: name})...)...))
	}
	if c.cfg.Store == Flease {
		for i := range c.addrs {
			manager(i, "--store", Flease, "--peers", strings.Join(c.addrs, ","), "--longest-lease", (c.cfg.Lease * 12 / 10).String())
		}
		return
	}
	var group []string
	for i, addr := range peers {
		group = append(group, fmt.Sprintf("m%d=%s", i+1, addr))
	}
	for i := range c.addrs {
		name := fmt.Sprintf("m%d", i+1)
		manager(i, "--name", name, "--members", strings.Join(group, ","), "--data-dir", filepath.Join(c.dir, name))
	}
}

func (c *cluster) member(name, addr string, output func(io.Reader) error, args ...string) *member {
	return &member{addr: addr, Child: child.Child{
		Name: name, Ended: c.fail,
		Launch: child.Launch{Program: c.cfg.Program, Args: args, Log: filepath.Join(c.dir, name+".log"), Output: output},
	}}
}

func (c *cluster) observe(from io.Reader) error { return witness.Read(from, c.oracle.Observe) }

// fail ends the demo, if nothing else has.
func (c *cluster) fail(err error) {
	select {
	case c.failed <- err:
	default:
	}
}

// failure returns what has failed since it was last asked, nil if nothing has.
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
	if err := c.awaitStart(ctx, "a leader", managersPatience, c.ready); err != nil {
		return err
	}
	if err := startAll(c.owners); err != nil {
		return err
	}
	return c.awaitStart(ctx, "an owner for every key", ownersPatience, c.settled)
}

func startAll(members []*member) error {
	for _, m := range members {
		if err := m.Start(); err != nil {
			return err
		}
	}
	return nil
}

// awaitStart is await, but does not go on waiting for a process that is gone.
func (c *cluster) awaitStart(ctx context.Context, what string, patience time.Duration, yes func(context.Context) (bool, error)) error {
	var failed error
	err := await(ctx, "waiting for "+what, patience, func(ctx context.Context) (bool, error) {
		failed = c.failure()
		if failed != nil {
			return true, nil //nolint:nilerr // there is nothing to wait for any more
		}
		return yes(ctx)
	})
	if err != nil && ctx.Err() == nil {
		err = fmt.Errorf("%w; %s", err, child.Tail(c.managers[0].Launch.Log))
	}
	return errors.Join(err, failed)
}

// ready says whether somebody leads and has the namespace.
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
func (c *cluster) page(i int) string {
	if c.cfg.TLS {
		return "https://" + c.pages[i] + "/"
	}
	return "http://" + c.pages[i] + "/"
}

// settled says whether every owner takes part and has leases, and every key has
// an owner.
func (c *cluster) settled(ctx context.Context) (bool, error) {
	all, err := c.admin.owners(ctx)
	if err != nil {
		return false, err
	}
	settled := make(map[string]bool)
	for _, o := range all {
		if takesPart(o) && o.GetLeases() > 0 {
			settled[o.GetHolder().GetOwner()] = true
		}
	}
	for _, o := range c.owners {
		if !settled[o.Name] {
			return false, fmt.Errorf("%s has no leases yet", o.Name)
		}
	}
	return c.allOwned(ctx)
}

func takesPart(o *leaseholdv1.OwnerStatus) bool {
	return o.GetState() == leaseholdv1.OwnerState_OWNER_STATE_MEMBER
}

// members returns the names of the owners that take part.
func (c *cluster) members(ctx context.Context) (map[string]bool, error) {
	owners, err := c.admin.owners(ctx)
	found := make(map[string]bool)
	for _, o := range owners {
		if takesPart(o) {
			found[o.GetHolder().GetOwner()] = true
		}
	}
	return found, err
}

func (c *cluster) allOwned(ctx context.Context) (bool, error) {
	ranges, err := c.admin.ranges(ctx)
	if err != nil {
		return false, err
	}
	for _, r := range ranges {
		if r.GetOwner() == "" {
			return false, leasehold.Errorf("demo", leasehold.NoOwner, "", "there are keys without an owner")
		}
	}
	return true, nil
}

// nameOf names the manager with an address.
func (c *cluster) nameOf(addr string) string {
	for _, m := range c.managers {
		if m.addr == addr {
			return m.Name
		}
	}
	return addr
}

// close kills all processes, waits until they are gone, and removes what they
// left behind, unless it is to be kept.
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
