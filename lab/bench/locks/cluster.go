package locks

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"go.uber.org/zap"

	"github.com/leasehold-dev/leasehold/lab/bench/proc"
	process "github.com/leasehold-dev/leasehold/server/proc"
)

const programName = "etcd"

// Play runs etcd if the command line of this process begins with its name, and exits. Every main
// function and TestMain that starts etcd calls it first.
func Play() {
	if len(os.Args) > 1 && os.Args[1] == programName {
		etcdmain.Main(os.Args[1:])
		os.Exit(0)
	}
}

// connections is the number of shared connections of etcd's clients, all to the leader. Of 1, 4,
// 16 and 256 this took the least CPU per lease.
const connections = 4

// An Etcd is the members of a cluster, each in a process, this program again, and the connections
// of their clients, all to the leader, as in the Flease paper.
type Etcd struct {
	Addrs  []string // of all members, for clients
	Leader string
	Conns  []*clientv3.Client

	members []*process.Process
}

// StartEtcd starts n members, and waits until one leads.
func StartEtcd(ctx context.Context, n int, dir string, fsync bool) (e *Etcd, err error) {
	if fsync && inMemory(filepath.Dir(dir)) {
		return nil, fmt.Errorf("%s is in memory: name a directory on a disk with -dir", dir)
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	addrs, err := process.FreePorts(2 * n)
	if err != nil {
		return nil, err
	}
	e = &Etcd{Addrs: addrs[n:]}
	defer func() {
		if err != nil {
			e.Close()
		}
	}()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	for i := range n {
		m := &process.Process{Name: memberName(i), Launch: process.Launch{
			Program: self, Args: memberArgs(i, dir, addrs[:n], addrs[n+i], fsync), Log: filepath.Join(dir, memberName(i)+".log"),
		}}
		if err := m.Start(); err != nil {
			return nil, err
		}
		e.members = append(e.members, m)
	}
	if err := e.connect(ctx); err != nil {
		return nil, fmt.Errorf("%w; %s", err, process.Tail(e.members[0].Launch.Log))
	}
	return e, nil
}

func memberName(index int) string { return "etcd-" + strconv.Itoa(index+1) }

// memberArgs returns etcd's default configuration, except for addresses, the directory, the log
// level, a quota that a long benchmark does not reach, and an election timeout for busy machines.
func memberArgs(index int, dir string, peers []string, client string, fsync bool) []string {
	var cluster []string
	for i, addr := range peers {
		cluster = append(cluster, memberName(i)+"=http://"+addr)
	}
	return []string{
		programName, "--name", memberName(index), "--data-dir", filepath.Join(dir, memberName(index)), "--log-level", "error",
		"--initial-cluster", strings.Join(cluster, ","), "--quota-backend-bytes", strconv.Itoa(8 << 30), "--election-timeout", "3000",
		"--listen-peer-urls", "http://" + peers[index], "--initial-advertise-peer-urls", "http://" + peers[index],
		"--listen-client-urls", "http://" + client, "--advertise-client-urls", "http://" + client,
		"--unsafe-no-fsync=" + strconv.FormatBool(!fsync),
	}
}

func inMemory(dir string) bool {
	const tmpfs = 0x01021994
	var s syscall.Statfs_t
	return syscall.Statfs(dir, &s) == nil && uint32(s.Type) == tmpfs
}

// connect waits for a leader, and connects to it.
func (e *Etcd) connect(ctx context.Context) error {
	first, err := dialEtcd(ctx, e.Addrs[0])
	if err != nil {
		return err
	}
	defer func() { _ = first.Close() }()
	err = proc.Until(ctx, 50*time.Millisecond, func(ctx context.Context) error {
		for _, addr := range e.Addrs {
			s, err := first.Status(ctx, "http://"+addr)
			if err != nil {
				return fmt.Errorf("the leader of etcd: %w", err)
			}
			if s.Header.MemberId == s.Leader {
				e.Leader = addr
			}
		}
		if e.Leader == "" {
			return errors.New("no etcd member leads")
		}
		return nil
	})
	for range connections {
		if err != nil {
			return err
		}
		var conn *clientv3.Client
		if conn, err = dialEtcd(ctx, e.Leader); err == nil {
			e.Conns = append(e.Conns, conn)
		}
	}
	return err
}

func dialEtcd(ctx context.Context, addr string) (*clientv3.Client, error) {
	conn, err := clientv3.New(clientv3.Config{
		Context: ctx, Endpoints: []string{"http://" + addr}, DialTimeout: proc.StartLimit, Logger: zap.NewNop(),
	})
	if err != nil {
		return nil, fmt.Errorf("connecting to etcd: %w", err)
	}
	return conn, nil
}

// CPU returns the CPU time of all members.
func (e *Etcd) CPU() (sum time.Duration, err error) {
	for _, m := range e.members {
		used, err := proc.UsageOf(m.Pid())
		if err != nil {
			return 0, err
		}
		sum += used.CPU
	}
	return sum, nil
}

func (e *Etcd) conn(client int) *clientv3.Client { return e.Conns[client%len(e.Conns)] }

// Close ends all members.
func (e *Etcd) Close() {
	for _, conn := range e.Conns {
		_ = conn.Close() // its server ends next
	}
	for _, m := range e.members {
		m.Close()
	}
}
