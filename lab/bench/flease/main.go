// Command flease compares package flease with etcd and ZooKeeper in one run, on
// one computer: how many leases can be acquired in a second? It repeats figures 3,
// 4 and 5 of the Flease paper. docs/flease.md describes the method.
//
//	cd lab/bench && go run ./flease                     all parts, some minutes
//	cd lab/bench && go run ./flease -quick              the contest only, short and rough
//	cd lab/bench && go run ./flease -only disk          one part: contest, batches, disk or groups
//	cd lab/bench && go run ./flease -docs ../../docs    also stores the result and writes BENCHMARKS.md
//
// Each contestant is three processes on the loopback. The three Flease processes
// each acquire a batch of leases on new resources at the same time, as all machines
// do in the paper. Lock services receive as many requests, from 256 clients in this
// process. The measured time is from the first request to the last reply. Releases
// are not measured.
//
// The processes are this program, started again with a role; see [roles].
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"go.etcd.io/etcd/api/v3/version"

	"github.com/leasehold-dev/leasehold/flease"
	"github.com/leasehold-dev/leasehold/lab/bench/locks"
	"github.com/leasehold-dev/leasehold/lab/bench/proc"
	"github.com/leasehold-dev/leasehold/lab/bench/report"
	"github.com/leasehold-dev/leasehold/lab/fleasebench"
)

const about = "How many leases can be acquired in a second, without a lock server and with one? [flease.md](flease.md) describes the method and\n" +
	"discusses the results. Each contestant is three processes on one computer that acquire batches of 10,000 leases. Figures 3, 4 and 5 repeat\n" +
	"those of the Flease paper."

// The contestants' names, in tables and plots.
const (
	nameFlease        = "flease"
	nameSealed        = "flease, sealed"
	nameFloor         = "datagrams alone"
	nameEtcd          = "etcd"
	nameEtcdClient    = "etcd, lease per client"
	nameEtcdSync      = "etcd, fsync"
	nameZooKeeper     = "ZooKeeper"
	nameZooKeeperSync = "ZooKeeper, fsync"
)

func acquisition(name string) string {
	return map[string]string{
		nameFlease:        "a lease agreed upon by 2 of 3 processes, AcquireAll",
		nameSealed:        "the same, packets encrypted and authenticated",
		nameFloor:         "two rounds of questions and answers, 64 in a datagram, no leases",
		nameEtcd:          "a lease granted, a key put if it is absent; UnsafeNoFsync",
		nameEtcdClient:    "a key put if it is absent, under the client's one lease; UnsafeNoFsync",
		nameEtcdSync:      "a lease granted, a key put if it is absent",
		nameZooKeeper:     "an ephemeral node created; forceSync=no",
		nameZooKeeperSync: "an ephemeral node created",
	}[name]
}

// proposers is the number of processes that acquire leases at a time. In the paper's
// experiments all machines submit a batch at the same time; so do the three Flease
// processes, each for its own resources. Clients of lock services acquire the same
// number of leases.
const proposers = 3

// usualBatch is the batch size of each process.
const usualBatch = 10_000

func main() {
	proc.Play(roles())
	o := &options{}
	report.Main(report.Benchmark{
		Name: "flease", Number: 8, Title: "Flease", About: about, Rounds: 5, Quick: 1,
		Modules: []string{"github.com/go-zookeeper/zk", "go.etcd.io/etcd/server/v3"},
		Parts:   []string{partContest, partBatches, partDisk, partGroups}, QuickPart: partContest,
		Flags: o.flags, Run: o.run,
	})
}

const (
	roleFlease = "flease-member"
	roleFloor  = "floor-member"
	roleWriter = "disk-writer"
)

func roles() map[string]proc.Role {
	all := locks.Roles()
	all[roleFlease] = proc.RoleOf(fleasebench.StartMember)
	all[roleFloor] = proc.RoleOf(startFloorMember)
	all[roleWriter] = proc.RoleOf(startWriter)
	return all
}

