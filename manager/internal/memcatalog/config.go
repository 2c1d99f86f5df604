package memcatalog

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"log/slog"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/flease"
	"github.com/leasehold-dev/leasehold/internal/core/machine/leadership/bylease"
	machine "github.com/leasehold-dev/leasehold/internal/core/machine/memcatalog"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/runtime/address"
	"github.com/leasehold-dev/leasehold/internal/runtime/clock"
	"github.com/leasehold-dev/leasehold/secret"
)

// A Peer is a manager of the group.
type Peer struct {
	Manager storage.ManagerID // its name and address
	Addr    string            // of its Flease node
}

// Bounds on a group. Two managers are no better than one: a majority of two is both.
const (
	MinPeers = 3
	MaxPeers = 9
)

// Config configures a manager's part in its group. Peers, Key, Lease, Epsilon, Drift, Longest
// and Rebuild must be the same on all managers. A manager with other values does not take part.
type Config struct {
	Self  storage.ManagerID
	Peers []Peer // all managers of the group, Self included

	Key       secret.Text      // shared by the group; not required on the loopback, or if Secure
	OtherKeys []secret.Text    // accepted besides Key
	Listen    string           // default: the Addr of Self
	Transport flease.Transport // default: UDP
	Secure    bool             // Transport authenticates its peers

	Lease   time.Duration // of leadership
	Epsilon time.Duration // bound on the difference of wall clocks
	Drift   float64       // bound on the ratio of clock rates
	// Longest bounds the time for which an owner holds a lease, on any clock. A namespace with
	// longer leases is rejected.
	Longest time.Duration
	// Rebuild is that of package machine/memcatalog.
	Rebuild bool

	Clock  *clock.Clock // of the instants that Notify receives
	Logger *slog.Logger
	// Dial returns a connection to another manager, without waiting for it.
	Dial func(storage.ManagerID) (*grpc.ClientConn, error)
	// Notify receives the changes of leadership, in order. Outranked receives a term above this
	// leader's that another manager has seen. Both may block, but must not call the Group.
	Notify    func(bylease.Event)
	Outranked func(leasehold.Term)
}

const opJoin = "join the group of managers"

func (c *Config) validate() error {
	bad := func(format string, args ...any) error {
		return leasehold.Errorf(opJoin, leasehold.ErrInvalid, string(c.Self), format, args...)
	}
	if len(c.Peers) < MinPeers || len(c.Peers) > MaxPeers {
		return bad("there are %d managers, want %d to %d: a majority must survive the failure of one", len(c.Peers), MinPeers, MaxPeers)
	}
	c.Peers = slices.SortedFunc(slices.Values(c.Peers), func(a, b Peer) int { return strings.Compare(string(a.Manager), string(b.Manager)) })
	names, ids := make(map[string]bool), make(map[flease.ID]storage.ManagerID)
	for _, p := range c.Peers {
		if names["manager "+string(p.Manager)] || names[p.Addr] {
			return bad("%s is listed twice", p.Manager)
		}
		names["manager "+string(p.Manager)], names[p.Addr] = true, true
		if other := ids[p.id()]; other != "" {
			return bad("the names %s and %s have the same hash: write one of them in another way", other, p.Manager)
		}
		ids[p.id()] = p.Manager
	}
	if !names["manager "+string(c.Self)] {
		return bad("this manager is not in its group: %v", c.managers())
	}
	if c.Key.Len() > 0 || c.Secure {
		return nil
	}
	for _, addr := range c.addrs() {
		if !address.Loopback(addr) {
			return bad("%s is not on the loopback, so managers need a shared key: set --peer-key-file, or Peers.Key, to the same on all", addr)
		}
	}
	return nil
}

// addrs returns the Flease addresses of the group, and the one on which this manager listens.
func (c *Config) addrs() (all []string) {
	for _, p := range c.Peers {
		all = append(all, p.Addr)
	}
	if c.Listen != "" {
		all = append(all, c.Listen)
	}
	return all
}

// id returns the manager's Flease ID: a hash of its name, so that it does not depend on the
// other managers.
func (p Peer) id() flease.ID {
	h := fnv.New32a()
	_, _ = h.Write([]byte(p.Manager)) // it never fails
	return flease.ID(max(1, h.Sum32()))
}

func (c *Config) managers() (ids []storage.ManagerID) {
	for _, p := range c.Peers {
		ids = append(ids, p.Manager)
	}
	return ids
}

// manager returns the name of the manager with an ID.
func (c *Config) manager(id flease.ID) string {
	for _, p := range c.Peers {
		if p.id() == id {
			return string(p.Manager)
		}
	}
	return fmt.Sprintf("an unknown manager (%d)", id)
}

// description renders the settings that all managers of a group must share.
func (c *Config) description() string {
	text := fmt.Sprintf("leasehold managers %q, lease %v, epsilon %v, drift %v, longest %v", c.managers(), c.Lease, c.Epsilon, c.Drift, c.Longest)
	if c.Rebuild { // without it, the text is that of earlier versions
		text += ", rebuild"
	}
	return text
}

// digest returns a MAC of the description under a key. Managers reject calls with another digest:
// a manager with another key has no vote in elections, and must not count as a voter because it
// replies to calls. The digest does not reveal the key. It does not authenticate: an eavesdropper
// can replay it.
func (c *Config) digest(key secret.Text) uint64 {
	sum := hmac.New(sha256.New, []byte(key.Reveal()))
	_, _ = sum.Write([]byte(c.description())) // it never fails
	return binary.LittleEndian.Uint64(sum.Sum(nil))
}

// digests returns the accepted digests. The first is this manager's.
func (c *Config) digests() []uint64 {
	out := []uint64{c.digest(c.Key)}
	for _, other := range c.OtherKeys {
		out = append(out, c.digest(other))
	}
	return out
}

// flease returns the configuration of the Flease node. Majorities of different groups need not
// overlap, so managers that disagree about the group must not count each other's votes. The label
// makes Flease drop and report such messages.
func (c *Config) flease() flease.Config {
	out := flease.Config{
		Lease: c.Lease, Epsilon: c.Epsilon, Drift: c.Drift, Key: c.Key, OtherKeys: c.OtherKeys, Label: c.description(),
		Listen: c.Listen, Transport: c.Transport, MaxResources: 64, Logger: c.Logger, Clock: c.Clock,
	}
	for _, p := range c.Peers {
		if p.Manager == c.Self {
			out.Self = p.id()
		}
		out.Members = append(out.Members, flease.Member{ID: p.id(), Addr: p.Addr, Name: string(p.Manager)})
	}
	return out
}

// replica returns the configuration of the catalog's machine.
func (c *Config) replica() machine.Config {
	var process [8]byte
	_, _ = rand.Read(process[:]) // it never fails
	return machine.Config{
		Self: c.Self, Process: max(1, binary.LittleEndian.Uint64(process[:])),
		Peers: c.managers(), Longest: c.Longest, Refresh: c.refresh(), Rebuild: c.Rebuild,
	}
}

// refresh is the interval of the leader's heartbeats to the other managers.
func (c *Config) refresh() time.Duration { return min(time.Second, c.Lease/2) }

// Appointment returns the configuration of the leadership machine.
func (c *Config) Appointment() *bylease.Config {
	return &bylease.Config{Self: c.Self, Drift: mono.Drift(c.Drift), Fade: 3 * c.refresh(), Remember: c.Longest + 5*time.Minute}
}
