package managerd

import (
	"fmt"
	"slices"
	"strings"

	"github.com/leasehold-dev/leasehold/server/cli"

	"github.com/leasehold-dev/leasehold/flease"
	"github.com/leasehold-dev/leasehold/manager"
	"github.com/leasehold-dev/leasehold/secret"
)

// validatePeers checks what managers that keep nothing on disk say about each other.
func (m *ManagerSettings) validatePeers() error {
	where, p := m.origin("peers"), &m.Peers
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
		return fmt.Errorf("%s %v: want more than 0 and less than --ttl, which is %v", m.origin("epsilon"), p.Epsilon, m.TTL)
	}
	if p.Longest < minTTL || p.Longest > 24*maxTTL {
		return fmt.Errorf("%s %v: want %v to %v", m.origin("longest-lease"), p.Longest, minTTL, 24*maxTTL)
	}
	if p.keyFile == "" {
		return nil
	}
	keys, err := readKeys(p.keyFile)
	if err != nil {
		return cli.Fail(fmt.Errorf("%s: %w", m.origin("peer-key-file"), err))
	}
	p.Keys = keys
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
	p := &manager.Peers{
		Members: m.Peers.Members, Listen: m.peerListen(), Epsilon: m.Peers.Epsilon, Longest: m.Peers.Longest,
	}
	if keys := m.Peers.Keys; len(keys) > 0 {
		p.Key, p.OtherKeys = keys[0], keys[1:]
	}
	return p
}

// maxKeys is how many keys there may be at a time: one that is used, and one that is no
// longer or will be soon.
const maxKeys = 2

// readKeys reads a file with a key on each line.
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
