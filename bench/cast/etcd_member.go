package cast

import (
	"context"
	"flag"
	"fmt"
	"net/url"
	"strings"

	"go.etcd.io/etcd/server/v3/embed"
)

// An etcdMember is one member of an etcd cluster, in a process of its own, to
// which clients connect.
type etcdMember struct {
	server *embed.Etcd
}

// startEtcd starts a member and waits until it serves clients, for which most
// others must have been started, too.
func startEtcd(ctx context.Context, args []string) (Member, string, error) {
	flags := flag.NewFlagSet("etcd-member", flag.ContinueOnError)
	index := flags.Int("index", 0, "which member this is")
	dir := flags.String("dir", "", "data directory")
	peers := flags.String("peers", "", "addresses of all members for each other, in order")
	client := flags.String("client", "", "address for Clients")
	fsync := flags.Bool("fsync", true, "sync the disk before answering")
	if err := flags.Parse(args); err != nil {
		return nil, "", err
	}
	cfg, err := etcdConfig(*index, *dir, strings.Split(*peers, ","), *client, *fsync)
	if err != nil {
		return nil, "", err
	}
	server, err := embed.StartEtcd(cfg)
	if err != nil {
		return nil, "", fmt.Errorf("starting etcd: %w", err)
	}
	select {
	case <-server.Server.ReadyNotify():
		return &etcdMember{server}, "", nil
	case err = <-server.Err():
	case <-ctx.Done():
		err = ctx.Err()
	}
	server.Close()
	return nil, "", fmt.Errorf("starting etcd: %w", err)
}

// etcdConfig is etcd's own default, but for its addresses, its directory, its
// silence, a quota that a long contest does not reach, and the patience not to
// elect another leader whenever a busy computer keeps one from speaking.
func etcdConfig(index int, dir string, peers []string, client string, fsync bool) (*embed.Config, error) {
	if index < 0 || index >= len(peers) {
		return nil, fmt.Errorf("member %d of %d", index, len(peers))
	}
	cfg := embed.NewConfig()
	cfg.Name, cfg.Dir = etcdName(index), dir
	cfg.LogLevel = "error"
	cfg.QuotaBackendBytes = 8 << 30
	cfg.UnsafeNoFsync = !fsync
	cfg.TickMs, cfg.ElectionMs = 100, 3_000
	var cluster []string
	for i, addr := range peers {
		cluster = append(cluster, etcdName(i)+"=http://"+addr)
	}
	cfg.InitialCluster = strings.Join(cluster, ",")
	peer, err := url.Parse("http://" + peers[index])
	if err != nil {
		return nil, err
	}
	serve, err := url.Parse("http://" + client)
	if err != nil {
		return nil, err
	}
	cfg.ListenPeerUrls, cfg.AdvertisePeerUrls = []url.URL{*peer}, []url.URL{*peer}
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls = []url.URL{*serve}, []url.URL{*serve}
	return cfg, nil
}

func etcdName(index int) string { return fmt.Sprintf("etcd-%d", index+1) }

func (*etcdMember) Obey(_ context.Context, o Order) (Answer, error) {
	if o.Do != OrderCPU {
		return Answer{}, UnknownOrder(o)
	}
	return Answer{CPU: int64(CPUTime())}, nil
}

// Close stops the member at once, and the end of its process, which follows, does the
// rest. To close it in order would make a leader look for another one, for eleven
// seconds if all members end at the same time; and nobody needs their data any more.
func (m *etcdMember) Close() error {
	m.server.Server.HardStop()
	return nil
}
