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

// A StoreConfig configures a member of an etcd cluster.
type StoreConfig struct {
	Name    string
	Dir     string
	Client  string // host:port, as are those of the peers
	Peers   map[string]string
	Compact string // retention of old revisions
	// Election is the election timeout.
	Election time.Duration
}

// AddFlags adds the flags of a store.
func (cfg *StoreConfig) AddFlags(f *pflag.FlagSet) {
	f.StringVar(&cfg.Name, "name", "", "name of the member")
	f.StringVar(&cfg.Dir, "dir", "", "data directory")
	f.StringVar(&cfg.Client, "client", "", "address for clients")
	f.StringToStringVar(&cfg.Peers, "peer", nil, "name=address of each member")
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
