package locks

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"go.etcd.io/etcd/server/v3/embed"
)

// An etcdConfig is that of one member of an etcd cluster.
type etcdConfig struct {
	Index  int      // of this member
	Dir    string   // for its data
	Peers  []string // addresses of all members for each other, in order
	Client string   // its address for clients
	Fsync  bool     // sync the disk before answering
}

// An EtcdMember is one member of an etcd cluster.
type EtcdMember struct{ server *embed.Etcd }

// startEtcd starts a member and waits until it serves clients, which takes a majority.
func startEtcd(ctx context.Context, c etcdConfig) (*EtcdMember, error) {
	cfg, err := c.embed()
	if err != nil {
		return nil, err
	}
	server, err := embed.StartEtcd(cfg)
	if err != nil {
		return nil, fmt.Errorf("starting etcd: %w", err)
	}
	select {
	case <-server.Server.ReadyNotify():
		return &EtcdMember{server}, nil
	case err = <-server.Err():
	case <-ctx.Done():
		err = ctx.Err()
	}
	server.Close()
	return nil, fmt.Errorf("starting etcd: %w", err)
}

// embed is etcd's default, but for addresses, the directory, the log level, a quota
// that a long benchmark does not reach, and an election timeout that a busy computer
// does not exceed.
func (c etcdConfig) embed() (*embed.Config, error) {
	if c.Index < 0 || c.Index >= len(c.Peers) {
		return nil, fmt.Errorf("member %d of %d", c.Index, len(c.Peers))
	}
	cfg := embed.NewConfig()
	cfg.Name, cfg.Dir = etcdName(c.Index), c.Dir
	cfg.LogLevel = "panic" // it logs its own end as an error
	cfg.QuotaBackendBytes = 8 << 30
	cfg.UnsafeNoFsync = !c.Fsync
	cfg.TickMs, cfg.ElectionMs = 100, 3_000
	var cluster []string
	for i, addr := range c.Peers {
		cluster = append(cluster, etcdName(i)+"=http://"+addr)
	}
	cfg.InitialCluster = strings.Join(cluster, ",")
	peer := []url.URL{{Scheme: "http", Host: c.Peers[c.Index]}}
	client := []url.URL{{Scheme: "http", Host: c.Client}}
	cfg.ListenPeerUrls, cfg.AdvertisePeerUrls = peer, peer
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls = client, client
	return cfg, nil
}

func etcdName(index int) string { return fmt.Sprintf("etcd-%d", index+1) }

// Close stops the member at once; the end of its process does the rest. Closed in
// order, a leader would look for another one, for eleven seconds if all members end at
// the same time.
func (m *EtcdMember) Close() error {
	m.server.Server.HardStop()
	return nil
}
