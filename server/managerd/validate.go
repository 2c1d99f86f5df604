package managerd

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/runtime/address"
	"github.com/leasehold-dev/leasehold/server/cli"
	"github.com/leasehold-dev/leasehold/server/store/etcd"
)

// Bounds on what a group may be configured to.
const (
	minTTL     = 100 * time.Millisecond
	maxTTL     = time.Hour
	maxMembers = 9 // each more makes every commit slower, and there is nothing left to gain
)

// Validate says what is wrong with the settings, in terms of settings, and
// fills in what can be derived.
func (m *ManagerSettings) Validate() error {
	if err := cli.RefuseOnCommandLine(m.Flags, PasswordFlag, "etcd-password-file"); err != nil {
		return err
	}
	return m.Settings.Validate(
		m.validateAddresses, m.validateSecurity, m.validateTimes, m.validateLimits, m.validateDashboard, m.validateStore,
		m.validateTables, m.validateContacts)
}

func (m *ManagerSettings) validateTables() error {
	switch m.Store {
	case inEtcd:
		return m.validateEtcd()
	case inMemory:
		return m.validatePeers()
	}
	return m.validateGroup()
}

// validateContacts looks at the addresses that the manager listens on, and that it calls. What managers
// that keep nothing on disk say to each other by datagrams is authenticated by their key.
func (m *ManagerSettings) validateContacts() error {
	var stores, members, peers []string
	if m.PeerURL != "" {
		stores = []string{m.PeerListen}
	}
	for _, member := range m.Members {
		_, addr := cutScheme(member.PeerURL)
		members = append(members, addr)
	}
	for _, peer := range m.Peers.Members {
		peers = append(peers, peer.Manager)
	}
	for _, c := range []struct {
		flag  string
		addrs []string
	}{
		{"listen", []string{m.Listen}}, {"http", []string{m.HTTP}}, {"join", []string{m.Join}},
		{"peer-listen", stores}, {"members", members}, {"peers", peers},
	} {
		if err := m.Security.Expose(c.flag, m.Security.Tls(), c.addrs...); err != nil {
			return err
		}
	}
	for _, endpoint := range m.Etcd.Endpoints {
		scheme, addr := cutScheme(endpoint)
		certified := m.Etcd.CA != "" || m.Etcd.Cert != "" // counts where nothing else is said
		if err := m.Security.Expose("etcd", scheme == "https" || scheme == "" && certified, addr); err != nil {
			return err
		}
	}
	return nil
}

// cutScheme takes a URL of an address apart. The scheme may be left out.
func cutScheme(text string) (scheme, addr string) {
	scheme, addr, found := strings.Cut(text, "://")
	if !found {
		return "", text
	}
	return scheme, strings.TrimRight(addr, "/")
}

func (m *ManagerSettings) validateAddresses() error {
	for flag, addr := range map[string]string{"listen": m.Listen, "advertise": m.Advertise, "http": m.HTTP, "peer-listen": m.PeerListen, "join": m.Join} {
		if addr == "" && flag != "listen" {
			continue
		}
		if err := cli.CheckAddr(addr); err != nil {
			return fmt.Errorf("%s: %w", m.Origin(flag), err)
		}
	}
	_, port, err := net.SplitHostPort(m.Listen)
	if err != nil {
		return err
	}
	switch {
	case m.HTTP == m.Listen && port != "0":
		return fmt.Errorf("%s %s: that is where it listens already; give it a port of its own", m.Origin("http"), m.HTTP)
	case m.Advertise == "" && address.Wildcard(m.Listen):
		return fmt.Errorf("%s %s means every address of this computer, and others cannot connect to that: say with --advertise how they reach it, such as --advertise %s",
			m.Origin("listen"), m.Listen, net.JoinHostPort(hostname(), port))
	case m.Advertise == "" && port != "0":
		m.Advertise = m.Listen
	case m.Advertise != "":
		return m.validateAdvertise()
	}
	return nil
}

func (m *ManagerSettings) validateAdvertise() error {
	_, port, err := net.SplitHostPort(m.Advertise)
	switch {
	case err != nil:
		return err
	case address.Wildcard(m.Advertise):
		return fmt.Errorf("%s %s: others cannot connect to every address of this computer; name one, such as %s",
			m.Origin("advertise"), m.Advertise, net.JoinHostPort(hostname(), port))
	case port == "0":
		return fmt.Errorf("%s %s: others need to know the port", m.Origin("advertise"), m.Advertise)
	}
	return nil
}

func hostname() string {
	name, err := os.Hostname()
	if err != nil || name == "" {
		return "localhost"
	}
	return name
}

func (m *ManagerSettings) validateTimes() error {
	switch {
	case m.TTL < minTTL || m.TTL > maxTTL:
		return fmt.Errorf("%s %v: want %v to %v", m.Origin("ttl"), m.TTL, minTTL, maxTTL)
	case !(m.Drift >= 1 && m.Drift <= protocol.MaxDrift):
		return fmt.Errorf("%s %v: want 1 to %d", m.Origin("drift"), m.Drift, protocol.MaxDrift)
	}
	return nil
}

// maxConnections is more than a computer has ports, for whom there are several.
const maxConnections = 1 << 20

func (m *ManagerSettings) validateLimits() error {
	for _, limit := range []struct {
		flag  string
		value int
	}{{"max-connections", m.MaxConnections}, {"max-handshakes", m.MaxHandshakes}} {
		if limit.value < 1 || limit.value > maxConnections {
			return fmt.Errorf("%s %d: want 1 to %d", m.Origin(limit.flag), limit.value, maxConnections)
		}
	}
	return nil
}

