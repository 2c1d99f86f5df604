package fleasenet

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/internal/core/machine/flease"
)

// frames are packets that are written together, each prefixed with its length.
type frames struct {
	bytes   []byte
	packets int
}

// add writes one packet with as many of the messages as fit, and returns the rest.
func (l *frames) add(p *packer, limit int, to flease.Process, e *flease.Envelope, msgs []flease.Message) []flease.Message {
	start := len(l.bytes)
	l.bytes, msgs = p.pack(append(l.bytes, 0, 0, 0, 0), limit, to, e, msgs)
	binary.LittleEndian.PutUint32(l.bytes[start:], uint32(len(l.bytes)-start-lengthSize))
	l.packets++
	return msgs
}

func (l *frames) clear() { l.bytes, l.packets = l.bytes[:0], 0 }

// A peerConn is the outgoing connection to a peer: a queue, and a goroutine that connects while there are packets to
// send.
type peerConn struct {
	peer     Peer
	tls      *tls.Config // nil without TLS
	counters *counters
	log      *slog.Logger
	// readReplies reads until the connection ends; a write would detect the end too late.
	readReplies func(net.Conn)

	gathered frames // of the goroutine that calls Send, until flush

	mu     sync.Mutex
	queue  frames
	conn   net.Conn      // nil if not connected; only the goroutine changes it
	queued chan struct{} // one element if the queue may not be empty

	// The following fields belong to the goroutine.
	broken  chan struct{} // closed when the connection has ended
	since   time.Time     // when it was established
	writing frames
	backoff time.Duration
}

func newPeerConn(p Peer, cfg *Config, t *counters, readReplies func(net.Conn)) *peerConn {
	log := cfg.Logger
	if p.Process == cfg.Self {
		log = slog.New(slog.DiscardHandler) // no other process with this id is expected
	}
	return &peerConn{
		peer: p, tls: cfg.TLS, counters: t, queued: make(chan struct{}, 1), backoff: minBackoff, readReplies: readReplies,
		log: log.With("of", p.name(), "addr", p.Addr),
	}
}

// flush adds the gathered packets to the queue, or drops them if it is full. It does not block.
func (l *peerConn) flush() {
	l.mu.Lock()
	switch {
	case len(l.queue.bytes) == 0:
		l.queue, l.gathered = l.gathered, l.queue
	case len(l.queue.bytes)+len(l.gathered.bytes) <= maxQueue:
		l.queue.bytes = append(l.queue.bytes, l.gathered.bytes...)
		l.queue.packets += l.gathered.packets
	default:
		l.counters.drop(full, l.gathered.packets)
	}
	l.mu.Unlock()
	l.gathered.clear()
	select {
	case l.queued <- struct{}{}:
	default:
	}
}

// take moves the queue to writing, and reports whether it was not empty.
func (l *peerConn) take() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.writing.clear()
	l.queue, l.writing = l.writing, l.queue
	return l.writing.packets > 0
}

func (l *peerConn) run(ctx context.Context) {
	defer l.closeConn()
	for l.wait(ctx) {
		for ctx.Err() == nil && l.take() {
			if !l.write(ctx) {
				l.counters.drop(failed, l.writing.packets)
			}
		}
	}
}

// wait blocks until the queue may not be empty; false: the context has ended. It closes broken and idle
// connections meanwhile.
func (l *peerConn) wait(ctx context.Context) bool {
	idle := time.NewTimer(idleTimeout / 2)
	defer idle.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-l.queued:
			return true
		case <-l.broken:
			l.closeConn()
			if time.Since(l.since) >= minLifetime {
				l.log.Info("connection closed by a member")
			} else {
				l.failed(ctx, "connection closed by a member at once: compare keys and TLS settings", io.EOF)
			}
		case <-idle.C:
			l.closeConn()
		}
	}
}

// write sends writing, and connects first if necessary. After a failure it waits for an exponential backoff, which a
// connection of minLifetime resets.
func (l *peerConn) write(ctx context.Context) bool {
	if l.conn == nil {
		if err := l.dial(ctx); err != nil {
			l.closeConn()
			l.failed(ctx, "connection to a member failed", err)
			return false
		}
	}
	_ = l.conn.SetWriteDeadline(time.Now().Add(writeTimeout))
	if _, err := l.conn.Write(l.writing.bytes); err != nil {
		l.closeConn()
		l.failed(ctx, "connection to a member lost", err)
		return false
	}
	if time.Since(l.since) >= minLifetime {
		l.backoff = minBackoff
	}
	return true
}

func (l *peerConn) failed(ctx context.Context, message string, err error) {
	if ctx.Err() != nil {
		return
	}
	if l.backoff == minBackoff {
		l.log.Warn(message, "err", err)
	}
	pause(ctx, l.backoff/2+rand.N(l.backoff/2)) //nolint:gosec // jitter
	l.backoff = min(2*l.backoff, maxBackoff)
}

func (l *peerConn) dial(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	var d interface {
		DialContext(ctx context.Context, network, addr string) (net.Conn, error)
	} = new(net.Dialer)
	if l.tls != nil {
		d = &tls.Dialer{Config: l.tls} // it verifies the host name of the peer's address
	}
	conn, err := d.DialContext(ctx, "tcp", l.peer.Addr)
	if err != nil {
		return err
	}
	broken := make(chan struct{})
	l.broken, l.since = broken, time.Now()
	go func() { // closeConn waits for it
		defer close(broken)
		l.readReplies(conn)
	}()
	l.mu.Lock()
	l.conn = conn
	l.mu.Unlock()
	return ctx.Err()
}

// interrupt closes the connection after the end of the context, because a write may block. dial returns an
// error for a connection that is established later.
func (l *peerConn) interrupt() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn != nil {
		_ = l.conn.Close()
	}
}

// closeConn closes the connection, if any, and waits for the goroutine that reads replies.
func (l *peerConn) closeConn() {
	if l.conn == nil {
		return
	}
	_ = l.conn.Close()
	<-l.broken
	l.mu.Lock()
	l.conn, l.broken = nil, nil
	l.mu.Unlock()
}
