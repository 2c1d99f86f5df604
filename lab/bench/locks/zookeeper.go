package locks

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/leasehold-dev/leasehold/lab/bench/proc"
	process "github.com/leasehold-dev/leasehold/server/proc"
)

// A ZooKeeper is three servers, each a Java process, and the sessions of their clients, all with
// the leader, as in the Flease paper.
//
// An acquisition creates an ephemeral node, which exists as long as the session: one write of
// the log. A session is one lease for all its nodes.
type ZooKeeper struct {
	Version string

	members     proc.Group
	sessions    []*zk.Conn
	swarm       Swarm
	parent      string // of the nodes of the last turn
	paths       []string
	cancelClose func() bool // of the AfterFunc that ends the sessions
}

// maxDeletions is the number of nodes deleted in one request.
const maxDeletions = 1000

// StartZooKeeper starts three servers and their clients. limit is the maximum length of a turn.
func StartZooKeeper(ctx context.Context, dir string, fsync bool, limit time.Duration) (*ZooKeeper, error) {
	const n = 3
	addrs, err := process.FreePorts(3 * n)
	if err != nil {
		return nil, err
	}
	members, err := proc.StartGroup(ctx, roleZooKeeper, n, func(i int) any {
		dir := filepath.Join(dir, "zookeeper-"+strconv.Itoa(i+1))
		return zooKeeperConfig{Index: i, Dir: dir, Peers: addrs[:2*n], Client: addrs[2*n+i], Fsync: fsync}
	})
	if err != nil {
		return nil, err
	}
	z := &ZooKeeper{members: members, swarm: Swarm{members.CPU, limit}}
	if err := z.connect(ctx, addrs[2*n:]); err != nil {
		z.Close()
		return nil, err
	}
	// The client library does not support contexts.
	z.cancelClose = context.AfterFunc(ctx, z.endSessions)
	return z, nil
}

// connect starts one session per client.
func (z *ZooKeeper) connect(ctx context.Context, addrs []string) error {
	all, err := proc.CallAll[ZooKeeperStatus](z.members, "Status", nil)
	if err != nil {
		return err
	}
	z.Version = all[0].Version
	leader := slices.IndexFunc(all, func(s ZooKeeperStatus) bool { return s.Mode == "leader" })
	if leader < 0 {
		return errors.New("no ZooKeeper server leads")
	}
	for range Clients {
		session, events, err := zk.Connect(addrs[leader:leader+1], 30*time.Second, zk.WithLogger(silence{}), zk.WithLogInfo(false))
		if err != nil {
			return fmt.Errorf("connecting to ZooKeeper: %w", err)
		}
		z.sessions = append(z.sessions, session)
		if err := awaitSession(ctx, events); err != nil {
			return err
		}
	}
	return nil
}

func awaitSession(ctx context.Context, events <-chan zk.Event) error {
	ctx, cancel := context.WithTimeout(ctx, proc.StartLimit)
	defer cancel()
	for {
		select {
		case e := <-events:
			if e.State == zk.StateHasSession {
				return nil
			}
		case <-ctx.Done():
			return fmt.Errorf("no ZooKeeper session: %w", ctx.Err())
		}
	}
}

type silence struct{}

func (silence) Printf(string, ...any) {}

// Acquire creates n nodes, or as many as possible within the limit.
func (z *ZooKeeper) Acquire(ctx context.Context, n int, name string) (Turn, error) {
	z.parent = "/" + name
	if _, err := z.sessions[0].Create(z.parent, nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
		return Turn{}, fmt.Errorf("ZooKeeper: creating %s: %w", z.parent, err)
	}
	made := make([][]string, Clients)
	t, err := z.swarm.Run(ctx, n, name, func(ctx context.Context, client int, resource string) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		path := z.parent + "/" + resource
		if _, err := z.sessions[client].Create(path, []byte(strconv.Itoa(client)), zk.FlagEphemeral, zk.WorldACL(zk.PermAll)); err != nil {
			return fmt.Errorf("ZooKeeper: creating %s: %w", path, err)
		}
		made[client] = append(made[client], path)
		return nil
	})
	z.paths = slices.Concat(made...)
	return t, err
}

// Release deletes the nodes of the last turn.
func (z *ZooKeeper) Release(context.Context) error {
	for paths := range slices.Chunk(append(z.paths, z.parent), maxDeletions) {
		var requests []any
		for _, path := range paths {
			requests = append(requests, &zk.DeleteRequest{Path: path, Version: -1})
		}
		if _, err := z.sessions[0].Multi(requests...); err != nil {
			return fmt.Errorf("ZooKeeper: deleting nodes: %w", err)
		}
	}
	return nil
}

func (z *ZooKeeper) endSessions() {
	_ = proc.Each(len(z.sessions), func(i int) error {
		z.sessions[i].Close()
		return nil
	})
}

// Close ends all sessions and servers.
func (z *ZooKeeper) Close() {
	if z.cancelClose != nil {
		z.cancelClose()
	}
	z.endSessions()
	z.members.Close()
}

// zooKeeperJar is the path of Debian's package. Its manifest names the other archives.
const zooKeeperJar = "/usr/share/java/zookeeper.jar"

// HaveZooKeeper returns an error if Java or ZooKeeper is not installed.
func HaveZooKeeper() error {
	if _, err := exec.LookPath("java"); err != nil {
		return fmt.Errorf("java is not installed: %w", err)
	}
	if _, err := os.Stat(zooKeeperJar); err != nil {
		return fmt.Errorf("ZooKeeper is not installed (Debian's package zookeeper): %w", err)
	}
	return nil
}

