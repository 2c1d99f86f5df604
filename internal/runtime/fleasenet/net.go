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

// Bounds of packets and peers.
const (
	// MaxPeers is how many processes a network connects.
	MaxPeers = 1024
	// MinPacket holds any message.
	MinPacket = 512
	// MaxPacket is the largest packet that anybody takes.
	MaxPacket = 32 << 10
	// UsualPacket is a datagram that crosses nearly every network whole.
	UsualPacket = 1400
	// MinKey is the length of the shortest secret.
	MinKey = 16
)

// A Peer is another process, and where it listens.
type Peer struct {
	Process flease.Process
	Addr    string // host:port
	Name    string // for the log. Default: its number
}

// name is what the log calls a peer.
func (p Peer) name() string { return cmp.Or(p.Name, strconv.FormatUint(uint64(p.Process), 10)) }

// Config says who speaks to whom. Key and Fingerprint must be the same everywhere.
type Config struct {
	Self        flease.Process
	Incarnation uint64 // at first; random, new with every start: keys depend on it
	// Fingerprint stands for what all processes must have been told alike. Those
	// with another one are strangers: see Strange.
	Fingerprint uint64

	Listen string // host:port; port 0 is any
	// Peers are those that are spoken and listened to. Self may be among them: what
	// is sent to it goes to its address, unless we listen there ourselves, since
	// another process may, which takes itself for us. Host names are looked up
	// again from time to time, and need not be known yet.
	Peers []Peer

	// Key is the secret that all processes share, 16 random bytes at least. It is
	// needed unless all addresses are on the loopback, or TLS asks both sides for
	// certificates.
	Key secret.Text
	// OtherKeys are accepted as well, while processes are given another Key one after
	// the other.
	OtherKeys []secret.Text
	// MaxPacket bounds the packets that are sent. Default: 1400 bytes in datagrams,
	// but 32 KiB to peers on the loopback, on TCP and in memory. Larger ones cost
	// less per message; a datagram that the network must cut up is lost with any
	// of its parts.
	MaxPacket int
	// TLS is for TCP only, and optional. It is used for both ends of connections.
	TLS *tls.Config

	// Receive is called with each packet that arrives. The envelope, the messages
	// and the names in them are borrowed until it returns. Calls may come from
	// several goroutines at a time; those of one goroutine come one after another.
	// It may call Send and Flush, under whatever lock guards them, and not Close.
	Receive func(*flease.Envelope, []flease.Message, *Source)
	// Strange, if set, is called like Receive, with each packet that has the right
	// key and another fingerprint, from a peer or from a process that is none. What
	// messages it has are not read.
	Strange func(e *flease.Envelope, fingerprint uint64, from *Source)
	// Drained, if set, is called after one or more calls of Receive, by the same
	// goroutine, when it is about to wait for more: the time to flush. Answers to
	// all that came together then go together.
	Drained func()

	Logger *slog.Logger // for what peers do to connections. Default: none
}

// A Net sends messages to other processes and receives theirs.
//
// Send and Flush are for one goroutine at a time, and never block on a peer. All
// other methods may be called at any time.
type Net interface {
	// Send writes the messages into packets for a process, and keeps these for
	// Flush. No messages make one packet, a greeting. The envelope must be from
	// the configured process; another incarnation is ours from then on. It keeps nothing of what it is
	// given. What finds no room is lost and counted.
	Send(to flease.Process, e *flease.Envelope, msgs []flease.Message)
	// Flush hands what was gathered to the system.
	Flush()
	// Addr is where it listens, with the port.
	Addr() string
	// Counters returns what was sent, received and dropped since the start.
	Counters() Counters
	// Close ends all goroutines and waits for them. What was not flushed is lost,
	// and what is sent after it.
	Close() error
}

// A party is what all networks have in common. Its context ends with Close.
type party struct {
	tally
	config  Config
	packer  *packer
	inbox   *inbox
	ctx     context.Context
	stop    context.CancelFunc
	running sync.WaitGroup
}

func (p *party) begin(c Config) (err error) {
	p.config = c
	if p.packer, err = newPacker(&p.config, &p.tally); err != nil {
		return err
	}
	p.inbox = newInbox(&p.config, p.packer, &p.tally)
	p.ctx, p.stop = context.WithCancel(context.Background())
	return nil
}

// unknown drops a packet for a process that there is no way to. What a process sends to
// itself needs none.
func (p *party) unknown(to flease.Process) {
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
