package fleasenet

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"strconv"
	"sync"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/flease"
	"github.com/leasehold-dev/leasehold/secret"
)

// Limits of packets and peers.
const (
	// MaxPeers is the maximum number of processes in a network.
	MaxPeers = 1024
	// MinPacket has room for any message.
	MinPacket = 512
	// MaxPacket is the size of the largest packet.
	MaxPacket = 32 << 10
	// UsualPacket is the size of a datagram that nearly all networks carry without fragmentation.
	UsualPacket = 1400
	// MinKey is the minimum length of a key.
	MinKey = 16
)

// A Peer is another process and its address.
type Peer struct {
	Process flease.Process
	Addr    string // host:port
	Name    string // for the log; default the process number
}

// name returns the name of a peer for the log.
func (p Peer) name() string { return cmp.Or(p.Name, strconv.FormatUint(uint64(p.Process), 10)) }

// Config configures a network. Key and Fingerprint must be the same in all processes.
type Config struct {
	Self        flease.Process
	Incarnation uint64 // initial; random, new with every start, because keys depend on it
	// Fingerprint identifies the configuration that all processes must share. Packets with another
	// one go to Strange.
	Fingerprint uint64

	Listen string // host:port; port 0 chooses a free one
	// Peers are the processes to exchange packets with. Self may be among them: packets to it go
	// to its address, unless that is this process's own. This reaches another process that was
	// started with the same id. Host names are resolved periodically, and need not resolve at first.
	Peers []Peer

	// Key is the shared secret of all processes, at least 16 random bytes. It is required unless all
	// addresses are on the loopback or TLS is mutual.
	Key secret.Text
	// OtherKeys are also accepted, for a rolling change of Key.
	OtherKeys []secret.Text
	// MaxPacket is the maximum size of sent packets. Default 1400 bytes for UDP, and 32 KiB to
	// loopback peers, on TCP and in memory. Large packets cost less per message; a
	// fragmented datagram is lost with any of its fragments.
	MaxPacket int
	// TLS is optional, for TCP only, and used for both ends of connections.
	TLS *tls.Config

	// Receive is called for each received packet, concurrently from several goroutines. Its
	// arguments, including the names in messages, are valid until it returns. It may call Send
	// and Flush under the caller's mutex for them, but not Close.
	Receive func(*flease.Envelope, []flease.Message, *Source)
	// Strange, if set, is called like Receive for each packet with the right key and another
	// fingerprint, from peers and other processes. Its messages are not decoded.
	Strange func(e *flease.Envelope, fingerprint uint64, from *Source)
	// Drained, if set, is called after one or more calls of Receive, by the same goroutine, before
	// it waits for more packets. Flushing here sends the replies to all of them in one batch.
	Drained func()

	Logger *slog.Logger // connection failures and rejected packets; default none
}

// A Net sends messages to other processes and receives theirs.
//
// Send and Flush are for one goroutine at a time, and never block on a peer. The other methods are safe for
// concurrent use.
type Net interface {
	// Send packs messages for a process and keeps the packets for Flush. Without messages it
	// packs one packet, a greeting. The envelope must be from the configured process; another
	// incarnation in it replaces the configured one. Send does not keep its arguments. Packets
	// without room are dropped and counted.
	Send(to flease.Process, e *flease.Envelope, msgs []flease.Message)
	// Flush sends the packets of all calls of Send.
	Flush()
	// Addr returns the listen address with the port.
	Addr() string
	// Counters returns the numbers of sent, received and dropped packets since the start.
	Counters() Counters
	// Close ends all goroutines and waits for them. Packets that were not flushed are lost.
	Close() error
}

// base is the common part of all networks. Its context ends with Close.
type base struct {
	counters
	config  Config
	packer  *packer
	inbox   *inbox
	ctx     context.Context
	stop    context.CancelFunc
	running sync.WaitGroup
}

func (p *base) begin(c Config) (err error) {
	p.config = c
	if p.packer, err = newPacker(&p.config, &p.counters); err != nil {
		return err
	}
	p.inbox = newInbox(&p.config, p.packer, &p.counters)
	p.ctx, p.stop = context.WithCancel(context.Background())
	return nil
}

// unknown counts a dropped packet to a process without address. Packets to the process itself are not
// counted.
func (p *base) unknown(to flease.Process) {
	if to != p.config.Self {
		p.drop(foreign, 1)
	}
}

// closed returns the result of Close.
func closed(addr string, err error) error {
	if err != nil && !errors.Is(err, net.ErrClosed) {
		return leasehold.Errorf(op, leasehold.Other, addr, "%w", err)
	}
	return nil
}
