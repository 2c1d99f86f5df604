// Package managerd is the process of a manager: its settings, its store, the group that it joins, its
// pages and who may use them.
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

// ManagerSettings is what flags, the environment and a file say about how to
// run a manager. Once validated, it is consistent, and what can be derived is
// filled in.
type ManagerSettings struct {
	daemon.Settings

	Listen    string // where owners, lookups, tools and managers connect
	Advertise string // how they reach it; empty if that is wherever it listens, whose port is 0
	HTTP      string // where health and the dashboard are served; empty for nowhere

	// The embedded store. It is not used if Etcd has endpoints.
	DataDir    string
	Name       string        // of this manager in the group
	PeerListen string        // where the stores of the group connect; empty if it stays alone
	PeerURL    string        // how they reach it; empty if it stays alone
	Members    []groupMember // the group that is founded, this manager included; nil if it is alone, or joins
	Join       string        // a manager of the group to join
	Quota      int64         // how large the store may grow, in bytes

	Etcd etcdSettings

	Store string       // disk, etcd or flease
	Peers peerSettings // if it is flease

	Dashboard dashboardSettings

	Access string // a file; empty: everybody may do everything

	TTL   time.Duration // for how long a leader acts without renewing
	Drift float64       // by how much the rates of the managers' clocks may differ

	MaxConnections int
	MaxHandshakes  int // in a second, of one address

	members []string // as they were written
	quota   string
}

// A groupMember is a manager of a group that keeps the tables itself.
type groupMember struct {
	Name    string
	PeerURL string
}

// peerSettings is what managers know of each other that keep nothing on disk.
type peerSettings struct {
	manager.Peers

	members []string // as they were written
	keyFile string
}

// etcdSettings is how to reach an etcd cluster. Without endpoints the store is embedded.
type etcdSettings struct {
	etcd.Config
	CA, Cert, Key string // files
	passwordFile  string
}

// PasswordFlag is the one setting that is a secret itself, and not the file of one.
const PasswordFlag = "etcd-password"

// AddFlags is in the order in which the help lists them.
func (m *ManagerSettings) AddFlags(cmd *cobra.Command) {
	f := m.Begin(cmd)
	f.StringVar(&m.Listen, "listen", cli.DefaultManager, "the `address` to listen on")
	f.StringVar(&m.Advertise, "advertise", "", "the `address` at which others reach this manager (default the one it listens on)")
	f.StringVar(&m.HTTP, "http", "127.0.0.1:7401", "the `address` for the dashboard, health checks and metrics, /metrics; \"\" for none")
	f.StringVar(&m.Dashboard.tokenFile, "admin-token-file", "", "a `file` that only we can read, with the token for which the dashboard takes orders\n(default it only shows)")
	f.StringSliceVar(&m.Dashboard.Hosts, "dashboard-hosts", nil, "`names` under which browsers ask for the dashboard, besides localhost, addresses, and\nthe hosts of --http and --advertise")

	m.Security.AddFlags(f, m.Origin)
	f.StringVar(&m.Access, "access", "", "a `file` that says who may do what; needed with TLS. It is read again when it changes")

	f.StringVar(&m.Store, "store", "", "where the tables are: on disk, in etcd, or with flease nowhere but in memory\n(default disk, or etcd if --etcd is given)")
	f.StringVar(&m.DataDir, "data-dir", "leasehold.data", "the `directory` for the tables")
	f.StringVar(&m.Name, "name", "", "this manager's `name` in its group (default the host's name)")
	f.StringVar(&m.PeerListen, "peer-listen", "", "the `address` where the stores of the group connect, or with flease where managers\nagree who leads (default that of this manager in --members or --peers)")
	f.StringSliceVar(&m.members, "members", nil, "found a group of these managers: `name=url` of each one's store, this one included")
	f.StringVar(&m.Join, "join", "", "join the group of the manager at this `address`")
	f.StringVar(&m.quota, "quota", "2GiB", "how large the tables and their history may grow, in `bytes`, MiB or GiB")

	f.StringSliceVar(&m.Etcd.Endpoints, "etcd", nil, "keep the tables in the etcd cluster at these `endpoints`, not in --data-dir. The cluster\nmust compact by itself: start it with --auto-compaction-retention=10m or the like")
	f.StringVar(&m.Etcd.Prefix, "etcd-prefix", "/leasehold/", "what all our keys in that cluster begin with; other for each group")
	f.StringVar(&m.Etcd.CA, "etcd-ca", "", "a `file` with the certificates to trust (default the system's, if an endpoint is https)")
	f.StringVar(&m.Etcd.Cert, "etcd-cert", "", "a `file` with our certificate")
	f.StringVar(&m.Etcd.Key, "etcd-key", "", "a `file` with its key")
	f.StringVar(&m.Etcd.Username, "etcd-user", "", "the `name` to log in with")
	cli.AddSecret(f, &m.Etcd.Password, PasswordFlag)
	f.StringVar(&m.Etcd.passwordFile, "etcd-password-file", "", "a `file` with the password, which others cannot read; or set LEASEHOLD_ETCD_PASSWORD")

	f.StringSliceVar(&m.Peers.members, "peers", nil, "with --store flease: the `address` of every manager of the group, this one included, as\neach advertises it. Who leads they agree on by datagrams to the same port, or to\nanother: address=address")
	f.StringVar(&m.Peers.keyFile, "peer-key-file", "", "a `file` with a secret that these managers share, which others cannot read; needed but on\nthe loopback. It may have several lines, while the secret is replaced: the first is used,\nall are accepted")
	f.DurationVar(&m.Peers.Epsilon, "epsilon", 0, "by how much the wall clocks of two of them may differ (default a quarter of --ttl, 500ms at most)")
	f.DurationVar(&m.Peers.Longest, "longest-lease", protocol.DefaultTiming().Hold(), "the longest that a namespace's lease times its drift may be. Too many managers that are\nrestarted at a time wait for it")

	f.DurationVar(&m.TTL, "ttl", 2*time.Second, "for how long a leader acts without renewing its leadership; another takes over after\nthat times --drift. All managers of a group should have the same")
	f.Float64Var(&m.Drift, "drift", 1.20, "by how much the rates of two managers' clocks may differ; the same for all of a group")
	f.IntVar(&m.MaxConnections, "max-connections", 1<<14, "how many connections there may be at a time; a quarter of them from one address or identity")
	f.IntVar(&m.MaxHandshakes, "max-handshakes", 50, "with TLS: how many connections a second one address may begin. Raise it if very many\nowners and lookups come from one, as behind NAT")
	m.Finish(cmd)
	cli.CompleteWith(cmd, "store", cli.OneOf(storeNames...))
}
