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
	Manager storage.ManagerID // its name, and where others reach it
	Addr    string            // where it takes part in the lease of leadership
}

// Bounds on a group. Two managers are no better than one: either's death stops
// both.
const (
	MinPeers = 3
	MaxPeers = 9
)

// Config is what a manager knows about its group. Peers, Key, Lease, Epsilon, Drift
// and Longest must be the same everywhere; who was told otherwise is not understood
// by the others.
type Config struct {
	Self  storage.ManagerID
	Peers []Peer // all of the group, Self among them

	Key       secret.Text      // that the group shares; not needed on the loopback, or if Transport is secure
	OtherKeys []secret.Text    // that are accepted as well
	Listen    string           // if that is not our Addr
	Transport flease.Transport // nil: UDP
	Secure    bool             // Transport proves who everybody is

	Lease   time.Duration // for how long a leader acts without renewing
	Epsilon time.Duration // by how much wall clocks may differ
	Drift   float64       // by how much clocks may differ in rate
	// Longest is for how long an owner may believe in a lease, at most, on any
	// clock: no namespace may be given a longer one.
	Longest time.Duration

	Clock  *clock.Clock // in whose instants Hear is told of time
	Logger *slog.Logger
	// Dial returns a connection to another manager, without waiting for it.
	Dial func(storage.ManagerID) (*grpc.ClientConn, error)
	// Hear is told what becomes of leadership, in order, and Outranked of a higher term
	// than ours that another manager has heard of. They may wait, but not for the Group.
	Hear      func(bylease.Event)
	Outranked func(leasehold.Term)
}

const opJoin = "join the group of managers"

func (c *Config) validate() error {
	bad := func(format string, args ...any) error {
		return leasehold.Errorf(opJoin, leasehold.ErrInvalid, string(c.Self), format, args...)
	}
	if len(c.Peers) < MinPeers || len(c.Peers) > MaxPeers {
		return bad("there are %d managers, want %d to %d: one that dies must leave a majority", len(c.Peers), MinPeers, MaxPeers)
	}
	c.Peers = slices.SortedFunc(slices.Values(c.Peers), func(a, b Peer) int { return strings.Compare(string(a.Manager), string(b.Manager)) })
	names, ids := make(map[string]bool), make(map[flease.ID]storage.ManagerID)
	for _, p := range c.Peers {
		if names["manager "+string(p.Manager)] || names[p.Addr] {
			return bad("%s is there twice", p.Manager)
		}
		names["manager "+string(p.Manager)], names[p.Addr] = true, true
		if other := ids[p.id()]; other != "" {
			return bad("%s and %s have the same number by chance: write one of them in another way", other, p.Manager)
		}
		ids[p.id()] = p.Manager
	}
	if !names["manager "+string(c.Self)] {
		return bad("it is not one of its group: %v", c.managers())
	}
	if c.Key.Len() > 0 || c.Secure {
		return nil
	}
	for _, addr := range c.addrs() {
		if !address.Loopback(addr) {
			return bad("%s is not on the loopback, so that managers need a key by which they know each other: give the same to all with --peer-key-file, or Peers.Key", addr)
		}
	}
	return nil
}

// addrs are the addresses of the group, and where this manager listens.
func (c *Config) addrs() (all []string) {
	for _, p := range c.Peers {
		all = append(all, p.Addr)
	}
	if c.Listen != "" {
		all = append(all, c.Listen)
	}
	return all
}

// id is the manager's number among those who agree on leases. It does not depend on
// who else is there.
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

// manager names the manager that has a number, or gives the number if it is none of
// the group.
func (c *Config) manager(id flease.ID) string {
	for _, p := range c.Peers {
		if p.id() == id {
			return string(p.Manager)
		}
	}
	return fmt.Sprintf("an unknown manager (%d)", id)
}

// description is what all managers of a group must have been told alike.
func (c *Config) description() string {
	return fmt.Sprintf("leasehold managers %q, lease %v, epsilon %v, drift %v, longest %v", c.managers(), c.Lease, c.Epsilon, c.Drift, c.Longest)
}

// digest is short for the description and a key. Managers refuse calls of those who
// have another one: whose key is another has no vote on who leads, and must not be
// taken for one who has because it answers calls. It does not give the key away, and
// does not keep out whoever has overheard it.
func (c *Config) digest(key secret.Text) uint64 {
	sum := hmac.New(sha256.New, []byte(key.Reveal()))
	_, _ = sum.Write([]byte(c.description())) // it never fails
	return binary.LittleEndian.Uint64(sum.Sum(nil))
}

// digests are those of managers that have a key which is accepted. The first is our own.
func (c *Config) digests() []uint64 {
	out := []uint64{c.digest(c.Key)}
	for _, other := range c.OtherKeys {
		out = append(out, c.digest(other))
	}
	return out
}

// flease says how the group agrees on leases. Majorities of different groups need
// not overlap, so those who disagree about the group must not understand each
// other, but know of each other: the label sees to that.
func (c *Config) flease() flease.Config {
	out := flease.Config{
		Lease: c.Lease, Epsilon: c.Epsilon, Drift: c.Drift, Key: c.Key, OtherKeys: c.OtherKeys, Label: c.description(),
		Listen: c.Listen, Transport: c.Transport, MaxResources: 64, Logger: c.Logger,
	}
	for _, p := range c.Peers {
		if p.Manager == c.Self {
			out.Self = p.id()
		}
		out.Members = append(out.Members, flease.Member{ID: p.id(), Addr: p.Addr, Name: string(p.Manager)})
	}
	return out
}

// replica says how the group keeps the catalog.
func (c *Config) replica() machine.Config {
	var process [8]byte
	_, _ = rand.Read(process[:]) // it never fails
	return machine.Config{
		Self: c.Self, Process: max(1, binary.LittleEndian.Uint64(process[:])),
		Peers: c.managers(), Longest: c.Longest, Refresh: c.refresh(),
	}
}

// refresh is how often the leader tells the others that it leads.
func (c *Config) refresh() time.Duration { return min(time.Second, c.Lease/2) }

// Appointment says how a manager of the group learns who leads.
func (c *Config) Appointment() *bylease.Config {
	return &bylease.Config{Self: c.Self, Drift: mono.Drift(c.Drift), Fade: 3 * c.refresh(), Remember: c.Longest + 5*time.Minute}
}
