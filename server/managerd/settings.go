// Package managerd is the process of a manager: settings, store, group membership, HTTP pages and
// access control.
package managerd

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/manager"
	"github.com/leasehold-dev/leasehold/server/cli"
	"github.com/leasehold-dev/leasehold/server/daemon"
	"github.com/leasehold-dev/leasehold/server/store/etcd"
)

// ManagerSettings holds the flags, environment variables and file settings of a manager.
// Validate checks them and fills in derived values.
type ManagerSettings struct {
	daemon.Settings

	Listen    string // for owners, lookups, tools and managers
	Advertise string // the address for others; empty if Listen has port 0
	HTTP      string // for health and the dashboard; empty if disabled

	// The embedded store. It is not used if Etcd has endpoints.
	DataDir    string
	Name       string        // of this manager in the group
	PeerListen string        // for the stores of the group; empty without a group
	PeerURL    string        // its URL for the others; empty without a group
	Members    []groupMember // a new group, this manager included; nil without a group, or with Join
	Join       string        // a manager of the group to join
	Quota      int64         // maximum size of the store in bytes

	Etcd etcdSettings

	Store string       // disk, etcd or flease
	Peers peerSettings // for store flease

	Dashboard dashboardSettings

	Access string // a file; empty: every client may do everything

	TTL   time.Duration // leadership lasts this long without a renewal
	Drift float64       // maximum ratio of the rates of two managers' clocks

	MaxConnections int
	MaxHandshakes  int // per second and address

	members []string // as configured
	quota   string
}

// A groupMember is a manager of a group with embedded stores.
type groupMember struct {
	Name    string
	PeerURL string
}

// peerSettings describes the managers of a group without disks.
type peerSettings struct {
	manager.Peers

	members []string // as configured
	keyFile string
}

// etcdSettings describes an external etcd cluster. Without endpoints the store is embedded.
type etcdSettings struct {
	etcd.Config
	CA, Cert, Key string // files
	passwordFile  string
}

// PasswordFlag is the only setting that contains a secret, rather than the file of one.
const PasswordFlag = "etcd-password"

// AddFlags adds the flags in the order of the help.
func (m *ManagerSettings) AddFlags(cmd *cobra.Command) {
	f := m.Begin(cmd)
	f.StringVar(&m.Listen, "listen", cli.DefaultManager, "listen `address`")
	f.StringVar(&m.Advertise, "advertise", "", "`address` of this manager for owners, lookups and other managers (default --listen)")
	f.StringVar(&m.HTTP, "http", "127.0.0.1:7401", "`address` for the dashboard, health checks and metrics (/metrics); \"\" for none")
	f.StringVar(&m.Dashboard.tokenFile, "admin-token-file", "", "`file` with the administrator token of the dashboard, readable only by its owner\n(default: the dashboard is read-only)")
	f.StringSliceVar(&m.Dashboard.Hosts, "dashboard-hosts", nil, "host `names` that the dashboard accepts, besides localhost, IP addresses, and the hosts of\n--http and --advertise")
	m.Security.AddFlags(f, m.Origin)
	f.StringVar(&m.Access, "access", "", "access policy `file`, reloaded when it changes; required with TLS")

	f.StringVar(&m.Store, "store", "", "where the tables are kept: disk, etcd, or flease for memory only\n(default disk, or etcd if --etcd is set)")
	f.StringVar(&m.DataDir, "data-dir", "leasehold.data", "data `directory`")
	f.StringVar(&m.Name, "name", "", "`name` of this manager in its group (default the host name)")
	f.StringVar(&m.PeerListen, "peer-listen", "", "listen `address` for the stores of the group, or with flease for the leader election\n(default the address of this manager in --members or --peers)")
	f.StringSliceVar(&m.members, "members", nil, "bootstrap a group of these managers: `name=url` of each store, this one included")
	f.StringVar(&m.Join, "join", "", "join the group of the manager at this `address`")
	f.StringVar(&m.quota, "quota", "2GiB", "maximum size of the tables and their history in `bytes`, MiB or GiB")

	f.StringSliceVar(&m.Etcd.Endpoints, "etcd", nil, "`endpoints` of an etcd cluster for the tables, instead of --data-dir. The cluster must\ncompact automatically: start it with --auto-compaction-retention=10m or similar")
	f.StringVar(&m.Etcd.Prefix, "etcd-prefix", "/leasehold/", "prefix of all keys in that cluster; unique for each group")
	f.StringVar(&m.Etcd.CA, "etcd-ca", "", "`file` with the trusted CA certificates (default the system's, for https endpoints)")
	f.StringVar(&m.Etcd.Cert, "etcd-cert", "", "client certificate `file`")
	f.StringVar(&m.Etcd.Key, "etcd-key", "", "private key `file` of the client certificate")
	f.StringVar(&m.Etcd.Username, "etcd-user", "", "user `name` for etcd")
	cli.AddSecret(f, &m.Etcd.Password, PasswordFlag)
	f.StringVar(&m.Etcd.passwordFile, "etcd-password-file", "", "`file` with the password, not readable by other users; or set LEASEHOLD_ETCD_PASSWORD")

	f.StringSliceVar(&m.Peers.members, "peers", nil, "with --store flease: the advertised `address` of every manager of the group, this one\nincluded. The leader election uses datagrams to the same port, or to that of\naddress=address")
	f.StringVar(&m.Peers.keyFile, "peer-key-file", "", "`file` with a secret shared by these managers, not readable by other users; required except\non the loopback. While the secret is replaced, it may have two lines: the first is used,\nboth are accepted")
	f.DurationVar(&m.Peers.Epsilon, "epsilon", 0, "maximum difference of the wall clocks of two of them (default a quarter of --ttl, 500ms at most)")
	f.DurationVar(&m.Peers.Longest, "longest-lease", protocol.DefaultTiming().Hold(), "maximum of lease times drift of any namespace. If a majority of the managers restarts,\nthe new leader waits for this time")

	f.DurationVar(&m.TTL, "ttl", 2*time.Second, "time after which leadership expires without a renewal; another manager takes over after\nthis time times --drift. The same for all managers of a group")
	f.Float64Var(&m.Drift, "drift", 1.20, "maximum ratio of the rates of two managers' clocks; the same for all managers of a group")
	f.IntVar(&m.MaxConnections, "max-connections", 1<<14, "maximum number of connections; one address or identity may have a quarter of them")
	f.IntVar(&m.MaxHandshakes, "max-handshakes", 50, "with TLS: maximum number of new connections per second and address. Raise it if many\nowners and lookups share an address, as behind NAT")
	m.Finish(cmd)
	cli.CompleteWith(cmd, "store", cli.OneOf(storeNames...))
}
