package etcd

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/etcdhttp"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/runtime/failpoint"
	"github.com/leasehold-dev/leasehold/internal/runtime/store/kv"
)

// An Embedded is a member of etcd inside this process. It implements
// store.Store, and lets the group grow and shrink.
//
// If a disk is full to the last byte, etcd cannot go on without risking what it
// has promised, and ends the process after logging why. Nothing that was
// committed is lost; start again once there is room. The quota is there so that
// it does not come to that.
type Embedded struct {
	*kv.Store
	cfg    EmbedConfig
	dir    *dataDir
	server *embed.Etcd
	peers  *peerServer // nil if the member is alone
	db     *database

	aside aside

	stop   context.CancelFunc // ends the goroutines
	work   sync.WaitGroup
	chores sync.WaitGroup // what must end before the member does

	// upkeep's own: when it last made room, and complained that there is none.
	tidied, complained time.Time

	closing atomic.Bool
	done    chan struct{} // closed when the member has ended
	failure error         // why, if it ended by itself; set before done is closed
}

// Embed starts a member and returns once it takes part in its group, which
// takes a majority of the members. If that does not happen before the context
// ends, the error has kind Unavailable, and the member is stopped again.
func Embed(ctx context.Context, cfg EmbedConfig) (*Embedded, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	dir, err := openDir(&cfg)
	if err != nil {
		return nil, err
	}
	m := &Embedded{cfg: cfg, dir: dir, done: make(chan struct{})}
	if err := m.start(ctx); err != nil {
		return nil, errors.Join(err, m.abort())
	}
	running, stop := context.WithCancel(context.Background())
	m.stop = stop
	m.work.Go(m.follow)
	m.chores.Go(func() { m.upkeep(running) })
	m.Store = kv.New(m.db, kv.Config{})
	return m, nil
}

func (m *Embedded) start(ctx context.Context) error {
	ec, err := m.cfg.etcd(m.dir.etcd(), m.token())
	if err != nil {
		return err
	}
	if err := m.listen(); err != nil {
		return err
	}
	if m.server, err = startServer(ec); err != nil {
		return m.cannotStart(err)
	}
	if m.peers != nil {
		m.peers.serve(etcdhttp.NewPeerHandler(m.server.GetLogger(), m.server.Server), m.cfg.PeerTLS.Server)
	}
	select {
	case <-m.server.Server.ReadyNotify():
	case <-m.server.Server.StopNotify():
		return m.whyStopped()
	case <-ctx.Done():
		return leasehold.Errorf(opEmbed, leasehold.ErrUnavailable, m.cfg.Name,
			"no majority of the members %s answered in time: start the others too (%w)", ec.InitialCluster, ctx.Err())
	}
	if want, is := m.cfg.Cluster, m.Cluster(); want != "" && want != is {
		return leasehold.Errorf(opEmbed, leasehold.ErrInvalid, m.cfg.Name, "the members belong to cluster %s, and not to %s: check their URLs", is, want)
	}
	failpoint.Here("etcd/ready-before-marker")
	if err := m.dir.joined(m.Cluster(), m.group()); err != nil {
		return err
	}
	client := v3client.New(m.server.Server)
	m.db = &database{
		client: client, prefix: DefaultPrefix, ended: m.ended, close: m.shutdown,
		room:      &room{file: m.server.Server.Backend, quota: m.cfg.Quota},
		directory: m.dir.identity(),
	}
	return m.moveTo(ctx, m.cfg.PeerURL)
}

func (m *Embedded) listen() error {
	if m.cfg.PeerURL == "" {
		return nil
	}
	at, err := m.cfg.listen()
	if err != nil {
		return err
	}
	m.peers, err = listenPeers(at, &m.cfg)
	return err
}

// startServer starts etcd. What etcd panics about when it starts, a damaged
// file or a disk that is full, is an error for whoever starts it.
func startServer(ec *embed.Config) (e *embed.Etcd, err error) {
	defer func() {
		if p := recover(); p != nil {
			e, err = nil, fmt.Errorf("etcd cannot start: %v", p)
		}
	}()
	return embed.StartEtcd(ec)
}

// cannotStart explains why etcd does not start. The group refuses a member that
// it knows and that has forgotten everything: such a member would vote as if
// nothing had been committed, and what was would be lost.
func (m *Embedded) cannotStart(err error) error {
	if strings.Contains(err.Error(), "already been bootstrapped") { // etcd has no value for it
		return leasehold.Errorf(opEmbed, leasehold.ErrInvalid, m.cfg.Name,
			"the group has a member of this name already, whose data is not in %s (%w): if it is lost, remove the member from the group, and then join the group anew with an empty directory",
			m.cfg.Dir, err)
	}
	return leasehold.Errorf(opEmbed, leasehold.ErrUnavailable, m.cfg.Name, "%w", err)
}

// token makes the cluster's name. Members that form a group together must come
// to the same; whoever is alone draws one at random, so that two stores are
// never taken for one.
func (m *Embedded) token() string {
	if len(m.cfg.Members) > 0 {
		return "leasehold"
	}
	return rand.Text()
}

func (m *Embedded) follow() {
	<-m.server.Server.StopNotify()
	m.failure = m.whyStopped()
	close(m.done)
}

// whyStopped says why etcd has stopped. By itself it stops only when it learns that it was removed.
// It may learn that from another member, before it has applied the removal itself.
func (m *Embedded) whyStopped() error {
	if !m.closing.Load() {
		return leasehold.Errorf(opEmbed, leasehold.ErrClosed, m.cfg.Name,
			"the member was removed from its group: to take part again, add it as a new member with an empty data directory")
	}
	return leasehold.Errorf(opEmbed, leasehold.ErrClosed, m.cfg.Name, "the member has stopped")
}

// Done is closed when the member has ended, by Close or by itself.
func (m *Embedded) Done() <-chan struct{} { return m.done }

// Err says why the member has ended: because it was removed from its group, or
// was closed. It is nil while the member runs.
func (m *Embedded) Err() error { return m.ended() }

func (m *Embedded) ended() error {
	select {
	case <-m.done:
		return m.failure
	default:
		return nil
	}
}

// Cluster names the group that the member belongs to. It never changes.
func (m *Embedded) Cluster() string { return m.server.Server.Cluster().ID().String() }

// group has the names of the members, sorted, but for those that have not
// started yet. Our own is not known to the others before the first start.
func (m *Embedded) group() []string {
	names := []string{m.cfg.Name}
	for _, one := range m.server.Server.Cluster().Members() {
		if one.Name != "" && one.Name != m.cfg.Name {
			names = append(names, one.Name)
		}
	}
	slices.Sort(names)
	return names
}

// shutdown ends the member. The store has no call under way.
func (m *Embedded) shutdown() error {
	m.closing.Store(true)
	m.stop()
	m.chores.Wait() // a compaction that etcd is closed under writes to a closed file
	err := m.db.client.Close()
	m.server.Close()
	m.peers.close() // last: a leader that ends hands over first
	m.work.Wait()
	if errors.Is(err, context.Canceled) { // closing an in-process client says so
		err = nil
	}
	return errors.Join(err, m.dir.close())
}

func (m *Embedded) abort() error {
	if m.db != nil {
		_ = m.db.client.Close() // it has nothing open
	}
	if m.server != nil {
		m.server.Close()
	}
	m.peers.close()
	return m.dir.close()
}
