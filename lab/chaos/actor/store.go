package actor

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"go.etcd.io/etcd/server/v3/embed"
)

// A StoreConfig says how to run a member of an etcd cluster, as somebody else would.
type StoreConfig struct {
	Name    string
	Dir     string
	Client  string // host:port, as are those of the peers
	Peers   map[string]string
	Compact string // how much of the past is kept
	// Election is after how long without a word of their leader members elect another.
	Election time.Duration
}

// AddFlags adds the flags of a store.
func (cfg *StoreConfig) AddFlags(f *pflag.FlagSet) {
	f.StringVar(&cfg.Name, "name", "", "its name")
	f.StringVar(&cfg.Dir, "dir", "", "its data directory")
	f.StringVar(&cfg.Client, "client", "", "where managers connect")
	f.StringToStringVar(&cfg.Peers, "peer", nil, "name=address of a member, for each")
}

// RunStore runs a member until the context ends.
func RunStore(ctx context.Context, cfg StoreConfig) error {
	settings, err := cfg.settings()
	if err != nil {
		return err
	}
	server, err := embed.StartEtcd(settings)
	if err != nil {
		return fmt.Errorf("starting etcd: %w", err)
	}
	defer server.Close()
	select {
	case <-ctx.Done():
		return nil
	case err := <-server.Err():
		return fmt.Errorf("etcd: %w", err)
	}
}

func (cfg *StoreConfig) settings() (*embed.Config, error) {
	client, err := url.Parse("http://" + cfg.Client)
	if err != nil {
		return nil, err
	}
	peer, err := url.Parse("http://" + cfg.Peers[cfg.Name])
	if err != nil {
		return nil, err
	}
	var group []string
	for name, addr := range cfg.Peers {
		group = append(group, name+"=http://"+addr)
	}
	c := embed.NewConfig()
	c.Name, c.Dir, c.LogLevel = cfg.Name, cfg.Dir, "warn"
	c.InitialCluster = strings.Join(group, ",")
	c.ListenPeerUrls, c.AdvertisePeerUrls = []url.URL{*peer}, []url.URL{*peer}
	c.ListenClientUrls, c.AdvertiseClientUrls = []url.URL{*client}, []url.URL{*client}
	c.ElectionMs = uint(cfg.Election.Milliseconds())
	c.TickMs = c.ElectionMs / 10
	c.AutoCompactionMode, c.AutoCompactionRetention = embed.CompactorModePeriodic, cfg.Compact
	return c, nil
}