type options struct {
	warm int
	turn time.Duration
}

func (o *options) flags(flags *flag.FlagSet) {
	flags.IntVar(&o.warm, "warm", 3, "turns before those that count")
	flags.DurationVar(&o.turn, "turn", time.Second, "about how long a turn is")
}

// complete shortens a quick run, and validates the options.
func (o *options) complete(quick bool) error {
	if quick {
		o.warm, o.turn = min(o.warm, 1), min(o.turn, 300*time.Millisecond)
	}
	if o.warm < 0 || o.warm > 100 || o.turn < 10*time.Millisecond || o.turn > time.Minute {
		return errors.New("want 0 to 100 turns to warm up, of 10 ms to 1 min each")
	}
	return nil
}

// steps returns the number of turns.
func (o *options) steps(r *report.Run) int {
	const all, compared, disk = 8, 4, 5
	n := o.warm * (all + 2*javaTurns)
	for part, each := range map[string]int{
		partContest: all, partBatches: compared * len(batchSizes()), partDisk: disk, partGroups: len(groupSizes()),
	} {
		if r.Wants(part) {
			n += r.Rounds * (each + 1)
		}
	}
	return n
}

// run runs the wanted parts. All processes have ended when it returns.
func (o *options) run(ctx context.Context, r *report.Run) (err error) {
	if err := o.complete(r.Quick); err != nil {
		return err
	}
	r.Expect(o.steps(r))
	files := fileSystem(r.Dir)
	if files == memoryFiles {
		return fmt.Errorf("%s is in memory: name a directory on a disk with -dir", r.Dir)
	}
	f := &findings{Versions: []string{"data on " + files}}
	c := &contest{Contest: locks.Contest{Length: o.turn, Step: r.Step}, run: r}
	if r.Wants(partContest) || r.Wants(partBatches) || r.Wants(partDisk) {
		if err := c.sideBySide(ctx, o, f); err != nil {
			return err
		}
	}
	if r.Wants(partGroups) {
		if f.Groups, err = c.groupFigure(ctx); err != nil {
			return err
		}
	}
	f.conclude(r)
	return nil
}

func (c *contest) sideBySide(ctx context.Context, o *options, f *findings) error {
	dir := c.run.Dir
	c.Step("starting flease, etcd and ZooKeeper, three processes each")
	openers := []locks.Opener{
		openGroup(nameFlease, func(ctx context.Context) (*group, error) {
			return startFlease(ctx, proposers, flease.DefaultLease, false)
		}),
		openGroup(nameSealed, func(ctx context.Context) (*group, error) {
			return startFlease(ctx, proposers, flease.DefaultLease, true)
		}),
		openGroup(nameFloor, startFloor),
		openEtcd(filepath.Join(dir, "etcd"), false, o.turn), openEtcd(filepath.Join(dir, "etcd-fsync"), true, o.turn),
	}
	f.Versions = append(f.Versions, "etcd "+version.Version)
	if err := locks.HaveZooKeeper(); err != nil {
		c.run.Skip("ZooKeeper", err)
	} else {
		openers = append(openers,
			f.openZooKeeper(nameZooKeeper, filepath.Join(dir, "zookeeper"), false, o.turn),
			f.openZooKeeper(nameZooKeeperSync, filepath.Join(dir, "zookeeper-fsync"), true, o.turn))
	}
	all, end, err := locks.Open(ctx, openers...)
	if err != nil {
		return err
	}
	defer end()
	if err := c.warmUp(ctx, all, o.warm); err != nil {
		return err
	}
	if c.run.Wants(partBatches) {
		if f.Batches, err = c.batchFigure(ctx, all); err != nil {
			return err
		}
	}
	if c.run.Wants(partDisk) {
		if f.Disk, f.Written, err = c.diskFigure(ctx, all, dir); err != nil {
			return err
		}
	}
	if !c.run.Wants(partContest) {
		return nil
	}
	turns, err := c.Rounds(ctx, all, c.run.Rounds, "side by side") // last, when compilers and caches are warm
	for i, e := range all {
		f.Contest = append(f.Contest, point{e.Name, usualBatch, locks.RateOf(turns[i])})
	}
	return err
}

