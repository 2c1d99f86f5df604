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
// store.Store, and manages the group's membership.
//
// If the disk is full, etcd cannot continue safely, and ends the process after logging the cause.
// Committed data is not lost; restart the process when space is available. The quota prevents
// this case.
type Embedded struct {
	*kv.Store
	cfg    EmbedConfig
	dir    *dataDir
	server *embed.Etcd
	peers  *peerServer // nil without a group
	db     *database

	aside aside

	stop   context.CancelFunc // ends the goroutines
	work   sync.WaitGroup
	chores sync.WaitGroup // stopped before the member

	// Used only by upkeep: when it last freed space, and logged that there is none.
	tidied, complained time.Time

	closing atomic.Bool
	done    chan struct{} // closed when the member has stopped
	failure error         // the cause unless it was closed; set before done is closed
}

// Embed starts a member and returns when it has joined its group, which requires a majority of the
// members. If the context ends before, the error has kind Unavailable, and the member is stopped.
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

// startServer starts etcd, and converts panics of the start, such as for a damaged file or a full
// disk, to errors.
func startServer(ec *embed.Config) (e *embed.Etcd, err error) {
	defer func() {
		if p := recover(); p != nil {
			e, err = nil, fmt.Errorf("etcd cannot start: %v", p)
		}
	}()
	return embed.StartEtcd(ec)
}

// cannotStart explains why etcd does not start. The group rejects a known member that has lost its
// data: it could vote against entries that it had acknowledged, and committed entries would be
// lost.
func (m *Embedded) cannotStart(err error) error {
	if strings.Contains(err.Error(), "already been bootstrapped") { // etcd has no sentinel error for it
		return leasehold.Errorf(opEmbed, leasehold.ErrInvalid, m.cfg.Name,
			"the group has a member of this name already, whose data is not in %s (%w): if it is lost, remove the member from the group, and then join the group anew with an empty directory",
			m.cfg.Dir, err)
	}
	return leasehold.Errorf(opEmbed, leasehold.ErrUnavailable, m.cfg.Name, "%w", err)
}

// token returns the cluster token. Members that bootstrap a group together must compute the same
// one; a single member draws a random one, so that two stores never have the same identity.
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

// whyStopped returns why etcd has stopped. It stops itself only after its removal, of which another
// member may have notified it before it applied the removal.
func (m *Embedded) whyStopped() error {
	if !m.closing.Load() {
		return leasehold.Errorf(opEmbed, leasehold.ErrClosed, m.cfg.Name,
			"the member was removed from its group: to take part again, add it as a new member with an empty data directory")
	}
	return leasehold.Errorf(opEmbed, leasehold.ErrClosed, m.cfg.Name, "the member has stopped")
}

// Done is closed when the member has stopped, by Close or after a failure.
func (m *Embedded) Done() <-chan struct{} { return m.done }

// Err returns why the member has stopped: it was removed from its group, or closed. It is nil while
// the member runs.
func (m *Embedded) Err() error { return m.ended() }

func (m *Embedded) ended() error {
	select {
	case <-m.done:
		return m.failure
	default:
		return nil
	}
}

// Cluster returns the id of the member's group, which never changes.
func (m *Embedded) Cluster() string { return m.server.Server.Cluster().ID().String() }

// group returns the sorted names of the started members. The others do not have this member's name
// before its first start.
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

// shutdown stops the member. No call of the store may be in flight.
func (m *Embedded) shutdown() error {
	m.closing.Store(true)
	m.stop()
	m.chores.Wait() // a compaction must not write to a closed file
	err := m.db.client.Close()
	m.server.Close()
	m.peers.close() // last: a stopping leader first transfers its leadership
	m.work.Wait()
	if errors.Is(err, context.Canceled) { // the result of closing an in-process client
		err = nil
	}
	return errors.Join(err, m.dir.close())
}

func (m *Embedded) abort() error {
	if m.db != nil {
		_ = m.db.client.Close() // it has no requests in flight
	}
	if m.server != nil {
		m.server.Close()
	}
	m.peers.close()
	return m.dir.close()
}
