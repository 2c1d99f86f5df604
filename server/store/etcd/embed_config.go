package etcd

import (
	"cmp"
	"crypto/tls"
	"log/slog"
	"maps"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	"go.etcd.io/etcd/server/v3/embed"

	"github.com/leasehold-dev/leasehold"
)

// Limits and defaults of an embedded store.
const (
	DefaultQuota = 2 << 30
	MinQuota     = 16 << 20 // a smaller one has no room for the reserve

	DefaultElection = time.Second            // etcd's own
	MinElection     = 500 * time.Millisecond // below this, load would cause elections
)

const opEmbed = "embed etcd"

// An EmbedConfig describes a member inside this process.
type EmbedConfig struct {
	// Dir is the data directory: a new one, an empty one, or that of an earlier start of this
	// member. It is used by this member only.
	Dir string

	// Name is the member's name in its group; "leasehold" if empty.
	Name string

	// PeerURL is the URL for the other members, such as "http://10.0.0.1:2380". Without it the
	// member has no group and does not listen.
	PeerURL string
	// ListenPeer is the listen URL, with an IP address. Its default is PeerURL if that has an IP
	// address, and otherwise its port on all addresses.
	ListenPeer string

	// Members are the peer URLs of all members by name, this one included, for bootstrapping or
	// joining a group. Later starts use the data directory, and ignore Members. Without it the
	// member has no group.
	Members map[string]string
	// Existing means that the member joins a running group, to which
	// [Embedded.AddMember] has added it.
	Existing bool
	// MustJoin means that the member must not bootstrap a group, not even a single-member one:
	// with a directory without a group it starts only if Existing is set, now or by an
	// interrupted first start.
	MustJoin bool
	// Cluster is the required group, as returned by [Embedded.Cluster]. Empty means any.
	Cluster string

	PeerTLS PeerTLS

	// Quota bounds the store's file in bytes: [DefaultQuota] if 0, and at least [MinQuota]. When
	// about nine tenths are used, writes that grow the store are rejected with an error of
	// kind Limit. The rest is reserved for a leader's record and for the end of leases.
	Quota int64

	// Election is the minimum election timeout; each member draws its own between this and twice
	// this. It is the same for all members: [DefaultElection] if 0, and at least [MinElection].
	// Writes wait for an election: half of a manager's TTL leaves time to renew its
	// leadership.
	Election time.Duration

	Logger *slog.Logger // nil: the default logger
}

// PeerTLS configures mutual TLS 1.3 between members. With it, peer URLs begin with https.
type PeerTLS struct {
	// CertFile, KeyFile and CAFile are PEM files for outgoing connections. Etcd reloads the
	// certificate and key for each connection, and loads CAFile, the trusted CAs, once at the
	// start. The peer's certificate must contain the host of its peer URL.
	CertFile, KeyFile, CAFile string
	// Server is for incoming connections: it must request client certificates, and offer only
	// http/1.1. Package secure creates one that reloads its files.
	Server *tls.Config
	// Allow, if set, returns an error for a peer without permission. It is called for each
	// request, and once a second for open connections.
	Allow func(*tls.ConnectionState) error
}

func (p *PeerTLS) info() transport.TLSInfo {
	return transport.TLSInfo{CertFile: p.CertFile, KeyFile: p.KeyFile, TrustedCAFile: p.CAFile}
}

func (p *PeerTLS) validate(peerURL string) string {
	given := p.Server != nil
	switch {
	case (p.CertFile != "") != given || (p.KeyFile != "") != given || (p.CAFile != "") != given:
		return "certificate, key, CAs and server configuration must be set together"
	case p.Allow != nil && !given:
		return "Allow requires TLS"
	case peerURL != "" && strings.HasPrefix(peerURL, "https:") != given:
		return "peer URLs must begin with https if, and only if, there is a certificate"
	}
	return ""
}

