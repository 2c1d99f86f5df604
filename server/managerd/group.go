package managerd

import (
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/flease"
	"github.com/leasehold-dev/leasehold/internal/runtime/address"
	"github.com/leasehold-dev/leasehold/manager"
	"github.com/leasehold-dev/leasehold/secret"
	"github.com/leasehold-dev/leasehold/server/cli"
)

// validateGroup validates the settings of embedded stores, and fills in how the stores connect.
func (m *ManagerSettings) validateGroup() error {
	if m.DataDir == "" {
		return fmt.Errorf("%s: the data directory is missing", m.Origin("data-dir"))
	}
	if err := m.validateQuota(); err != nil {
		return err
	}
	if m.Name == "" {
		m.Name = hostname()
	}
	if err := checkMemberName(m.Name); err != nil {
		return fmt.Errorf("%s: %w", m.Origin("name"), err)
	}
	switch {
	case len(m.members) > 0 && m.Join != "":
		return fmt.Errorf("%s bootstraps a group and %s joins one: remove one of them", m.Origin("members"), m.Origin("join"))
	case len(m.members) > 0:
		return m.validateMembers()
	case m.Join != "" && m.PeerListen == "":
		return fmt.Errorf("%s requires --peer-listen, the address for the stores of the other managers, such as --peer-listen :7402", m.Origin("join"))
	case m.PeerListen != "":
		return m.derivePeerURL()
	}
	return nil
}

func (m *ManagerSettings) validateMembers() error {
	where := m.Origin("members")
	if len(m.members) > maxMembers {
		return fmt.Errorf("%s: %d members, want at most %d; for more managers use an etcd cluster (--etcd)", where, len(m.members), maxMembers)
	}
	m.Members = nil
	urls := make(map[string]string) // the member, by URL and by name
	for _, text := range m.members {
		member, err := parseMember(strings.TrimSpace(text), m.peerScheme())
		if err != nil {
			return fmt.Errorf("%s: %w", where, err)
		}
		if urls["name "+member.Name] != "" || urls[member.PeerURL] != "" {
			return fmt.Errorf("%s: %s: duplicate name or URL", where, text)
		}
		urls["name "+member.Name], urls[member.PeerURL] = member.Name, member.Name
		m.Members = append(m.Members, member)
		if member.Name == m.Name {
			m.PeerURL = member.PeerURL
		}
	}
	if m.PeerURL == "" {
		return fmt.Errorf("%s does not contain this manager, %q: set its name with --name", where, m.Name)
	}
	if m.PeerListen == "" {
		m.PeerListen = listenFor(m.PeerURL)
	}
	return nil
}

// derivePeerURL combines the host of the advertised address with the port of the store.
func (m *ManagerSettings) derivePeerURL() error {
	_, port, err := net.SplitHostPort(m.PeerListen)
	if err != nil {
		return err
	}
	if port == "0" {
		return fmt.Errorf("%s %s: want a fixed port, which the other managers connect to", m.Origin("peer-listen"), m.PeerListen)
	}
	at := m.Advertise
	if at == "" {
		at = m.Listen
	}
	host, _, err := net.SplitHostPort(at)
	if err != nil {
		return err
	}
	m.PeerURL = m.peerScheme() + "://" + net.JoinHostPort(host, port)
	return nil
}

func (m *ManagerSettings) peerScheme() string {
	if m.Security.Tls() {
		return "https"
	}
	return "http"
}

// parseMember parses name=url. The scheme may be omitted, and must otherwise match.
func parseMember(text, scheme string) (groupMember, error) {
	name, at, found := strings.Cut(text, "=")
	if !found {
		return groupMember{}, fmt.Errorf("%q: want name=url, such as m1=%s://10.0.0.1:7402", text, scheme)
	}
	if err := checkMemberName(name); err != nil {
		return groupMember{}, err
	}
	if err := cli.WithoutLogin(at, "remove it, since managers do not use passwords between each other"); err != nil {
		return groupMember{}, err
	}
	if !strings.Contains(at, "://") {
		at = scheme + "://" + at
	}
	u, err := url.Parse(at)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || strings.Trim(u.Path, "/") != "" || cli.CheckAddr(u.Host) != nil {
		return groupMember{}, fmt.Errorf("%q: want a URL of host and port, such as http://10.0.0.1:7402", text)
	}
	switch {
	case u.Scheme == "http" && scheme == "https":
		return groupMember{}, fmt.Errorf("%q is plaintext, and this manager uses TLS: write https, or omit the scheme", text)
	case u.Scheme == "https" && scheme == "http":
		return groupMember{}, fmt.Errorf("%q requires certificates: name them with --tls-dir", text)
	}
	if address.Wildcard(u.Host) || u.Port() == "0" {
		return groupMember{}, fmt.Errorf("%q: want a host and port that the other managers can connect to", text)
	}
	return groupMember{Name: name, PeerURL: u.Scheme + "://" + u.Host}, nil
}

func checkMemberName(name string) error {
	if err := leasehold.OwnerID(name).Validate(); err != nil {
		return fmt.Errorf("manager name: %w", err)
	}
	if strings.ContainsAny(name, "=, ") {
		return fmt.Errorf("%q: a manager name must not contain a space, comma or equals sign", name)
	}
	return nil
}

