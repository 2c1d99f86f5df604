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
	"github.com/leasehold-dev/leasehold/internal/runtime/clock"
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

// An ID identifies a member. Zero is no member.
type ID uint32

// A Member is a process of the group.
type Member struct {
	ID   ID     `json:"id"`
	Addr string `json:"addr"`           // host:port; not required with [Memory]
	Name string `json:"name,omitempty"` // for the log. Default: the ID
}

func (m *Member) name() string {
	return cmp.Or(m.Name, strconv.FormatUint(uint64(m.ID), 10))
}

// Config configures a member. All fields but Self, Listen, Logger and MaxResources
// must be the same on all members.
type Config struct {
	// Self is the ID of this process. No two processes may use it at the same
	// time: see "Equal IDs". Required.
	Self ID
	// Members are all processes of the group, including this one. Required.
	Members []Member

	// Groups, if set, returns the members that agree on a resource, at most 64; a
	// majority of them must be alive. It must return the same members for a name
	// at any time and on all members, and none for an invalid name. It is called with the
	// node's lock held: it must not block, nor call the node. Default: all
	// members, for every resource.
	Groups func(resource string) []ID

	// Label stands for other settings that all members must share. Members with
	// different labels drop each other's messages. Change it together with the
	// result of Groups.
	Label string

	// Lease is the duration of a lease without renewal, from 10 ms to 24 h. A
	// holder renews it after a third of that. A short lease is free sooner after its
	// holder fails; a long one survives longer network faults. Default 10 s.
	Lease time.Duration
	// Epsilon bounds the difference of two members' wall clocks. It delays the
	// takeover from a failed holder. It must be less than Lease, and should be much
	// less. Default 500 ms.
	Epsilon time.Duration
	// Drift bounds the ratio of the rates of two members' monotonic clocks, 1 to 10.
	// It delays the takeover from a failed holder. Default 1.20, which covers two
	// clocks that are slewed in opposite directions.
	Drift float64

	// Key is a secret that all members share, of at least 16 random bytes. It is
	// required unless all addresses are on the loopback, or the transport
	// authenticates connections: see [TCP].
	Key secret.Text
	// OtherKeys are accepted besides Key. To rotate the key, restart the members one
	// by one, three times: first accept the new key, then use the new key and accept
	// the old one, then accept only the new one.
	OtherKeys []secret.Text
	// Listen is the local address. Default: this member's address in Members.
	Listen string
	// Transport carries the packets: [UDP], [TCP] or a [Memory]. Default UDP.
	Transport Transport

	// MaxResources bounds the resources in memory: those that this process holds or
	// waits for, those of other members' requests, and those released less than
	// Lease times Drift ago. A resource takes about 300 bytes, and 500 more while this
	// process holds or waits for it; memory is reused, not freed. Default 4 million.
	MaxResources int
	// Logger logs wrong clocks, processes with equal IDs, other keys or other
	// members, and lost leases. Default: none.
	Logger *slog.Logger

	// Clock is for simulations of this module. Default: the clocks of the system.
	Clock *clock.Clock
}

const opStart = "start flease"

func (c *Config) bad(subject, format string, args ...any) error {
	return leasehold.Errorf(opStart, leasehold.ErrInvalid, subject, format, args...)
}

// validate sets defaults and checks the fields that neither the machine nor the
// transport checks.
func (c *Config) validate() error {
	c.Lease = cmp.Or(c.Lease, DefaultLease)
	c.Drift = cmp.Or(c.Drift, DefaultDrift)
	if c.Epsilon == 0 {
		c.Epsilon = DefaultEpsilon
		if c.Lease > 0 && c.Lease <= c.Epsilon {
			return c.bad("", "Epsilon is not set, and its default, %v, is not less than the lease, %v: set it to the bound on the difference of wall clocks", c.Epsilon, c.Lease)
		}
	}
	if c.Transport == nil {
		c.Transport = UDP{}
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Self == 0 {
		return c.bad("", "Self is not set: set it to the ID of this process")
	}
	if len(c.Members) == 0 {
		return c.bad("", "Members is empty: list all members, including this process")
	}
	if c.self() == nil {
		return c.bad("", "Self is %d, which is not in the %d Members", c.Self, len(c.Members))
	}
	c.Listen = cmp.Or(c.Listen, c.self().Addr)
	return nil
}

// machine returns the configuration of the machine.
func (c *Config) machine() machine.Config {
	cfg := machine.Config{
		Self: machine.Process(c.Self), Lease: c.Lease, Epsilon: c.Epsilon, Drift: mono.Drift(c.Drift), Max: c.MaxResources,
	}
	for _, m := range c.Members {
		cfg.Peers = append(cfg.Peers, machine.Process(m.ID))
	}
	if groups := c.Groups; groups != nil {
		var group []machine.Process // valid until the next call
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

// self returns the member of this process.
func (c *Config) self() *Member { return c.member(c.Self) }

// member returns the member with an ID, or nil.
func (c *Config) member(id ID) *Member {
	if place := slices.IndexFunc(c.Members, func(m Member) bool { return m.ID == id }); place >= 0 {
		return &c.Members[place]
	}
	return nil
}
