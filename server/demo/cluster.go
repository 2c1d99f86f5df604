package demo

import (
	"context"
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
	"github.com/leasehold-dev/leasehold/admin"
	"github.com/leasehold-dev/leasehold/internal/runtime/pki"
	"github.com/leasehold-dev/leasehold/internal/testkit/oracle"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
	"github.com/leasehold-dev/leasehold/server/proc"
)

// A cluster is the processes of a demo and their files.
type cluster struct {
	cfg          Config
	dir          string
	managers     *proc.Managers
	owners       []*proc.Process
	admin        *admin.Client
	certificates *certificates // of all processes; nil for plain text
	oracle       *oracle.Oracle
	journal      *journal
	restarting   atomic.Pointer[string] // name of the owner that is being restarted; nil if none is

	fail func(error) // ends the demo; the first call counts
}

const (
	// patience bounds the time until the cluster has started or recovered. Its processes compete
	// for few processors.
	patience     = 90 * time.Second
	adminTimeout = time.Second // of one request to one manager
)

func newCluster(cfg Config, j *journal, fail func(error)) (*cluster, error) {
	dir, err := os.MkdirTemp("", "leasehold-demo-")
	if err != nil {
		return nil, err
	}
	c := &cluster{cfg: cfg, dir: dir, oracle: oracle.New(cfg.Users), journal: j, fail: fail}
	owners := named("owner-", cfg.Owners)
	if cfg.TLS {
		if c.certificates, err = newCertificates(filepath.Join(dir, "pki"), named("m", cfg.Managers), owners); err != nil {
			return c, err
		}
	}
	operator, _ := c.certificates.credentials()
	c.managers, err = proc.NewManagers(proc.ManagersConfig{
		Program: cfg.Program, Command: "demo-manager", Dir: dir, Count: cfg.Managers, Diskless: cfg.Store == Flease,
		Flags: c.managerFlags, Ended: c.fail, Credentials: operator, Timeout: adminTimeout,
	})
	if err != nil {
		return c, err
	}
	addrs := c.managers.Addrs()
	for _, name := range owners {
		args := []string{"demo-owner", "--name", name, "--managers", strings.Join(addrs, ","), "--users", strconv.Itoa(cfg.Users)}
		args = append(args, c.certificates.flags(pki.Party{Role: pki.Owner, Namespace: namespace, Name: name})...)
		c.owners = append(c.owners, &proc.Process{Name: name, Ended: c.fail, Launch: proc.Launch{
			Program: cfg.Program, Args: args, Log: filepath.Join(dir, name+".log"), Output: c.observe, Supervisor: cfg.supervisor(),
		}})
	}
	c.admin, err = admin.New(admin.Config{Managers: addrs, Timeout: time.Duration(len(addrs)) * adminTimeout, Credentials: operator})
	return c, err
}

func named(prefix string, n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = prefix + strconv.Itoa(i+1)
	}
	return names
}

func (c *cluster) managerFlags(m proc.Member) []string {
	flags := c.certificates.flags(pki.Party{Role: pki.Manager, Name: m.Name})
	if c.cfg.Store == Flease {
		flags = append(flags, "--longest-lease", (c.cfg.Lease * 12 / 10).String())
	}
	return flags
}

func (c *cluster) observe(from io.Reader) error { return oracle.ReadRecords(from, c.oracle.Observe) }

// start starts all processes and returns when every key has an owner.
func (c *cluster) start(ctx context.Context) error {
	c.journal.add("starting %d managers and %d owners in %s", c.cfg.Managers, c.cfg.Owners, c.dir)
	if err := c.startManagers(); err != nil {
		return err
	}
	if err := await(ctx, "waiting for a leader", c.createNamespace); err != nil {
		return c.withManagerLog(err)
	}
	for _, m := range c.managers.All {
		c.journal.add("the dashboard of %s is at %s", m.Name, c.cfg.scheme()+"://"+m.Member.HTTP+"/")
	}
	if !c.cfg.TLS {
		c.journal.add("to watch the cluster: leasehold top --managers %s", strings.Join(c.managers.Addrs(), ","))
	}
	for _, o := range c.owners {
		if err := o.Start(); err != nil {
			return err
		}
	}
	if err := await(ctx, "waiting for an owner for every key", c.settled); err != nil {
		return c.withManagerLog(err)
	}
	return nil
}

