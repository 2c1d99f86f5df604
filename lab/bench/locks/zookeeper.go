package locks

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/leasehold-dev/leasehold/lab/bench/proc"
	process "github.com/leasehold-dev/leasehold/server/proc"
)

// A ZooKeeper is three servers, each a Java process, and the sessions of their
// clients, all with the leader, as in the Flease paper.
//
// To acquire is to create an ephemeral node, which exists as long as the session. One
// write of the log; a session is one lease for all its nodes.
type ZooKeeper struct {
	Version string

	members  proc.Group
	sessions []*zk.Conn
	swarm    Swarm
	parent   string // of the nodes of the last turn
	paths    []string
	forget   func() bool // cancels that the end of the context ends the sessions
}

// maxDeletions is how many nodes are deleted in one request.
const maxDeletions = 1000

// StartZooKeeper starts three servers, and clients that begin nothing new when a
// turn has lasted for as long as the limit.
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
	// Its client library takes no context.
	z.forget = context.AfterFunc(ctx, z.endSessions)
	return z, nil
}

// connect begins one session per client.
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

// Close ends all sessions and servers, and waits for them.
func (z *ZooKeeper) Close() {
	if z.forget != nil {
		z.forget()
	}
	z.endSessions()
	z.members.Close()
}