type zooKeeperConfig struct {
	Index  int
	Dir    string   // for its data
	Peers  []string // two addresses of each server for the others, in order
	Client string   // its address for clients
	Fsync  bool     // sync the disk before answering
}

// A ZooKeeperMember is a server of ZooKeeper: a Java process, which ends with this one.
type ZooKeeperMember struct {
	java   *exec.Cmd
	exited chan struct{} // closed when java has ended
	status ZooKeeperStatus
}

// startZooKeeper starts a server, and waits until it serves clients, which requires a quorum.
func startZooKeeper(ctx context.Context, c zooKeeperConfig) (*ZooKeeperMember, error) {
	file, err := c.write()
	if err != nil {
		return nil, err
	}
	m := &ZooKeeperMember{
		java: exec.Command("java", "-Xms512m", "-Xmx512m", "-Dzookeeper.jmx.log4j.disable=true",
			"-cp", zooKeeperJar, "org.apache.zookeeper.server.quorum.QuorumPeerMain", file),
		exited: make(chan struct{}),
	}
	m.java.Stdout, m.java.Stderr = io.Discard, os.Stderr
	if err := m.java.Start(); err != nil {
		return nil, fmt.Errorf("starting java: %w", err)
	}
	go func() {
		defer close(m.exited)
		_ = m.java.Wait()
	}()
	if err := m.await(ctx, c.Client); err != nil {
		_ = m.Close()
		return nil, err
	}
	return m, nil
}

func (c zooKeeperConfig) write() (string, error) {
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return "", err
	}
	text, err := c.text()
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(c.Dir, "myid"), []byte(strconv.Itoa(c.Index+1)), 0o600); err != nil {
		return "", err
	}
	file := filepath.Join(c.Dir, "zoo.cfg")
	return file, os.WriteFile(file, []byte(text), 0o600)
}

// text returns ZooKeeper's example configuration, with addresses and without a limit of clients.
func (c zooKeeperConfig) text() (string, error) {
	host, port, err := net.SplitHostPort(c.Client)
	if err != nil {
		return "", err
	}
	if len(c.Peers) == 0 || len(c.Peers)%2 != 0 {
		return "", fmt.Errorf("%d addresses of servers: want two for each", len(c.Peers))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "tickTime=2000\ninitLimit=10\nsyncLimit=5\n")
	fmt.Fprintf(&b, "dataDir=%s\nclientPort=%s\nclientPortAddress=%s\n", c.Dir, port, host)
	fmt.Fprintf(&b, "maxClientCnxns=0\nadmin.enableServer=false\n4lw.commands.whitelist=srvr\n")
	if !c.Fsync {
		fmt.Fprintf(&b, "forceSync=no\n")
	}
	server := 0
	for pair := range slices.Chunk(c.Peers, 2) {
		_, election, err := net.SplitHostPort(pair[1])
		if err != nil {
			return "", err
		}
		server++
		fmt.Fprintf(&b, "server.%d=%s:%s\n", server, pair[0], election)
	}
	return b.String(), nil
}

func (m *ZooKeeperMember) await(ctx context.Context, client string) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		<-m.exited
		cancel(fmt.Errorf("java ended: %v", m.java.ProcessState))
	}()
	return proc.Until(ctx, 100*time.Millisecond, func(ctx context.Context) (err error) {
		m.status, err = askZooKeeper(ctx, client)
		if err == nil && m.status.Mode == "" {
			err = fmt.Errorf("ZooKeeper does not serve clients yet")
		}
		return err
	})
}

// A ZooKeeperStatus is the status of a server. It has no mode before it is part of a quorum.
type ZooKeeperStatus struct{ Version, Mode string }

// Status returns the status at the start.
func (m *ZooKeeperMember) Status(_ struct{}, status *ZooKeeperStatus) error {
	*status = m.status
	return nil
}

func askZooKeeper(ctx context.Context, addr string) (ZooKeeperStatus, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return ZooKeeperStatus{}, err
	}
	defer func() { _ = conn.Close() }()
	deadline, _ := ctx.Deadline()
	if err := conn.SetDeadline(deadline); err != nil {
		return ZooKeeperStatus{}, err
	}
	if _, err := io.WriteString(conn, "srvr"); err != nil {
		return ZooKeeperStatus{}, err
	}
	return parseZooKeeperStatus(io.LimitReader(conn, 4<<10))
}

func parseZooKeeperStatus(from io.Reader) (s ZooKeeperStatus, err error) {
	lines := bufio.NewScanner(from)
	for lines.Scan() {
		key, value, _ := strings.Cut(lines.Text(), ":")
		switch value = strings.TrimSpace(value); key {
		case "Zookeeper version":
			s.Version, _, _ = strings.Cut(value, "-")
		case "Mode":
			s.Mode = value
		}
	}
	return s, lines.Err()
}

// CPUTime returns the CPU time of Java.
func (m *ZooKeeperMember) CPUTime() (time.Duration, error) {
	used, err := proc.UsageOf(m.java.Process.Pid)
	return time.Duration(used.CPU * float64(time.Second)), err
}

// Close sends SIGTERM to Java, and kills it after a timeout.
func (m *ZooKeeperMember) Close() error {
	_ = m.java.Process.Signal(syscall.SIGTERM)
	kill := time.AfterFunc(proc.EndLimit/2, func() { _ = m.java.Process.Kill() })
	defer kill.Stop()
	<-m.exited
	return nil
}
