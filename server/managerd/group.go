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

// validateGroup checks what managers that keep the tables themselves say about
// each other, and fills in how their stores meet.
func (m *ManagerSettings) validateGroup() error {
	if m.DataDir == "" {
		return fmt.Errorf("%s: the tables need a directory", m.Origin("data-dir"))
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
		return fmt.Errorf("%s founds a group and %s joins one: leave out one of the two", m.Origin("members"), m.Origin("join"))
	case len(m.members) > 0:
		return m.found()
	case m.Join != "" && m.PeerListen == "":
		return fmt.Errorf("%s: say with --peer-listen where the other managers' stores reach this one's, such as --peer-listen :7402", m.Origin("join"))
	case m.PeerListen != "":
		return m.beReachable()
	}
	return nil
}

func (m *ManagerSettings) found() error {
	where := m.Origin("members")
	if len(m.members) > maxMembers {
		return fmt.Errorf("%s: %d members, want at most %d; others can stand in front of an etcd cluster", where, len(m.members), maxMembers)
	}
	m.Members = nil
	urls := make(map[string]string) // whose it is, by URL and by name
	for _, text := range m.members {
		member, err := parseMember(strings.TrimSpace(text), m.peerScheme())
		if err != nil {
			return fmt.Errorf("%s: %w", where, err)
		}
		if urls["name "+member.Name] != "" || urls[member.PeerURL] != "" {
			return fmt.Errorf("%s: %s: this name or URL is there twice", where, text)
		}
		urls["name "+member.Name], urls[member.PeerURL] = member.Name, member.Name
		m.Members = append(m.Members, member)
		if member.Name == m.Name {
			m.PeerURL = member.PeerURL
		}
	}
	if m.PeerURL == "" {
		return fmt.Errorf("%s: %q, the name of this manager, is not among them: say with --name which one it is", where, m.Name)
	}
	if m.PeerListen == "" {
		m.PeerListen = listenFor(m.PeerURL)
	}
	return nil
}

// beReachable derives how others reach this manager's store: at the host where
// they reach the manager, on the port where the store listens.
func (m *ManagerSettings) beReachable() error {
	_, port, err := net.SplitHostPort(m.PeerListen)
	if err != nil {
		return err
	}
	if port == "0" {
		return fmt.Errorf("%s %s: the others need to know the port", m.Origin("peer-listen"), m.PeerListen)
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

// parseMember reads name=url. The scheme may be left out; it must not be another.
func parseMember(text, scheme string) (groupMember, error) {
	name, at, found := strings.Cut(text, "=")
	if !found {
		return groupMember{}, fmt.Errorf("%q: want name=url, such as m1=%s://10.0.0.1:7402", text, scheme)
	}
	if err := checkMemberName(name); err != nil {
		return groupMember{}, err
	}
	if err := cli.WithoutLogin(at, "leave it out, as managers do not ask each other for one"); err != nil {
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
		return groupMember{}, fmt.Errorf("%q is plain text, and there are certificates: write https, or leave the scheme out", text)
	case u.Scheme == "https" && scheme == "http":
		return groupMember{}, fmt.Errorf("%q needs certificates: say with --tls-dir where they are", text)
	}
	if address.Wildcard(u.Host) || u.Port() == "0" {
		return groupMember{}, fmt.Errorf("%q: the others cannot connect to that: name the host and its port", text)
	}
	return groupMember{Name: name, PeerURL: u.Scheme + "://" + u.Host}, nil
}

func checkMemberName(name string) error {
	if err := leasehold.OwnerID(name).Validate(); err != nil {
		return fmt.Errorf("the name of a manager: %w", err)
	}
	if strings.ContainsAny(name, "=, ") {
		return fmt.Errorf("%q: the name of a manager has no space, comma or equals sign", name)
	}
	return nil
}

// listenFor is where to listen for what is sent to a URL: on its address, or
// on all if it has a name, which may be that of something in front of us.
func listenFor(peerURL string) string {
	u, err := url.Parse(peerURL)
	if err != nil {
		panic(err) // parseMember has made it
	}
	if net.ParseIP(u.Hostname()) == nil && u.Hostname() != "localhost" {
		return ":" + u.Port()
	}
	return u.Host
}

// listenPeerURL is where the store listens for those of the other managers, as
// a URL with the scheme at which they reach it.
func (m *ManagerSettings) listenPeerURL() string {
	scheme, _, _ := strings.Cut(m.PeerURL, "://")
	host, port, err := net.SplitHostPort(m.PeerListen)
	if err != nil {
		panic(err) // validate has seen it
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
		return fmt.Errorf("%s: want the addresses of %d to %d managers with commas between, this one included, such as --peers m1:7400,m2:7400,m3:7400; there are %d",
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
			return fmt.Errorf("%s: %s: this address is there twice", where, text)
		}
		p.Members = append(p.Members, peer)
	}
	if !slices.ContainsFunc(p.Members, func(peer manager.Peer) bool { return peer.Manager == m.Advertise }) {
		return fmt.Errorf("%s: %q, which is where the others reach this manager, is not among them: say with --advertise which one it is", where, m.Advertise)
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

// parsePeer reads address, or address=address.
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

// peers is how this manager takes part in a group that keeps nothing on disk; nil if
// its group does.
func (m *ManagerSettings) peers() *manager.Peers {
	if m.Store != inMemory {
		return nil
	}
	p := m.Peers.Peers
	p.Listen = m.peerListen()
	return &p
}

// maxKeys is how many keys there may be at a time: one that is used, and one that is no
// longer or will be soon.
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
		return nil, fmt.Errorf("it has %d lines, want one with the key, or %d while the key is replaced", len(keys), maxKeys)
	}
	return keys, nil
}

// peerListen is where to listen for what the others say about leadership: where they
// send it, or on every address of this computer if that is a name, which may be that
// of something in front of us.
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
