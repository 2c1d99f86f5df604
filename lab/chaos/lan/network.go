// Package lan is a network inside this computer with faults in each direction between any two hosts.
//
// A host is a network namespace with a TUN device, whose other end is a file that this process reads. A
// switch (switch.go) forwards all packets: delayed, duplicated, reordered, or not at all (trouble.go).
// Processes on a host have ordinary sockets, and the TCP of the system.
//
// # Why not veth and tc
//
// Traffic control needs netem, which the kernels of many small virtual machines lack. It works on an
// interface and not on the path between two hosts, and its randomness has no seed. Bridges, named
// namespaces and queueing disciplines outlive a process that is killed; here everything ends with the
// process. The price is two system calls of this process for each packet.
//
// It requires Linux, and root or CAP_NET_ADMIN and CAP_SYS_ADMIN. Without these, [Again] runs a process as
// root of namespaces of its own.
package lan

import (
	"errors"
	"math/rand/v2"
	"net/netip"
	"sync"
)

// A Network connects hosts. Its methods are safe for concurrent use.
type Network struct {
	late *delayer

	mu       sync.Mutex
	random   *rand.Rand
	hosts    []*Host
	byAddr   map[netip.Addr]*Host
	troubles map[int]struck // by number
	struck   int            // total number of troubles
	ways     map[[2]*Host]*way
	counts   Counts
	closed   bool
}

// Counts are the numbers of packets.
type Counts struct {
	Passed     uint64 `json:"passed"` // without a trouble
	Delayed    uint64 `json:"delayed"`
	Duplicated uint64 `json:"duplicated"`
	Dropped    uint64 `json:"dropped"`
}

type struck struct {
	way     Way
	trouble Trouble
}

// maxHosts is the number of addresses.
const maxHosts = 250

// New creates a network without hosts. The seed determines the faults of packets.
func New(seed uint64) *Network {
	n := &Network{
		random: rand.New(rand.NewPCG(seed, 1)),
		byAddr: make(map[netip.Addr]*Host), troubles: make(map[int]struck), ways: make(map[[2]*Host]*way),
	}
	n.late = newDelayer()
	return n
}

// Host adds a host.
func (n *Network) Host(name string) (*Host, error) {
	n.mu.Lock()
	number := len(n.hosts) + 1
	n.mu.Unlock()
	if number > maxHosts {
		return nil, errors.New("no free address")
	}
	h, err := newHost(name, netip.AddrFrom4([4]byte{10, 77, 0, byte(number)}))
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	n.hosts = append(n.hosts, h)
	n.byAddr[h.Addr] = h
	n.mu.Unlock()
	h.reading.Go(func() { n.forward(h) })
	return h, nil
}

// Strike begins a trouble. It returns the function that ends it, which may be called more than once.
func (n *Network) Strike(w Way, t Trouble) (heal func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.struck++
	number := n.struck
	n.troubles[number] = struck{w, t}
	clear(n.ways)
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.troubles, number)
		clear(n.ways)
	}
}

// Counts returns the numbers of packets so far.
func (n *Network) Counts() Counts {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.counts
}

// Close ends the network. Processes at its hosts must have ended.
func (n *Network) Close() {
	n.mu.Lock()
	hosts := n.hosts
	n.closed = true
	n.mu.Unlock()
	for _, h := range hosts {
		h.close()
	}
	n.late.close()
}