func (m *ManagerSettings) validateEtcd() error {
	e := &m.Etcd
	if len(e.Endpoints) == 0 {
		return fmt.Errorf("%s is etcd: say with --etcd where that is", m.Origin("store"))
	}
	for i, endpoint := range e.Endpoints {
		e.Endpoints[i] = strings.TrimSpace(endpoint)
		if err := checkEndpoint(e.Endpoints[i]); err != nil {
			return fmt.Errorf("%s: %w", m.Origin("etcd"), err)
		}
	}
	switch {
	case (e.Cert == "") != (e.Key == ""):
		return errors.New("--etcd-cert and --etcd-key go together: one is missing")
	case e.Password.Len() > 0 && e.passwordFile != "":
		return fmt.Errorf("%s and %s both say the password: leave out one of the two", m.Origin(PasswordFlag), m.Origin("etcd-password-file"))
	}
	if e.passwordFile != "" {
		password, err := cli.ReadSecret(e.passwordFile)
		if err != nil {
			return cli.Fail(fmt.Errorf("%s: %w", m.Origin("etcd-password-file"), err))
		}
		e.Password = password
	}
	if (e.Username == "") != (e.Password.Len() == 0) {
		return errors.New("--etcd-user and its password go together: one is missing")
	}
	return nil
}

// checkEndpoint accepts host:port, and URLs of it.
func checkEndpoint(endpoint string) error {
	if err := cli.WithoutLogin(endpoint, "say --etcd-user and --etcd-password-file"); err != nil {
		return err
	}
	addr := endpoint
	if u, err := url.Parse(endpoint); err == nil && (u.Scheme == "http" || u.Scheme == "https") {
		addr = u.Host
	}
	if err := cli.CheckAddr(addr); err != nil {
		return fmt.Errorf("%q: want host:port or a URL with a port, such as https://10.0.0.1:2379", endpoint)
	}
	return nil
}

// maxQuota bounds --quota. What is stored is copied as a whole to a member that
// joins, and read as a whole by whoever restores it.
const maxQuota = 64 << 30

func (m *ManagerSettings) validateQuota() error {
	n, err := cli.ParseBytes(m.quota)
	if err != nil {
		return fmt.Errorf("%s: %w", m.Origin("quota"), err)
	}
	if n < etcd.MinQuota || n > maxQuota {
		return fmt.Errorf("%s %s: want 16MiB to 64GiB", m.Origin("quota"), m.quota)
	}
	m.Quota = n
	return nil
}

// Where tables can be.
const (
	onDisk   = "disk"
	inEtcd   = "etcd"
	inMemory = "flease"
)

// storeNames are the values of --store. It is not changed.
var storeNames = []string{onDisk, inEtcd, inMemory}

// validateStore finds out where the tables are, and refuses settings of what is not
// used: whoever made them expects something of them.
func (m *ManagerSettings) validateStore() error {
	if m.Store == "" {
		m.Store = onDisk
		if len(m.Etcd.Endpoints) > 0 {
			m.Store = inEtcd
		}
	}
	if !slices.Contains(storeNames, m.Store) {
		return fmt.Errorf("%s %q: want %s", m.Origin("store"), m.Store, strings.Join(storeNames, ", "))
	}
	for _, group := range []struct {
		store, purpose, instead string
		flags                   []string
	}{
		{
			onDisk, "is for tables that managers keep themselves", "",
			[]string{"data-dir", "name", "members", "join", "quota"},
		},
		{
			inEtcd, "says how to use an etcd cluster", ": say with --etcd where that is",
			[]string{"etcd-prefix", "etcd-ca", "etcd-cert", "etcd-key", "etcd-user", PasswordFlag, "etcd-password-file", "etcd"},
		},
		{
			inMemory, "is for managers that keep nothing on disk", ": say with --store flease that they do not",
			[]string{"peers", "peer-key-file", "epsilon", "longest-lease"},
		},
	} {
		if group.store == m.Store {
			continue
		}
		for _, flag := range group.flags {
			if m.Flags.Changed(flag) {
				return fmt.Errorf("%s %s, and %s", m.Origin(flag), group.purpose, m.tables(group.instead))
			}
		}
	}
	if m.Store == inEtcd && m.Flags.Changed("peer-listen") {
		return fmt.Errorf("%s is for managers that speak to each other, and %s", m.Origin("peer-listen"), m.tables(""))
	}
	m.forget()
	return nil
}

// tables says where the tables are, and why; if nobody has said so, what to say instead.
func (m *ManagerSettings) tables(instead string) string {
	switch {
	case m.Store == inEtcd && m.Flags.Changed("etcd"):
		return "with " + m.Origin("etcd") + " they are in that cluster: leave out one of the two"
	case m.Flags.Changed("store"):
		return m.Origin("store") + " is " + m.Store + ": leave out one of the two"
	}
	return "these keep their tables on disk" + instead
}

// forget empties what is not used, so that nobody reads it.
func (m *ManagerSettings) forget() {
	if m.Store != onDisk {
		m.DataDir, m.quota = "", ""
	}
	if m.Store != inEtcd {
		m.Etcd.Prefix = ""
	}
	if m.Store != inMemory {
		m.Peers = peerSettings{}
	}
}