func openGroup(name string, start func(context.Context) (*group, error)) locks.Opener {
	return func(ctx context.Context) ([]locks.Entry, func(), error) {
		g, err := start(ctx)
		if err != nil {
			return nil, nil, err
		}
		return []locks.Entry{entry(name, g)}, g.close, nil
	}
}

func entry(name string, s locks.Service) locks.Entry {
	return locks.Entry{Name: name, Batch: proposers * usualBatch, Service: s}
}

// openEtcd starts one cluster. Without fsync it is used in two ways.
func openEtcd(dir string, fsync bool, turn time.Duration) locks.Opener {
	return func(ctx context.Context) ([]locks.Entry, func(), error) {
		e, err := locks.StartEtcd(ctx, 3, dir, fsync)
		if err != nil {
			return nil, nil, err
		}
		if fsync {
			return []locks.Entry{entry(nameEtcdSync, e.PerLock(turn))}, e.Close, nil
		}
		perClient, err := e.PerClient(turn)
		return []locks.Entry{entry(nameEtcd, e.PerLock(turn)), entry(nameEtcdClient, perClient)}, e.Close, err
	}
}

func (f *findings) openZooKeeper(name, dir string, fsync bool, turn time.Duration) locks.Opener {
	return func(ctx context.Context) ([]locks.Entry, func(), error) {
		z, err := locks.StartZooKeeper(ctx, dir, fsync, turn)
		if err != nil {
			return nil, nil, err
		}
		if !fsync {
			f.Versions = append(f.Versions, "ZooKeeper "+z.Version+" on "+javaVersion(ctx))
		}
		return []locks.Entry{entry(name, z)}, z.Close, nil
	}
}

func javaVersion(ctx context.Context) string {
	text, err := exec.CommandContext(ctx, "java", "-version").CombinedOutput()
	if err != nil {
		return "unknown Java"
	}
	first, _, _ := strings.Cut(string(text), "\n")
	return strings.ReplaceAll(first, `"`, "")
}

// memoryFiles is the name of a file system without a disk.
const memoryFiles = "tmpfs"

func fileSystem(dir string) string {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return "unknown"
	}
	names := map[uint32]string{
		0xef53: "ext4", 0x58465342: "xfs", 0x9123683e: "btrfs", 0x794c7630: "overlayfs", 0x01021994: memoryFiles,
	}
	return cmp.Or(names[uint32(s.Type)], fmt.Sprintf("file system %#x", uint32(s.Type)))
}

// A group is processes that all acquire leases: of Flease, or of the floor.
type group struct {
	members proc.Group
	size    int // of a quorum group
}

func startFlease(ctx context.Context, members int, lease time.Duration, sealed bool) (*group, error) {
	g, err := fleasebench.Start(ctx, roleFlease, members, fleasebench.MemberConfig{
		Lease: lease, Sealed: sealed, Subgroups: members > proposers, // by default all members agree on every lease
	})
	return &group{members: g, size: 3}, err
}

func (g *group) Acquire(_ context.Context, n int, name string) (locks.Turn, error) {
	if err := fleasebench.Prepare(g.members, fleasebench.Order{Batch: n / len(g.members), Name: name, Group: g.size}); err != nil {
		return locks.Turn{}, err
	}
	b, err := fleasebench.Acquire(g.members)
	return locks.Turn{Leases: b.Leases, Took: b.Took(), CPU: b.CPU}, err
}

func (g *group) Release(context.Context) error { return fleasebench.Release(g.members) }

func (g *group) close() { g.members.Close() }
