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

// A load is packets that travel together, each with its length in front.
type load struct {
	bytes   []byte
	packets int
}

// add writes one packet with as many of the messages as fit, and returns the rest.
func (l *load) add(p *packer, limit int, to flease.Process, e *flease.Envelope, msgs []flease.Message) []flease.Message {
	start := len(l.bytes)
	l.bytes, msgs = p.pack(append(l.bytes, 0, 0, 0, 0), limit, to, e, msgs)
	binary.LittleEndian.PutUint32(l.bytes[start:], uint32(len(l.bytes)-start-lengthSize))
	l.packets++
	return msgs
}

func (l *load) clear() { l.bytes, l.packets = l.bytes[:0], 0 }

// A line is the way to a peer: a queue, and a goroutine that keeps a connection
// while there is something to say.
type line struct {
	peer  Peer
	tls   *tls.Config // nil without TLS
	tally *tally
	log   *slog.Logger
	// hear reads what comes back until the connection ends; a write would detect that too late.
	hear func(net.Conn)

	gathered load // the sender's, until it is flushed

	mu     sync.Mutex
	queue  load
	conn   net.Conn      // nil if there is none. Only the goroutine changes it
	queued chan struct{} // has one when the queue may not be empty

	// What follows belongs to the goroutine.
	broken  chan struct{} // closed when the connection has ended
	since   time.Time     // when it was made
	writing load
	backoff time.Duration
}

func newLine(p Peer, cfg *Config, t *tally, hear func(net.Conn)) *line {
	log := cfg.Logger
	if p.Process == cfg.Self {
		log = slog.New(slog.DiscardHandler) // as a rule nobody is there but us
	}
	return &line{
		peer: p, tls: cfg.TLS, tally: t, queued: make(chan struct{}, 1), backoff: leastBackoff, hear: hear,
		log: log.With("of", p.name(), "addr", p.Addr),
	}
}

// flush puts what was gathered into the queue, or drops it. It does not block.
func (l *line) flush() {
	l.mu.Lock()
	switch {
	case len(l.queue.bytes) == 0:
		l.queue, l.gathered = l.gathered, l.queue
	case len(l.queue.bytes)+len(l.gathered.bytes) <= maxQueue:
		l.queue.bytes = append(l.queue.bytes, l.gathered.bytes...)
		l.queue.packets += l.gathered.packets
	default:
		l.tally.drop(full, l.gathered.packets)
	}
	l.mu.Unlock()
	l.gathered.clear()
	select {
	case l.queued <- struct{}{}:
	default:
	}
}

// take moves the queue to where it is written from, and reports whether there was
// anything.
func (l *line) take() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.writing.clear()
	l.queue, l.writing = l.writing, l.queue
	return l.writing.packets > 0
}

func (l *line) run(ctx context.Context) {
	defer l.hangUp()
	for l.wait(ctx) {
		for ctx.Err() == nil && l.take() {
			if !l.write(ctx) {
				l.tally.drop(failed, l.writing.packets)
			}
		}
	}
}

// wait returns when there may be something to write, and false when the context
// has ended. A connection that breaks or is idle meanwhile is closed.
func (l *line) wait(ctx context.Context) bool {
	idle := time.NewTimer(closeAfter / 2)
	defer idle.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-l.queued:
			return true
		case <-l.broken:
			l.hangUp()
			if time.Since(l.since) >= lasting {
				l.log.Info("a member closed the connection")
			} else {
				l.failed(ctx, "a member closes connections at once: has it another key, or other TLS settings?", io.EOF)
			}
		case <-idle.C:
			l.hangUp()
		}
	}
}

// write sends what was taken, over a new connection if there is none. After a
// failure it waits for a while, and for longer each time until a connection lasts.
func (l *line) write(ctx context.Context) bool {
	if l.conn == nil {
		if err := l.dial(ctx); err != nil {
			l.hangUp()
			l.failed(ctx, "cannot connect to a member", err)
			return false
		}
	}
	_ = l.conn.SetWriteDeadline(time.Now().Add(writeTimeout))
	if _, err := l.conn.Write(l.writing.bytes); err != nil {
		l.hangUp()
		l.failed(ctx, "lost the connection to a member", err)
		return false
	}
	if time.Since(l.since) >= lasting {
		l.backoff = leastBackoff
	}
	return true
}

func (l *line) failed(ctx context.Context, what string, err error) {
	if ctx.Err() != nil {
		return
	}
	if l.backoff == leastBackoff {
		l.log.Warn(what, "err", err)
	}
	pause(ctx, l.backoff/2+rand.N(l.backoff/2)) //nolint:gosec // for a pause
	l.backoff = min(2*l.backoff, mostBackoff)
}

func (l *line) dial(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, dialWait)
	defer cancel()
	var d interface {
		DialContext(ctx context.Context, network, addr string) (net.Conn, error)
	} = new(net.Dialer)
	if l.tls != nil {
		d = &tls.Dialer{Config: l.tls} // it checks the name in the peer's address
	}
	conn, err := d.DialContext(ctx, "tcp", l.peer.Addr)
	if err != nil {
		return err
	}
	broken := make(chan struct{})
	l.broken, l.since = broken, time.Now()
	go func() { // hangUp waits for it
		defer close(broken)
		l.hear(conn)
	}()
	l.mu.Lock()
	l.conn = conn
	l.mu.Unlock()
	return ctx.Err()
}

// interrupt breaks the connection, when the context of the line has ended: a
// write may be stuck in it. One that comes about after that is not used, since
// its dialling ends with that error.
func (l *line) interrupt() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn != nil {
		_ = l.conn.Close()
	}
}

// hangUp closes the connection, if there is one, and waits until it is closed.
func (l *line) hangUp() {
	if l.conn == nil {
		return
	}
	_ = l.conn.Close()
	<-l.broken
	l.mu.Lock()
	l.conn, l.broken = nil, nil
	l.mu.Unlock()
}
