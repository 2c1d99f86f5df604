package managerd

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/runtime/store"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
	"github.com/leasehold-dev/leasehold/server/cli"
	"github.com/leasehold-dev/leasehold/server/store/etcd"
)

// A KeptStore is where a manager keeps its tables, and what is known about it.
type KeptStore struct {
	store   store.Store   // nil if nothing is kept
	name    string        // in a few words
	members store.Members // nil if the managers do not keep it themselves
	// space is how much of its room is in use, and how much there is; nil if that is not
	// known.
	Space func() (used, most int64)
	done  <-chan struct{} // closed if it ends by itself; nil if it does not
	err   func() error    // then says why
}

func openStore(ctx context.Context, cfg *ManagerSettings, by *protection, log *slog.Logger) (*KeptStore, error) {
	switch cfg.Store {
	case inEtcd:
		return openCluster(ctx, cfg, log)
	case inMemory:
		return &KeptStore{name: fmt.Sprintf("memory of %d managers", len(cfg.Peers.Members))}, nil
	}
	return embedStore(ctx, cfg, by, log)
}

func (k *KeptStore) close() error {
	if k.store == nil {
		return nil
	}
	return k.store.Close()
}

func openCluster(ctx context.Context, cfg *ManagerSettings, log *slog.Logger) (*KeptStore, error) {
	cluster := cfg.Etcd.Config
	cluster.Logger = log
	var err error
	if cluster.TLS, err = cfg.Etcd.tls(); err != nil {
		return nil, err
	}
	s, err := etcd.Open(ctx, cluster)
	if err != nil {
		return nil, err
	}
	return &KeptStore{store: s, name: "etcd at " + strings.Join(cfg.Etcd.Endpoints, ", ")}, nil
}

// tls reads the files by which an etcd cluster is secured; nil if there are
// none. Our certificate is read again for each connection, so that a renewed one
// is taken; the authorities are those of the start. Other people's servers may be
// older than TLS 1.3.
func (e *etcdSettings) tls() (*tls.Config, error) {
	if e.CA == "" && e.Cert == "" {
		return nil, nil
	}
	out := &tls.Config{MinVersion: tls.VersionTLS12}
	if e.CA != "" {
		text, err := os.ReadFile(e.CA)
		if err != nil {
			return nil, err
		}
		out.RootCAs = x509.NewCertPool()
		if !out.RootCAs.AppendCertsFromPEM(text) {
			return nil, leasehold.Errorf("read certificates", leasehold.ErrInvalid, e.CA, "there is none in PEM in it")
		}
	}
	if e.Cert != "" {
		if _, err := e.pair(nil); err != nil {
			return nil, err
		}
		out.GetClientCertificate = e.pair
	}
	return out, nil
}

func (e *etcdSettings) pair(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	pair, err := tls.LoadX509KeyPair(e.Cert, e.Key)
	if err != nil {
		return nil, leasehold.Errorf("read certificate", leasehold.ErrInvalid, e.Cert, "%w", err)
	}
	return &pair, nil
}

// electionOf is after how long members begin to elect another, at the earliest, for leaders with a
// TTL; at the latest it is twice that. A leader that cannot write for its TTL has to step down: an
// election of the store should not take all of it, if that can be helped.
func electionOf(ttl time.Duration) time.Duration {
	return max(etcd.MinElection, min(etcd.DefaultElection, ttl/2))
}

