package flease

import (
	"cmp"
	"log/slog"
	"slices"
	"strconv"
	"time"

	"github.com/leasehold-dev/leasehold"
	machine "github.com/leasehold-dev/leasehold/internal/core/machine/flease"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/secret"
)

// Defaults of a [Config].
const (
	DefaultLease   = 10 * time.Second
	DefaultEpsilon = 500 * time.Millisecond
	DefaultDrift   = 1.20
)

// Bounds.
const (
	MaxMembers  = machine.MaxMembers // of a group
	MaxResource = machine.MaxName    // bytes of a resource's name
)

// An ID names a member. Zero is nobody.
type ID uint32

// A Member is a process of the system, and where the others reach it.
type Member struct {
	ID   ID     `json:"id"`
	Addr string `json:"addr"`           // host:port; not needed with [Memory]
	Name string `json:"name,omitempty"` // what the log calls it. Default: its ID
}

// name is what the log calls a member.
func (m *Member) name() string {
	return cmp.Or(m.Name, strconv.FormatUint(uint64(m.ID), 10))
}

// Config says who the members are, and what is assumed of their clocks. All but
// Self, Listen, Logger and MaxResources must be the same everywhere.
type Config struct {
	// Self is the member that this process is. No two processes may be the same
	// one at a time: see "Equal IDs". Required.
	Self ID
	// Members are all processes of the system, Self among them. Required.
	Members []Member

	// Groups, if set, returns the members that agree on a resource, 64 at most; a
	// majority of them must be alive. It must always return the same for a name,
	// everywhere, and none for a name that is not in use. It is called with the
	// node's lock held: it must not block, nor call the node. Default: all
	// members, for every resource.
	Groups func(resource string) []ID

	// Label is whatever else all members must have been told alike. Members whose
	// labels differ do not understand each other. Those who change what Groups
	// returns change it, too.
	Label string

	// Lease is how long a lease lasts if it is not renewed, from 10 ms to 24 h. A
	// holder renews it every third of that. A short one is free soon when its
	// holder dies; a long one survives longer troubles of the network. Default 10 s.
	Lease time.Duration
	// Epsilon is by how much two members' wall clocks may differ. It delays the
	// takeover from a dead holder. It is less than Lease, and better much less.
	// Default 500 ms.
	Epsilon time.Duration
	// Drift is how much faster one member's monotonic clock may run than
	// another's, 1 to 10. It lengthens the takeover from a dead holder. Default
	// 1.20, which covers two clocks that are slewed in opposite directions.
	Drift float64

	// Key is a secret that all members share, of 16 random bytes or more. It is
	// required unless all addresses are on the loopback or connections prove who
	// they are: see [TCP].
	Key secret.Text
	// OtherKeys are accepted beside Key, while members are given another one, restarted
	// one after the other: first all accept the new key, then each uses it and accepts
	// the old one, then nobody accepts that any more.
	OtherKeys []secret.Text
	// Listen is where this member listens, if that is not its address in Members.
	Listen string
	// Transport carries the packets: [UDP], [TCP] or a [Memory]. Default UDP.
	Transport Transport

	// MaxResources bounds how many resources a member knows of at a time, its own
	// and those that it is asked about, and those that were released less than
	// Lease times Drift ago. One takes some 300 bytes, and 500 more while this
	// process has or wants it; what was needed once is kept. Default 4 million.
	MaxResources int
	// Logger hears of clocks that are wrong, of processes with equal IDs, other keys
	// or other members, and of leases that are lost. Default: nobody does.
	Logger *slog.Logger
}

const opStart = "start flease"

func (c *Config) bad(subject, format string, args ...any) error {
	return leasehold.Errorf(opStart, leasehold.ErrInvalid, subject, format, args...)
}

// validate fills in defaults. What the machine and the transport check is not
// checked twice.
func (c *Config) validate() error {
	c.Lease = cmp.Or(c.Lease, DefaultLease)
	c.Drift = cmp.Or(c.Drift, DefaultDrift)
	if c.Epsilon == 0 {
		c.Epsilon = DefaultEpsilon
		if c.Lease > 0 && c.Lease <= c.Epsilon {
			return c.bad("", "Epsilon is not set, and its default, %v, is not less than the lease, %v: set it to how much wall clocks may differ", c.Epsilon, c.Lease)
		}
	}
	if c.Transport == nil {
		c.Transport = UDP{}
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Self == 0 {
		return c.bad("", "Self must be set: which of the members is this process?")
	}
	if len(c.Members) == 0 {
		return c.bad("", "Members is empty: name all members, this process among them")
	}
	if c.self() == nil {
		return c.bad("", "Self is member %d, which is not among the %d Members", c.Self, len(c.Members))
	}
	c.Listen = cmp.Or(c.Listen, c.self().Addr)
	return nil
}

// machine is the part that decides.
func (c *Config) machine() machine.Config {
	cfg := machine.Config{
		Self: machine.Process(c.Self), Lease: c.Lease, Epsilon: c.Epsilon, Drift: mono.Drift(c.Drift), Max: c.MaxResources,
	}
	for _, m := range c.Members {
		cfg.Peers = append(cfg.Peers, machine.Process(m.ID))
	}
	if groups := c.Groups; groups != nil {
		var group []machine.Process // borrowed until the next call
		cfg.Group = func(name string) []machine.Process {
			group = group[:0]
			for _, id := range groups(name) {
				group = append(group, machine.Process(id))
			}
			return group
		}
	}
	return cfg
}

// self is the member that this process is.
func (c *Config) self() *Member { return c.member(c.Self) }

// member returns a member; nil if it is none.
func (c *Config) member(id ID) *Member {
	if place := slices.IndexFunc(c.Members, func(m Member) bool { return m.ID == id }); place >= 0 {
		return &c.Members[place]
	}
	return nil
}
