package cast

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
)

// A ZooKeeper is three servers of ZooKeeper, each a Java process, and the
// sessions of their clients, all with the leader as in the paper.
//
// To acquire is to create a node that is there only while the session is: an
// ephemeral one. Whoever finds it there knows that another has the lock. One
// write of the group's log; a session is one lease for all its nodes.
type ZooKeeper struct {
	members  Group
	sessions []*zk.Conn
	swarm    Swarm
	Version  string
	parent   string // of the nodes of the last turn
	paths    []string

	forget func() bool // that an interrupt ends the sessions
}

// deletions is how many nodes are deleted in one request.
const deletions = 1000

// BeginZooKeeper starts three servers, and clients that begin nothing new when a
// turn has lasted for as long as the limit.
func BeginZooKeeper(ctx context.Context, dir string, fsync bool, limit time.Duration) (*ZooKeeper, error) {
	const n = 3
	addrs, err := FreePorts(3 * n)
	if err != nil {
		return nil, err
	}
	members, err := BeginGroup(ctx, "zookeeper-member", n, func(i int) []string {
		return []string{
			"-index", strconv.Itoa(i), "-dir", filepath.Join(dir, "zookeeper-"+strconv.Itoa(i+1)),
			"-peers", strings.Join(addrs[:2*n], ","), "-client", addrs[2*n+i], "-fsync=" + strconv.FormatBool(fsync),
		}
	})
	if err != nil {
		return nil, err
	}
	z := &ZooKeeper{members: members, swarm: Swarm{members.CPU, limit}}
	leader := ""
	for i, p := range members {
		mode, version, _ := strings.Cut(p.Info(), " ")
		z.Version = version
		if mode == "leader" {
			leader = addrs[2*n+i]
		}
	}
	if err := z.connect(ctx, leader); err != nil {
		z.Close()
		return nil, err
	}
	// Their requests know no context.
	z.forget = context.AfterFunc(ctx, z.endSessions)
	return z, nil
}

// connect begins one session per client.
func (z *ZooKeeper) connect(ctx context.Context, leader string) error {
	if leader == "" {
		return fmt.Errorf("no ZooKeeper server leads")
	}
	for range Clients {
		session, events, err := zk.Connect([]string{leader}, 30*time.Second, zk.WithLogger(silence{}), zk.WithLogInfo(false))
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
	ctx, cancel := context.WithTimeout(ctx, StartLimit)
	defer cancel()
	for {
		select {
		case e := <-events:
			if e.State == zk.StateHasSession {
				return nil
			}
		case <-ctx.Done():
			return fmt.Errorf("ZooKeeper begins no session: %w", ctx.Err())
		}
	}
}

type silence struct{}

func (silence) Printf(string, ...any) {}

// Acquire creates n nodes, or as many as there is time for.
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
	for _, paths := range made {
		z.paths = append(z.paths, paths...)
	}
	return t, err
}

// Release deletes the nodes of the last turn.
func (z *ZooKeeper) Release(context.Context) error {
	paths := slices.Concat(z.paths, []string{z.parent})
	z.paths = z.paths[:0]
	for len(paths) > 0 {
		n := min(deletions, len(paths))
		requests := make([]any, 0, n)
		for _, path := range paths[:n] {
			requests = append(requests, &zk.DeleteRequest{Path: path, Version: -1})
		}
		if _, err := z.sessions[0].Multi(requests...); err != nil {
			return fmt.Errorf("ZooKeeper: deleting nodes: %w", err)
		}
		paths = paths[n:]
	}
	return nil
}

func (z *ZooKeeper) endSessions() {
	_ = Each(len(z.sessions), func(i int) error {
		z.sessions[i].Close()
		return nil
	})
}

// Close ends all sessions and servers, and waits for them.
func (z *ZooKeeper) Close() {
	if z.forget != nil {
		z.forget()
	}
	z.endSessions()
	z.members.Close()
}
