package propagation

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/leasehold-dev/leasehold/lab/bench/loadgen"
	"github.com/leasehold-dev/leasehold/lab/bench/proc"
)

// A Dialect describes how to listen to a server: the method, the first message, and the path of
// fields to the number of a change in its messages.
type Dialect struct {
	Method string
	Hello  []byte
	Path   []protowire.Number
}

// ListenersConfig is the configuration of a process of listeners.
type ListenersConfig struct {
	Dialect
	Addr           string // of the server
	Streams, Conns int
}

// Listeners is many streams in one process. Each only receives changes and records the
// time. Ten thousand lookups that decode every message on the server's computer would
// dominate the measurement. It is exported for net/rpc.
type Listeners struct {
	ListenersConfig
	streams []*listener
	reading sync.WaitGroup
	bytes   atomic.Int64 // of the last message

	mu    sync.Mutex // guards the following
	conns []*grpc.ClientConn
	lost  error
}

// A listener has the number of the last change that it received, and the time.
type listener struct {
	mu     sync.Mutex
	number uint64
	at     time.Time
}

// opening is the number of connections opened at a time. A server refuses some if too
// many are opened at once.
const opening = 64

// startListeners opens all streams, and waits until each has received its first message.
func startListeners(_ context.Context, c ListenersConfig) (*Listeners, error) {
	// In production these listeners are thousands of processes, whose garbage collections
	// are short and do not coincide. The server's own are part of the result.
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(3 << 30)
	l := &Listeners{ListenersConfig: c}
	for range c.Streams {
		l.streams = append(l.streams, &listener{})
	}
	err := proc.Each(min(opening, c.Conns), func(first int) error {
		for i := first; i < c.Conns; i += opening {
			if err := l.connect(i); err != nil {
				return fmt.Errorf("connection %d of %d: %w", i+1, c.Conns, err)
			}
		}
		return nil
	})
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// connect opens a connection and its share of the streams, one after another.
func (l *Listeners) connect(number int) error {
	conn, err := loadgen.Dial(l.Addr, new(atomic.Int64))
	if err != nil {
		return err
	}
	l.mu.Lock()
	l.conns = append(l.conns, conn)
	l.mu.Unlock()
	for i := number; i < len(l.streams); i += l.Conns {
		if err := l.open(conn, l.streams[i]); err != nil {
			return err
		}
	}
	return nil
}

// open opens a stream, and waits for its first message, which has the initial number.
func (l *Listeners) open(conn *grpc.ClientConn, s *listener) error {
	stream, err := loadgen.Open(context.Background(), conn, l.Method)
	if err != nil {
		return err
	}
	if err := errors.Join(stream.SendMsg(l.Hello), l.receive(stream, s)); err != nil {
		return err
	}
	l.reading.Go(func() {
		var err error
		for err == nil {
			err = l.receive(stream, s)
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		l.lost = err
	})
	return nil
}

func (l *Listeners) receive(stream grpc.ClientStream, s *listener) error {
	var message []byte
	if err := stream.RecvMsg(&message); err != nil {
		return err
	}
	now, number := time.Now(), loadgen.Find(message, l.Path...)
	s.mu.Lock()
	defer s.mu.Unlock()
	if number > s.number {
		s.number, s.at = number, now
		l.bytes.Store(int64(len(message)))
	}
	return nil
}

// Received is the times until half of the listeners received a change and until all did, and the
// bytes of the message.
type Received struct {
	Half, Last time.Duration
	Bytes      int
}

// Wait waits until all listeners have received a change, which must be the last.
func (l *Listeners) Wait(c Change, r *Received) error {
	deadline := time.Now().Add(patience)
	var times []time.Duration
	for _, s := range l.streams {
		at, err := l.await(s, c.Number, deadline)
		if err != nil {
			return err
		}
		times = append(times, at.Sub(c.Begin))
	}
	slices.Sort(times)
	*r = Received{times[len(times)/2], times[len(times)-1], int(l.bytes.Load())}
	return nil
}

func (l *Listeners) await(s *listener, number uint64, deadline time.Time) (time.Time, error) {
	for {
		s.mu.Lock()
		has, at := s.number, s.at
		s.mu.Unlock()
		switch {
		case has == number:
			return at, nil
		case has > number:
			return at, fmt.Errorf("change %d was made, and %d was received", number, has)
		case time.Now().After(deadline):
			l.mu.Lock()
			defer l.mu.Unlock()
			return at, errors.Join(fmt.Errorf("a listener has not received change %d in %v", number, patience), l.lost)
		}
		time.Sleep(time.Millisecond)
	}
}

// Close ends all connections.
func (l *Listeners) Close() error {
	for _, c := range l.conns {
		_ = c.Close()
	}
	l.reading.Wait()
	return nil
}