func (c *cluster) startManagers() error {
	for _, m := range c.managers.All {
		if err := m.Start(); err != nil {
			return err
		}
	}
	return nil
}

func (c *cluster) withManagerLog(err error) error {
	return fmt.Errorf("%w; %s", err, proc.Tail(c.managers.All[0].Launch.Log))
}

// createNamespace creates the namespace. It fails while there is no leader.
func (c *cluster) createNamespace(ctx context.Context) error {
	_, err := c.managers.CreateNamespace(ctx, &leaseholdv1.NamespaceConfig{
		Name:   string(namespace),
		Timing: &leaseholdv1.Timing{Lease: int64(c.cfg.Lease), Renew: int64(c.cfg.renew())},
		// All servers share the processors of this computer. Several moves at a time would not
		// end sooner, but each would wait for the others while its keys have no owner.
		Moves: 1,
	})
	return err
}

func (c *cluster) members(ctx context.Context) (map[string]admin.Owner, error) {
	all, err := c.admin.Owners(ctx, string(namespace))
	if err != nil {
		return nil, err
	}
	members := make(map[string]admin.Owner)
	for _, o := range all.Owners {
		if o.State == admin.OwnerMember {
			members[o.Owner] = o
		}
	}
	return members, nil
}

// settled fails unless every owner is a member and has leases, and every key has an owner.
func (c *cluster) settled(ctx context.Context) error {
	members, err := c.members(ctx)
	if err != nil {
		return err
	}
	for _, o := range c.owners {
		if members[o.Name].Leases == 0 {
			return fmt.Errorf("%s has no leases yet", o.Name)
		}
	}
	table, err := c.admin.Ranges(ctx, string(namespace), "")
	if err == nil && slices.ContainsFunc(table.Ranges, func(r admin.Range) bool { return r.Owner == "" }) {
		err = leasehold.Errorf("demo", leasehold.ErrNoOwner, "", "there are keys without an owner")
	}
	return err
}

func (c *cluster) settledAndStill(ctx context.Context) error {
	if err := c.settled(ctx); err != nil {
		return err
	}
	moves, err := c.admin.Moves(ctx, string(namespace))
	if n := moves.UnderWay + moves.Waiting; err == nil && n > 0 {
		err = fmt.Errorf("%d ranges are moving", n)
	}
	return err
}

// followMoves calls moved with the share of each range that moves to another owner with its state,
// until the context ends. Moves while no manager answers are missed.
func (c *cluster) followMoves(ctx context.Context, moved func(share float64)) {
	for ctx.Err() == nil {
		for event, err := range c.admin.Watch(ctx, string(namespace)) {
			if change := event.Change; err == nil && change != nil && change.Kind == admin.ChangeMoved && change.From != change.Owner {
				moved(change.Share())
			}
		}
		proc.Pause(ctx, poll)
	}
}

// close kills all processes, waits for their end, and removes their files unless they are
// to be kept.
func (c *cluster) close() error {
	var closing sync.WaitGroup
	for _, o := range c.owners {
		closing.Go(o.Close)
	}
	if c.managers != nil {
		closing.Go(c.managers.Close)
	}
	closing.Wait()
	if c.admin != nil {
		_ = c.admin.Close() // no request is under way
	}
	c.certificates.close()
	if c.cfg.Keep {
		return nil
	}
	return os.RemoveAll(c.dir)
}

// poll is the interval at which a condition is checked that is waited for.
const poll = 20 * time.Millisecond

// await tries something until there is no error. If it takes too long it returns the last error.
func await(ctx context.Context, what string, try func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := proc.Until(ctx, try); err != nil {
		return leasehold.Errorf("demo", leasehold.ErrUnavailable, "", "%s: not within %v: %w", what, patience, err)
	}
	return nil
}
