package managerd

import (
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/leasehold-dev/leasehold/server/cli"

	"github.com/leasehold-dev/leasehold"
)

// validateGroup checks what managers that keep the tables themselves say about
// each other, and fills in how their stores meet.
func (m *ManagerSettings) validateGroup() error {
	if m.DataDir == "" {
		return fmt.Errorf("%s: the tables need a directory", m.origin("data-dir"))
	}
	if err := m.validateQuota(); err != nil {
		return err
	}
	if m.Name == "" {
		m.Name = hostname()
	}
	if err := checkMemberName(m.Name); err != nil {
		return fmt.Errorf("%s: %w", m.origin("name"), err)
	}
	switch {
	case len(m.members) > 0 && m.Join != "":
		return fmt.Errorf("%s founds a group and %s joins one: leave out one of the two", m.origin("members"), m.origin("join"))
	case len(m.members) > 0:
		return m.found()
	case m.Join != "" && m.PeerListen == "":
		return fmt.Errorf("%s: say with --peer-listen where the other managers' stores reach this one's, such as --peer-listen :7402", m.origin("join"))
	case m.PeerListen != "":
		return m.beReachable()
	}
	return nil
}

// found makes this manager one of the founding members.
func (m *ManagerSettings) found() error {
	where := m.origin("members")
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
		return fmt.Errorf("%s %s: the others need to know the port", m.origin("peer-listen"), m.PeerListen)
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

// peerScheme is how URLs of stores begin.
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
	if everywhere(u.Host) || u.Port() == "0" {
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