func embedStore(ctx context.Context, cfg *ManagerSettings, by *protection, log *slog.Logger) (*KeptStore, error) {
	embed := etcd.EmbedConfig{
		Dir: cfg.DataDir, Name: cfg.Name, PeerURL: cfg.PeerURL, Quota: cfg.Quota, Election: electionOf(cfg.TTL), Logger: log,
	}
	if cfg.PeerListen != "" {
		files := cfg.Security.Config(nil)
		embed.PeerTLS = by.stores(files)
		by.watchRoots(files.Roots, log)
		embed.ListenPeer = cfg.listenPeerURL()
	}
	for _, m := range cfg.Members {
		if embed.Members == nil {
			embed.Members = make(map[string]string)
		}
		embed.Members[m.Name] = m.PeerURL
	}
	if cfg.Join != "" {
		if err := enterGroup(ctx, cfg, by, &embed, log); err != nil {
			return nil, err
		}
	}
	if len(embed.Members) > 1 {
		log.Info("waiting for a majority of the group", "members", len(embed.Members))
	}
	e, err := etcd.Embed(ctx, embed)
	if err != nil {
		return nil, err
	}
	name := "embedded in the manager, in " + cfg.DataDir
	if len(embed.Members) > 1 || cfg.Join != "" {
		name = "embedded in the managers of the group, here in " + cfg.DataDir
	}
	return &KeptStore{store: e, name: name, members: groupOf{e}, Space: e.Space, done: e.Done(), err: e.Err}, nil
}

// enterGroup talks to a manager of the group that is joined: to become a member
// of it or, if the data directory says that this manager is one of some group
// already, to make sure that it is this one. Whatever comes of that, this
// manager founds no group.
func enterGroup(ctx context.Context, cfg *ManagerSettings, by *protection, embed *etcd.EmbedConfig, log *slog.Logger) error {
	embed.MustJoin = true
	fresh, err := etcd.Fresh(cfg.DataDir)
	if err != nil {
		return err
	}
	conn, err := by.dial(cfg.Join)
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // nothing is under way
	group := leaseholdv1.NewAdminServiceClient(conn)
	if fresh {
		return joinGroup(ctx, cfg, embed, group)
	}
	return checkGroup(ctx, cfg, group, log)
}

// checkGroup refuses a data directory of another group than the one to join: on
// it this manager would serve that other group, perhaps all alone. If nobody can
// be asked it goes on, because a group that was shut down must be able to start
// again.
func checkGroup(ctx context.Context, cfg *ManagerSettings, group cli.Service, log *slog.Logger) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	answer, err := group.ListMembers(ctx, &leaseholdv1.ListMembersRequest{Version: wire.Version})
	if err != nil {
		log.Info("the manager to join does not answer: going on with the group that the data directory knows", "join", cfg.Join, "why", wire.ToError(err))
		return nil
	}
	for _, m := range answer.GetMembers() {
		if m.GetName() == cfg.Name || slices.Contains(m.GetPeerUrls(), cfg.PeerURL) {
			return nil
		}
	}
	return leasehold.Errorf("join", leasehold.ErrInvalid, cfg.DataDir,
		"the data directory is that of a member of some group, and the group of %s has no member %q: to join that group use an empty directory, and to go on with the other leave out --join",
		cfg.Join, cfg.Name)
}

func joinGroup(ctx context.Context, cfg *ManagerSettings, embed *etcd.EmbedConfig, group cli.Service) error {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	answer, err := group.AddMember(ctx, &leaseholdv1.AddMemberRequest{
		Version: wire.Version, Name: cfg.Name, PeerUrl: cfg.PeerURL,
	})
	if err != nil {
		return fmt.Errorf("joining the group of %s: %w", cfg.Join, wire.ToError(err))
	}
	embed.Existing, embed.Cluster = true, answer.GetCluster()
	embed.Members = make(map[string]string)
	for _, m := range answer.GetMembers() {
		if urls := m.GetPeerUrls(); len(urls) > 0 {
			embed.Members[m.GetName()] = urls[0]
		}
	}
	embed.Members[cfg.Name] = cfg.PeerURL
	delete(embed.Members, "") // ourselves, not started yet
	return nil
}

// groupOf lets an embedded store's group grow and shrink on behalf of a
// manager.
type groupOf struct{ *etcd.Embedded }

func (g groupOf) AddMember(ctx context.Context, name, peerURL string) (store.Member, error) {
	m, _, err := g.Embedded.AddMember(ctx, name, peerURL)
	return m, err
}
