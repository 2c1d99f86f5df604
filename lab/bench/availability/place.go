package availability

import (
	"context"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/leasehold-dev/leasehold/lab/bench/managers"
	"github.com/leasehold-dev/leasehold/lab/bench/report"
	"github.com/leasehold-dev/leasehold/lab/chaos/lan"
	process "github.com/leasehold-dev/leasehold/server/proc"
)

// A place is where processes run: this computer, or a host of a network inside it.
type place struct{ host *lan.Host }

// ip returns the address at which they listen; empty for loopback.
func (p place) ip() string {
	if p.host == nil {
		return ""
	}
	return p.host.Addr.String()
}

// where returns how they are started; nil for this computer.
func (p place) where() func(start func() error) error {
	if p.host == nil {
		return nil
	}
	return p.host.Do
}

// dial connects from there.
func (p place) dial(ctx context.Context, addr string) (net.Conn, error) {
	if p.host == nil {
		return (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	}
	return p.host.Dial(ctx, "tcp", addr)
}

func (p place) dialOptions() []grpc.DialOption {
	return []grpc.DialOption{grpc.WithContextDialer(p.dial)}
}

// credentials are plain text, for which the libraries need no permission on loopback.
func (p place) credentials() credentials.TransportCredentials {
	if p.host == nil {
		return nil
	}
	return insecure.NewCredentials()
}

// A cable connects two hosts: one has a server, and the other has all other processes.
type cable struct {
	network      *lan.Network
	server, rest place
	heal         func() // after a cut
}

func newCable() (c *cable, err error) {
	c = &cable{network: lan.New(1)}
	for name, at := range map[string]*place{"server": &c.server, "rest": &c.rest} {
		if at.host, err = c.network.Host(name); err != nil {
			c.network.Close()
			return nil, err
		}
	}
	return c, nil
}

// cut loses all packets in both directions.
func (c *cable) cut() { c.heal = c.network.Strike(lan.Way{}, lan.Trouble{Cut: true}) }

// newDistantSite starts managers, servers and frontends on one host, and the first rack on the other.
func newDistantSite(ctx context.Context, r *report.Run, config siteConfig) (s *site, err error) {
	c, err := newCable()
	if err != nil {
		return nil, err
	}
	group, err := managers.StartWith(ctx, r.Dir, process.ManagersConfig{Count: 3, Host: c.rest.ip(), Where: c.rest.where(), Dial: c.rest.dialOptions()},
		"--insecure", "--ttl", "1s")
	if err != nil {
		c.network.Close()
		return nil, err
	}
	config.cable = c
	s, err = newSite(ctx, group, config)
	s.Add(group.Close)
	s.Add(c.network.Close)
	if err != nil {
		s.Close()
	}
	return s, err
}
