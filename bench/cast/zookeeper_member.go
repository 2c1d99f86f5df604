package cast

import (
	"bufio"
	"context"
	"flag"
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
)

// zooKeeperJar is where Debian's packages put ZooKeeper. Its manifest names the
// other archives that it needs.
const zooKeeperJar = "/usr/share/java/zookeeper.jar"

// HaveZooKeeper says what is missing.
func HaveZooKeeper() error {
	if _, err := exec.LookPath("java"); err != nil {
		return fmt.Errorf("there is no java: %w", err)
	}
	if _, err := os.Stat(zooKeeperJar); err != nil {
		return fmt.Errorf("there is no ZooKeeper, which is Debian's package zookeeper: %w", err)
	}
	return nil
}

// A zooKeeperMember is one server of ZooKeeper: Java, under a process that ends it
// when it must end itself.
type zooKeeperMember struct {
	java   *exec.Cmd
	exited chan struct{} // closed when java has ended
}

// startZooKeeper starts a server and waits until it serves clients, for which
// most others must have been started, too.
func startZooKeeper(ctx context.Context, args []string) (Member, string, error) {
	flags := flag.NewFlagSet("zookeeper-member", flag.ContinueOnError)
	index := flags.Int("index", 0, "which server this is")
	dir := flags.String("dir", "", "data directory")
	peers := flags.String("peers", "", "two addresses of each server for the others, in order")
	client := flags.String("client", "", "address for Clients")
	fsync := flags.Bool("fsync", true, "sync the disk before answering")
	if err := flags.Parse(args); err != nil {
		return nil, "", err
	}
	config, err := writeZooKeeperConfig(*index, *dir, strings.Split(*peers, ","), *client, *fsync)
	if err != nil {
		return nil, "", err
	}
	m := &zooKeeperMember{
		java: exec.Command("java", "-Xms512m", "-Xmx512m", "-Dzookeeper.jmx.log4j.disable=true",
			"-cp", zooKeeperJar, "org.apache.zookeeper.server.quorum.QuorumPeerMain", config),
		exited: make(chan struct{}),
	}
	m.java.Stdout, m.java.Stderr = io.Discard, os.Stderr
	if err := m.java.Start(); err != nil {
		return nil, "", fmt.Errorf("starting java: %w", err)
	}
	go func() {
		defer close(m.exited)
		_ = m.java.Wait()
	}()
	info, err := m.await(ctx, *client)
	if err != nil {
		_ = m.Close()
		return nil, "", err
	}
	return m, info, nil
}

// writeZooKeeperConfig writes what a server is told, which is ZooKeeper's example
// but for the addresses and as many clients as come, and returns the file.
func writeZooKeeperConfig(index int, dir string, peers []string, client string, fsync bool) (string, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	text, err := zooKeeperConfig(dir, peers, client, fsync)
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(dir, "myid"), []byte(strconv.Itoa(index+1)), 0o600); err != nil {
		return "", err
	}
	file := filepath.Join(dir, "zoo.cfg")
	return file, os.WriteFile(file, []byte(text), 0o600)
}

func zooKeeperConfig(dir string, peers []string, client string, fsync bool) (string, error) {
	host, port, err := net.SplitHostPort(client)
	if err != nil {
		return "", err
	}
	if len(peers) == 0 || len(peers)%2 != 0 {
		return "", fmt.Errorf("%d addresses of servers: want two for each", len(peers))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "tickTime=2000\ninitLimit=10\nsyncLimit=5\n")
	fmt.Fprintf(&b, "dataDir=%s\nclientPort=%s\nclientPortAddress=%s\n", dir, port, host)
	fmt.Fprintf(&b, "maxClientCnxns=0\nadmin.enableServer=false\n4lw.commands.whitelist=srvr\n")
	if !fsync {
		fmt.Fprintf(&b, "forceSync=no\n")
	}
	server := 0
	for pair := range slices.Chunk(peers, 2) {
		_, election, err := net.SplitHostPort(pair[1])
		if err != nil {
			return "", err
		}
		server++
		fmt.Fprintf(&b, "server.%d=%s:%s\n", server, pair[0], election)
	}
	return b.String(), nil
}

// Await asks the server again and again until it leads or follows.
func (m *zooKeeperMember) await(ctx context.Context, client string) (info string, err error) {
	ctx, cancel := context.WithTimeout(ctx, StartLimit)
	defer cancel()
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	for {
		if s, err := askZooKeeper(ctx, client); err == nil && s.mode != "" {
			return s.mode + " " + s.version, nil
		}
		select {
		case <-again.C:
		case <-m.exited:
			return "", fmt.Errorf("java has ended: %v", m.java.ProcessState)
		case <-ctx.Done():
			return "", fmt.Errorf("ZooKeeper does not serve Clients in %v", StartLimit)
		}
	}
}

// A zooKeeperStatus is what a server says about itself.
type zooKeeperStatus struct {
	version, mode string
}

func askZooKeeper(ctx context.Context, addr string) (zooKeeperStatus, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return zooKeeperStatus{}, err
	}
	defer func() { _ = conn.Close() }()
	deadline, _ := ctx.Deadline()
	if err := conn.SetDeadline(deadline); err != nil {
		return zooKeeperStatus{}, err
	}
	if _, err := io.WriteString(conn, "srvr"); err != nil {
		return zooKeeperStatus{}, err
	}
	return parseZooKeeperStatus(io.LimitReader(conn, 4<<10))
}

// parseZooKeeperStatus reads the answer to srvr. A server that is not part of a
// group yet has no mode.
func parseZooKeeperStatus(from io.Reader) (zooKeeperStatus, error) {
	var s zooKeeperStatus
	lines := bufio.NewScanner(from)
	for lines.Scan() {
		key, value, _ := strings.Cut(lines.Text(), ":")
		switch value = strings.TrimSpace(value); key {
		case "Zookeeper version":
			s.version, _, _ = strings.Cut(value, "-")
		case "Mode":
			s.mode = value
		}
	}
	return s, lines.Err()
}

func (m *zooKeeperMember) Obey(_ context.Context, o Order) (Answer, error) {
	if o.Do != OrderCPU {
		return Answer{}, UnknownOrder(o)
	}
	used, err := CPUTimeOf(m.java.Process.Pid)
	return Answer{CPU: int64(used)}, err
}

// Close asks Java to end, and kills it if it does not.
func (m *zooKeeperMember) Close() error {
	_ = m.java.Process.Signal(syscall.SIGTERM)
	kill := time.AfterFunc(EndLimit/2, func() { _ = m.java.Process.Kill() })
	defer kill.Stop()
	<-m.exited
	return nil
}
