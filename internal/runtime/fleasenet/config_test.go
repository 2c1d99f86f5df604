package fleasenet

import (
	"crypto/tls"
	"errors"
	"strings"
	"testing"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/flease"
	"github.com/leasehold-dev/leasehold/secret"
)

func TestBadConfigs(t *testing.T) {
	good := func() Config {
		return Config{
			Self: 1, Incarnation: 11, Listen: "127.0.0.1:0", Peers: []Peer{{Process: 2, Addr: "127.0.0.1:7000"}},
			Receive: func(*flease.Envelope, []flease.Message, *Source) {},
		}
	}
	for _, test := range []struct {
		name   string
		change func(*Config)
		want   string // "" if it is valid
	}{
		{"unchanged", func(*Config) {}, ""},
		{"no self", func(c *Config) { c.Self = 0 }, "Self"},
		{"no incarnation", func(c *Config) { c.Incarnation = 0 }, "Incarnation"},
		{"no receiver", func(c *Config) { c.Receive = nil }, "Receive"},
		{"peer 0", func(c *Config) { c.Peers[0].Process = 0 }, "IDs begin with 1"},
		{"a duplicate peer", func(c *Config) { c.Peers = append(c.Peers, c.Peers[0]) }, "duplicate member"},
		{"a duplicate address", func(c *Config) { c.Peers = append(c.Peers, Peer{Process: 3, Addr: "127.0.0.1:7000"}) }, "both member 2 and member 3"},
		{"a duplicate address in another form", func(c *Config) { c.Peers = append(c.Peers, Peer{Process: 3, Addr: "[::ffff:127.0.0.1]:7000"}) }, "both member 2 and member 3"},
		{"a duplicate name", func(c *Config) {
			c.Peers = []Peer{{Process: 2, Addr: "localhost:7000"}, {Process: 3, Addr: "Localhost:7000"}}
		}, "both member 2 and member 3"},
		{"another port", func(c *Config) { c.Peers = append(c.Peers, Peer{Process: 3, Addr: "127.0.0.1:7001"}) }, ""},
		{"too many peers", func(c *Config) { c.Peers = make([]Peer, MaxPeers+1) }, "the maximum is 1024"},
		{"small packets", func(c *Config) { c.MaxPacket = MinPacket - 1 }, "512"},
		{"large packets", func(c *Config) { c.MaxPacket = MaxPacket + 1 }, "32768"},
		{"a short key", func(c *Config) { c.Key = secret.New(aKey.Reveal()[1:]) }, "16 random"},
		{"a key", func(c *Config) { c.Key = aKey }, ""},
		{"no port", func(c *Config) { c.Listen = "127.0.0.1" }, "host:port"},
		{"a peer without a port", func(c *Config) { c.Peers[0].Addr = "127.0.0.1:0" }, "1 to 65535"},
		{"a peer without a host", func(c *Config) { c.Peers[0].Addr = ":7000" }, "host"},
		{"a remote peer", func(c *Config) { c.Peers[0].Addr = "192.0.2.1:7000" }, "no key"},
		{"a peer by name", func(c *Config) { c.Peers[0].Addr = "two.example:7000" }, "no key"},
		{"a local name", func(c *Config) { c.Peers[0].Addr = "localhost:7000" }, ""},
		{"listening everywhere", func(c *Config) { c.Listen = ":0" }, "no key"},
		{"another version of IP", func(c *Config) { c.Peers[0].Addr = "[::1]:7000" }, "one IP version"},
		{"TLS", func(c *Config) { c.TLS = &tls.Config{} }, "TLS is not available"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := good()
			test.change(&c)
			n, err := UDP(c)
			switch {
			case err == nil && test.want == "":
				err = n.Close()
				if err != nil {
					t.Error(err)
				}
			case err == nil:
				_ = n.Close()
				t.Error("an invalid configuration was accepted")
			case test.want == "" || !strings.Contains(err.Error(), test.want) || !errors.Is(err, leasehold.ErrInvalid):
				t.Errorf("error %v, want %q of kind Invalid", err, test.want)
			}
		})
	}
}

// Mutual TLS replaces a key; TLS with server certificates only does not.
func TestMutualTLSReplacesKey(t *testing.T) {
	for _, test := range []struct {
		name string
		tls  *tls.Config
		ok   bool
	}{
		{"nothing", nil, false},
		{"a certificate of one side", &tls.Config{}, false},
		{"any certificate", &tls.Config{ClientAuth: tls.RequireAnyClientCert}, false},
		{"certificates of both", &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert}, true},
		{"but not looked at", &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert, InsecureSkipVerify: true}, false},
	} {
		c := Config{Listen: ":0", Peers: []Peer{{Process: 2, Addr: "192.0.2.1:7000"}}, TLS: test.tls}
		if err := c.checkAddresses(); (err == nil) != test.ok {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}