// listenFor returns the listen address for a URL: its IP address, or all addresses for a host
// name, which may belong to a proxy.
func listenFor(peerURL string) string {
	u, err := url.Parse(peerURL)
	if err != nil {
		panic(err) // parseMember built it
	}
	if net.ParseIP(u.Hostname()) == nil && u.Hostname() != "localhost" {
		return ":" + u.Port()
	}
	return u.Host
}

// listenPeerURL returns the listen address of the store as a URL with the scheme of PeerURL.
func (m *ManagerSettings) listenPeerURL() string {
	scheme, _, _ := strings.Cut(m.PeerURL, "://")
	host, port, err := net.SplitHostPort(m.PeerListen)
	if err != nil {
		panic(err) // Validate has checked it
	}
	if host == "" {
		host = "0.0.0.0"
	}
	if host == "localhost" {
		host = "127.0.0.1"
	}
	return scheme + "://" + net.JoinHostPort(host, port)
}

func (m *ManagerSettings) validatePeers() error {
	where, p := m.Origin("peers"), &m.Peers
	if n := len(p.members); n < manager.MinPeers || n > manager.MaxPeers {
		return fmt.Errorf("%s has %[4]d addresses, want %[2]d to %[3]d: all managers of the group, this one included, such as --peers m1:7400,m2:7400,m3:7400",
			where, manager.MinPeers, manager.MaxPeers, n)
	}
	p.Members = nil
	for _, text := range p.members {
		peer, err := parsePeer(strings.TrimSpace(text))
		if err != nil {
			return fmt.Errorf("%s: %w", where, err)
		}
		same := func(other manager.Peer) bool { return other.Manager == peer.Manager || other.Addr == peer.Addr }
		if slices.ContainsFunc(p.Members, same) {
			return fmt.Errorf("%s: %s: duplicate address", where, text)
		}
		p.Members = append(p.Members, peer)
	}
	if !slices.ContainsFunc(p.Members, func(peer manager.Peer) bool { return peer.Manager == m.Advertise }) {
		return fmt.Errorf("%s does not contain %q, the address of this manager: set it with --advertise", where, m.Advertise)
	}
	return m.validatePeerTimes()
}

func (m *ManagerSettings) validatePeerTimes() error {
	p := &m.Peers
	if p.Epsilon == 0 {
		p.Epsilon = min(flease.DefaultEpsilon, m.TTL/4)
	}
	if p.Epsilon < 0 || p.Epsilon >= m.TTL {
		return fmt.Errorf("%s %v: want more than 0 and less than --ttl, which is %v", m.Origin("epsilon"), p.Epsilon, m.TTL)
	}
	if p.Longest < minTTL || p.Longest > 24*maxTTL {
		return fmt.Errorf("%s %v: want %v to %v", m.Origin("longest-lease"), p.Longest, minTTL, 24*maxTTL)
	}
	if p.keyFile == "" {
		return nil
	}
	keys, err := readKeys(p.keyFile)
	if err != nil {
		return cli.Fail(fmt.Errorf("%s: %w", m.Origin("peer-key-file"), err))
	}
	p.Key, p.OtherKeys = keys[0], keys[1:]
	return nil
}

// parsePeer parses address, or address=address.
func parsePeer(text string) (manager.Peer, error) {
	at, lease, found := strings.Cut(text, "=")
	if !found {
		lease = at
	}
	for _, addr := range []string{at, lease} {
		if err := manager.ValidateAdvertise(addr); err != nil {
			return manager.Peer{}, fmt.Errorf("%q: want host:port, such as m1.example.com:7400: %w", text, err)
		}
	}
	return manager.Peer{Manager: at, Addr: lease}, nil
}

// peers returns the configuration of a group without disks; nil for other stores.
func (m *ManagerSettings) peers() *manager.Peers {
	if m.Store != inMemory {
		return nil
	}
	p := m.Peers.Peers
	p.Listen = m.peerListen()
	return &p
}

// maxKeys is the maximum number of keys: the current one, and the previous or next one.
const maxKeys = 2

func readKeys(path string) ([]secret.Text, error) {
	text, err := cli.ReadPrivate(path)
	if err != nil {
		return nil, err
	}
	var keys []secret.Text
	for line := range strings.Lines(strings.ReplaceAll(text, "\r", "")) {
		if line = strings.TrimRight(line, "\n"); line != "" {
			keys = append(keys, secret.New(line))
		}
	}
	if len(keys) == 0 || len(keys) > maxKeys {
		return nil, fmt.Errorf("the file has %d lines, want one line with the key, or %d while the key is replaced", len(keys), maxKeys)
	}
	return keys, nil
}

// peerListen returns the listen address for the leader election: --peer-listen, or else the
// address of this manager in --peers. For a host name, which may belong to a proxy, it is every
// address of this computer.
func (m *ManagerSettings) peerListen() string {
	if m.PeerListen != "" {
		return m.PeerListen
	}
	for _, p := range m.Peers.Members {
		if p.Manager == m.Advertise {
			return listenFor("udp://" + p.Addr)
		}
	}
	return ""
}
