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

// Limits of a group's configuration.
const (
	minTTL     = 100 * time.Millisecond
	maxTTL     = time.Hour
	maxMembers = 9 // more members slow down commits without a benefit
)

// Validate checks the settings and fills in derived values. Errors name the setting.
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

// validateContacts checks all addresses that the manager listens on or dials. The datagrams of a
// group without disks are authenticated by their key.
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
		certified := m.Etcd.CA != "" || m.Etcd.Cert != "" // decides if the URL has no scheme
		if err := m.Security.Expose("etcd", scheme == "https" || scheme == "" && certified, addr); err != nil {
			return err
		}
	}
	return nil
}

// cutScheme splits a URL into scheme and address. The scheme may be missing.
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
		return fmt.Errorf("%s %s is the address of --listen, too: choose another port", m.Origin("http"), m.HTTP)
	case m.Advertise == "" && address.Wildcard(m.Listen):
		return fmt.Errorf("%s %s is a wildcard address, and others cannot connect to it: set the address of this manager with --advertise, such as --advertise %s",
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
		return fmt.Errorf("%s %s is a wildcard address, and others cannot connect to it: name one, such as %s",
			m.Origin("advertise"), m.Advertise, net.JoinHostPort(hostname(), port))
	case port == "0":
		return fmt.Errorf("%s %s: want a fixed port, which others connect to", m.Origin("advertise"), m.Advertise)
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

// maxConnections exceeds the number of ports of a client computer, of which there are several.
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
		return fmt.Errorf("%s is etcd, which requires the endpoints in --etcd", m.Origin("store"))
	}
	for i, endpoint := range e.Endpoints {
		e.Endpoints[i] = strings.TrimSpace(endpoint)
		if err := checkEndpoint(e.Endpoints[i]); err != nil {
			return fmt.Errorf("%s: %w", m.Origin("etcd"), err)
		}
	}
	switch {
	case (e.Cert == "") != (e.Key == ""):
		return errors.New("--etcd-cert and --etcd-key must be set together: one is missing")
	case e.Password.Len() > 0 && e.passwordFile != "":
		return fmt.Errorf("%s and %s both set the password: remove one of them", m.Origin(PasswordFlag), m.Origin("etcd-password-file"))
	}
	if e.passwordFile != "" {
		password, err := cli.ReadSecret(e.passwordFile)
		if err != nil {
			return cli.Fail(fmt.Errorf("%s: %w", m.Origin("etcd-password-file"), err))
		}
		e.Password = password
	}
	if (e.Username == "") != (e.Password.Len() == 0) {
		return errors.New("--etcd-user and its password must be set together: one is missing")
	}
	return nil
}

// checkEndpoint accepts host:port or a URL of it.
func checkEndpoint(endpoint string) error {
	if err := cli.WithoutLogin(endpoint, "use --etcd-user and --etcd-password-file"); err != nil {
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

// maxQuota bounds --quota. A joining member receives the whole store, and a restore reads all of it.
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

// The kinds of store.
const (
	onDisk   = "disk"
	inEtcd   = "etcd"
	inMemory = "flease"
)

// storeNames are the values of --store. It is read-only.
var storeNames = []string{onDisk, inEtcd, inMemory}

// validateStore selects the store, and rejects settings of other stores, which would have no
// effect.
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
			onDisk, "is for managers with an embedded store", "",
			[]string{"data-dir", "name", "members", "join", "quota"},
		},
		{
			inEtcd, "is for an etcd cluster", ": name its endpoints with --etcd",
			[]string{"etcd-prefix", "etcd-ca", "etcd-cert", "etcd-key", "etcd-user", PasswordFlag, "etcd-password-file", "etcd"},
		},
		{
			inMemory, "is for managers without disks", ": use --store flease",
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
		return fmt.Errorf("%s is for managers that connect to each other, and %s", m.Origin("peer-listen"), m.tables(""))
	}
	m.clearUnused()
	return nil
}

// tables describes where the tables are and which setting decides it; instead is the advice if none does.
func (m *ManagerSettings) tables(instead string) string {
	switch {
	case m.Store == inEtcd && m.Flags.Changed("etcd"):
		return "with " + m.Origin("etcd") + " the tables are in that cluster: remove one of them"
	case m.Flags.Changed("store"):
		return m.Origin("store") + " is " + m.Store + ": remove one of them"
	}
	return "this manager keeps its tables on disk" + instead
}

// clearUnused empties the settings of other stores.
func (m *ManagerSettings) clearUnused() {
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
