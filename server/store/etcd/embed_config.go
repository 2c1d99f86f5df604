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

// How large an embedded store may grow, in bytes.
const (
	DefaultQuota = 2 << 30
	MinQuota     = 16 << 20 // less has no room for a reserve

	DefaultElection = time.Second            // etcd's own
	MinElection     = 500 * time.Millisecond // with less, busy processors would end leaderships
)

const opEmbed = "embed etcd"

// An EmbedConfig describes a member inside this process.
type EmbedConfig struct {
	// Dir is the data directory: one that does not exist yet, an empty one, or
	// the one that this member has used before. It belongs to the member
	// alone.
	Dir string

	// Name is the member's name in its group; "leasehold" if empty.
	Name string

	// PeerURL is where the other members reach this one, such as
	// "http://10.0.0.1:2380". Without it the member is alone and listens
	// nowhere.
	PeerURL string
	// ListenPeer is the URL to listen on, with an IP address for its host. If
	// it is empty it follows from PeerURL: the same if that has an IP address,
	// and otherwise its port on all addresses.
	ListenPeer string

	// Members are the peer URLs of all members by name, this one among them,
	// when the group is formed or joined. Later, the data directory knows
	// better and Members is ignored. Without it the member is alone.
	Members map[string]string
	// Existing says that the member joins a group that runs already, to which
	// [Embedded.AddMember] has added it.
	Existing bool
	// MustJoin says that the member must not found a group, not even one of
	// its own: on a directory that belongs to none yet it starts only if it is
	// Existing, now or when its first start was interrupted.
	MustJoin bool
	// Cluster is the group that the member must belong to, as
	// [Embedded.Cluster] names it. If it is empty any will do.
	Cluster string

	PeerTLS PeerTLS

	// Quota bounds the store's file, in bytes; [DefaultQuota] if 0, and
	// [MinQuota] at least. When about nine tenths are in use, what would make
	// the store grow is refused, with an error of kind Limit. The rest is kept
	// for what lets a leader go on: its record, and the end of leases.
	Quota int64

	// Election is for how long members hear nothing of their leader before they elect
	// another, or up to twice as long, since each draws its own time. It is the same for all members:
	// [DefaultElection] if 0, and [MinElection] at least. While they elect, nothing is
	// written: half of a manager's TTL leaves it time to renew its leadership.
	Election time.Duration

	Logger *slog.Logger // nil: the default logger
}

// PeerTLS is how members prove to each other who they are, over TLS 1.3. With it, peer
// URLs begin with https.
type PeerTLS struct {
	// CertFile, KeyFile and CAFile, in PEM, are for the connections that the member
	// makes. Etcd reads the certificate and its key for each of them, and CAFile, the
	// authorities that the other's certificate must come from, once, when the member
	// starts. The other's certificate must have the host of its peer URL.
	CertFile, KeyFile, CAFile string
	// Server is for those that others make: it must ask for certificates, and offer
	// http/1.1 and nothing else. Package secure makes one that always goes by the
	// files of now.
	Server *tls.Config
	// Allow, if set, reports why somebody who has connected must not. It is asked with
	// each request, and once a second about connections that stand.
	Allow func(*tls.ConnectionState) error
}

func (p *PeerTLS) info() transport.TLSInfo {
	return transport.TLSInfo{CertFile: p.CertFile, KeyFile: p.KeyFile, TrustedCAFile: p.CAFile}
}

func (p *PeerTLS) validate(peerURL string) string {
	given := p.Server != nil
	switch {
	case (p.CertFile != "") != given || (p.KeyFile != "") != given || (p.CAFile != "") != given:
		return "a certificate, its key, whom to trust and a configuration for servers go together"
	case p.Allow != nil && !given:
		return "without TLS there is nobody to allow"
	case peerURL != "" && strings.HasPrefix(peerURL, "https:") != given:
		return "a peer URL begins with https if there is a certificate, and only then"
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
		return bad("its quota is %d bytes, want %d at least", c.Quota, int64(MinQuota))
	case c.Election < MinElection || c.Election > maxElection:
		return bad("its members elect after %v, want %v to %v", c.Election, MinElection, maxElection)
	case c.Dir == "":
		return bad("there is no data directory")
	case strings.ContainsAny(c.Name, "=,"):
		return bad("a member's name has neither = nor ,")
	case c.PeerURL == "" && (len(c.Members) > 0 || c.Existing || c.ListenPeer != ""):
		return bad("a member of a group needs a peer URL at which the others reach it")
	case len(c.Members) > 0 && c.Members[c.Name] != c.PeerURL:
		return bad("the members say that it is at %q, and its peer URL is %q: make them the same", c.Members[c.Name], c.PeerURL)
	case c.Existing && len(c.Members) < 2:
		return bad("whoever joins a group needs the URLs of all its members")
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
	return leasehold.Errorf(opEmbed, leasehold.ErrInvalid, name, "peer URL is %q, want something like http://10.0.0.1:2380", peer)
}

func (c *EmbedConfig) listen() (*url.URL, error) {
	if c.ListenPeer != "" {
		u, err := url.Parse(c.ListenPeer)
		if err != nil || net.ParseIP(u.Hostname()) == nil {
			return nil, leasehold.Errorf(opEmbed, leasehold.ErrInvalid, c.Name, "it is to listen on %q, want a URL with an IP address, such as http://0.0.0.0:2380", c.ListenPeer)
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

// beatsPerElection is how often a leader is heard of in the time after which it is missed.
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
	// What is older than a minute is of no use: a table is read in less.
	ec.AutoCompactionMode, ec.AutoCompactionRetention = embed.CompactorModePeriodic, "1m"
	ec.BootstrapDefragThresholdMegabytes = defragLeast >> 20
	if c.PeerURL != "" {
		advertised, err := url.Parse(c.PeerURL)
		if err != nil {
			return nil, leasehold.Errorf(opEmbed, leasehold.ErrInvalid, c.Name, "peer URL: %w", err)
		}
		ec.AdvertisePeerUrls = []url.URL{*advertised}
		// No client connects, but it is by a member's client URLs that etcd knows
		// that the member was started before, and refuses it if it has lost its
		// data since.
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