func (c *EmbedConfig) validate() error {
	bad := func(format string, args ...any) error {
		return leasehold.Errorf(opEmbed, leasehold.ErrInvalid, c.Name, format, args...)
	}
	c.Name = cmp.Or(c.Name, "leasehold")
	c.Quota = cmp.Or(c.Quota, DefaultQuota)
	c.Election = cmp.Or(c.Election, DefaultElection)
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	switch {
	case c.Quota < MinQuota:
		return bad("quota is %d bytes, want at least %d", c.Quota, int64(MinQuota))
	case c.Election < MinElection || c.Election > maxElection:
		return bad("election timeout is %v, want %v to %v", c.Election, MinElection, maxElection)
	case c.Dir == "":
		return bad("the data directory is missing")
	case strings.ContainsAny(c.Name, "=,"):
		return bad("a member's name must not contain = or ,")
	case c.PeerURL == "" && (len(c.Members) > 0 || c.Existing || c.ListenPeer != ""):
		return bad("a member of a group requires a peer URL")
	case len(c.Members) > 0 && c.Members[c.Name] != c.PeerURL:
		return bad("its URL among the members is %q, and its peer URL is %q: make them the same", c.Members[c.Name], c.PeerURL)
	case c.Existing && len(c.Members) < 2:
		return bad("a join requires the URLs of all members")
	}
	if wrong := c.PeerTLS.validate(c.PeerURL); wrong != "" {
		return bad("%s", wrong)
	}
	for name, peer := range c.Members {
		if err := checkPeerURL(name, peer); err != nil {
			return err
		}
	}
	if c.PeerURL == "" {
		return nil
	}
	return checkPeerURL(c.Name, c.PeerURL)
}

func checkPeerURL(name, peer string) error {
	u, err := url.Parse(peer)
	if err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Port() != "" && u.Hostname() != "" && u.Path == "" {
		return nil
	}
	return leasehold.Errorf(opEmbed, leasehold.ErrInvalid, name, "peer URL is %q, want a URL such as http://10.0.0.1:2380", peer)
}

func (c *EmbedConfig) listen() (*url.URL, error) {
	if c.ListenPeer != "" {
		u, err := url.Parse(c.ListenPeer)
		if err != nil || net.ParseIP(u.Hostname()) == nil {
			return nil, leasehold.Errorf(opEmbed, leasehold.ErrInvalid, c.Name, "listen URL is %q, want a URL with an IP address, such as http://0.0.0.0:2380", c.ListenPeer)
		}
		return u, nil
	}
	u, err := url.Parse(c.PeerURL)
	if err != nil {
		return nil, leasehold.Errorf(opEmbed, leasehold.ErrInvalid, c.Name, "peer URL: %w", err)
	}
	if net.ParseIP(u.Hostname()) == nil {
		u.Host = net.JoinHostPort("0.0.0.0", u.Port())
	}
	return u, nil
}

// maxElection is etcd's own limit.
const maxElection = 50 * time.Second

// beatsPerElection is the number of heartbeats per election timeout.
const beatsPerElection = 10

func (c *EmbedConfig) etcd(dir, token string) (*embed.Config, error) {
	ec := embed.NewConfig()
	ec.Name, ec.Dir = c.Name, dir
	ec.InitialClusterToken = token
	ec.ListenPeerUrls, ec.ListenClientUrls, ec.AdvertiseClientUrls = nil, nil, nil // see peers.go
	ec.QuotaBackendBytes = c.Quota
	ec.ElectionMs = uint(c.Election.Milliseconds())
	ec.TickMs = ec.ElectionMs / beatsPerElection
	ec.PeerTLSInfo, ec.TlsMinVersion = c.PeerTLS.info(), "TLS1.3"
	ec.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zapLogger(c.Logger, slog.LevelWarn))
	// Revisions older than a minute are not needed: a table is read in less.
	ec.AutoCompactionMode, ec.AutoCompactionRetention = embed.CompactorModePeriodic, "1m"
	ec.BootstrapDefragThresholdMegabytes = defragLeast >> 20
	if c.PeerURL != "" {
		advertised, err := url.Parse(c.PeerURL)
		if err != nil {
			return nil, leasehold.Errorf(opEmbed, leasehold.ErrInvalid, c.Name, "peer URL: %w", err)
		}
		ec.AdvertisePeerUrls = []url.URL{*advertised}
		// No client connects, but etcd uses a member's client URLs to detect that the member
		// was started before, and rejects it if it has lost its data since.
		ec.AdvertiseClientUrls = []url.URL{*advertised}
	}
	ec.InitialCluster = ec.InitialClusterFromName(c.Name)
	if len(c.Members) > 0 {
		ec.InitialCluster = c.initialCluster()
	}
	if c.Existing {
		ec.ClusterState = embed.ClusterStateFlagExisting
	}
	return ec, nil
}

func (c *EmbedConfig) initialCluster() string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(c.Members)) {
		parts = append(parts, name+"="+c.Members[name])
	}
	return strings.Join(parts, ",")
}
