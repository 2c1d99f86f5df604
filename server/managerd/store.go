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

// A KeptStore is the store of a manager.
type KeptStore struct {
	store   store.Store   // nil for memory only
	name    string        // for status output
	members store.Members // nil for an external store
	// Space returns the used and the available bytes; nil if unknown.
	Space func() (used, most int64)
	done  <-chan struct{} // closed if the store fails; nil for an external store
	err   func() error    // returns the cause
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

// tls returns the TLS configuration for an etcd cluster; nil without certificates. The client
// certificate is reloaded for each connection, the CAs only at the start. TLS 1.2 is accepted,
// since external clusters may be old.
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
			return nil, leasehold.Errorf("read certificates", leasehold.ErrInvalid, e.CA, "the file has no PEM certificate")
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

// electionOf returns the minimum election timeout of the store; the maximum is twice that. A leader
// that cannot write for its TTL steps down, so an election of the store should be shorter.
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

// enterGroup joins the group of a running manager. If the data directory already belongs to a
// member, it only checks that the group is the same. It never bootstraps a group.
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
	defer conn.Close() //nolint:errcheck // no call is in flight
	group := leaseholdv1.NewAdminServiceClient(conn)
	if fresh {
		return joinGroup(ctx, cfg, embed, group)
	}
	return checkGroup(ctx, cfg, group, log)
}

// checkGroup rejects a data directory that belongs to another group: this manager would serve that
// group. If the manager to join does not respond, the start continues, since a group that was shut
// down must be able to restart.
func checkGroup(ctx context.Context, cfg *ManagerSettings, group cli.Service, log *slog.Logger) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	answer, err := group.ListMembers(ctx, &leaseholdv1.ListMembersRequest{Version: wire.Version})
	if err != nil {
		log.Info("the manager to join does not respond: continuing with the group in the data directory", "join", cfg.Join, "why", wire.ToError(err))
		return nil
	}
	for _, m := range answer.GetMembers() {
		if m.GetName() == cfg.Name || slices.Contains(m.GetPeerUrls(), cfg.PeerURL) {
			return nil
		}
	}
	return leasehold.Errorf("join", leasehold.ErrInvalid, cfg.DataDir,
		"the data directory belongs to another group, and the group of %s has no member %q\nUse an empty directory to join that group, or remove --join to continue in the other one.",
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
	delete(embed.Members, "") // this manager, which has not started yet
	return nil
}

// groupOf adapts an embedded store to store.Members.
type groupOf struct{ *etcd.Embedded }

func (g groupOf) AddMember(ctx context.Context, name, peerURL string) (store.Member, error) {
	m, _, err := g.Embedded.AddMember(ctx, name, peerURL)
	return m, err
}
