package main

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	"github.com/leasehold-dev/leasehold/lab/bench/loadgen"
	"github.com/leasehold-dev/leasehold/lab/bench/proc"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// A dialect describes how to listen to a server: the method, the first message, and the
// path of fields to the number of a change: FollowResponse.update.lsn,
// WatchResponse.header.revision, and a field of the bare push's message.
type dialect struct {
	method string
	hello  proto.Message // nil: an empty message
	path   []protowire.Number
}

const (
	namespace  = "propagation"
	pushMethod = "/bench.Push/Listen"
)

func dialects() map[string]dialect {
	return map[string]dialect{
		nameLeasehold: {
			leaseholdv1.LookupService_Follow_FullMethodName,
			&leaseholdv1.FollowRequest{Version: wire.Version, Namespace: namespace, Seq: 1},
			[]protowire.Number{2, 5},
		},
		nameEtcd: {
			pb.Watch_Watch_FullMethodName,
			&pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{CreateRequest: &pb.WatchCreateRequest{Key: []byte(etcdKey)}}},
			[]protowire.Number{1, 3},
		},
		namePush: {pushMethod, nil, []protowire.Number{1}},
	}
}

// ListenersConfig is the configuration of a process of listeners.
type ListenersConfig struct {
	Addr           string // of the server
	Dialect        string
	Streams, Conns int
}

// Listeners is many streams in one process. Each only receives changes and records the
// time. Ten thousand lookups that decode every message on the server's computer would
// dominate the measurement. It is exported for net/rpc.
type Listeners struct {
	dialect dialect
	hello   []byte
	traffic loadgen.Traffic
	streams []*listener
	reading sync.WaitGroup

	mu    sync.Mutex
	conns []*loadgen.Conn

	left   atomic.Int64 // listeners that have not received the next change
	all    chan struct{}
	bytes  atomic.Int64 // of the last message
	closed atomic.Bool
	lost   atomic.Pointer[error]
}

type listener struct {
	number atomic.Uint64 // of the last change received
	armed  atomic.Uint64 // the next change has a larger number
	at     atomic.Int64  // time at which the next change was received; 0: not received yet
	first  chan struct{} // closed by the first message, which has the initial number
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
	d := dialects()[c.Dialect]
	l := &Listeners{dialect: d, all: make(chan struct{}, 1)}
	if d.hello != nil {
		var err error
		if l.hello, err = proto.Marshal(d.hello); err != nil {
			return nil, err
		}
	}
	for range c.Streams {
		l.streams = append(l.streams, &listener{first: make(chan struct{})})
	}
	err := proc.Each(min(opening, c.Conns), func(first int) error {
		for i := first; i < c.Conns; i += opening {
			if err := l.connect(c, i); err != nil {
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
func (l *Listeners) connect(c ListenersConfig, number int) error {
	conn, err := loadgen.Dial(c.Addr, number, l.dialect.method, &l.traffic)
	if err != nil {
		return err
	}
	l.mu.Lock()
	l.conns = append(l.conns, conn)
	l.mu.Unlock()
	ended := make(chan struct{})
	l.reading.Go(func() {
		defer close(ended)
		if err := conn.Read(); !l.closed.Load() {
			l.lost.CompareAndSwap(nil, &err)
		}
	})
	for i := number; i < len(l.streams); i += c.Conns {
		s := l.streams[i]
		opened, err := conn.Open(loadgen.Whole(func(message []byte) { l.receive(s, message) }))
		if err == nil {
			err = conn.Send(opened, l.hello)
		}
		if err != nil {
			return err
		}
		select {
		case <-s.first:
		case <-ended:
			return *l.lost.Load()
		case <-time.After(patience):
			return errors.New("a stream has no first message")
		}
	}
	return nil
}

func (l *Listeners) receive(s *listener, message []byte) {
	now := time.Now().UnixNano()
	number := loadgen.Find(message, l.dialect.path...)
	select {
	case <-s.first:
	default:
		s.number.Store(number)
		close(s.first)
		return
	}
	if number <= s.number.Load() {
		return
	}
	s.number.Store(number)
	l.bytes.Store(int64(len(message)))
	if number > s.armed.Load() && s.at.CompareAndSwap(0, now) && l.left.Add(-1) == 0 {
		l.all <- struct{}{}
	}
}

// Arm waits until all listeners have received a change, and prepares for the next.
func (l *Listeners) Arm(number uint64, _ *struct{}) error {
	deadline := time.Now().Add(patience)
	for _, s := range l.streams {
		for s.number.Load() < number {
			if time.Now().After(deadline) {
				return l.receiveError()
			}
			time.Sleep(time.Millisecond)
		}
	}
	l.left.Store(int64(len(l.streams)))
	for _, s := range l.streams {
		s.armed.Store(number)
		s.at.Store(0)
	}
	return nil
}

// Received has the time at which each listener received a change.
type Received struct {
	Number uint64
	Bytes  int
	Times  []int64 // nanoseconds since 1970
}

// Wait waits until all listeners have received the next change.
func (l *Listeners) Wait(_ struct{}, r *Received) error {
	select {
	case <-l.all:
	case <-time.After(patience):
		return l.receiveError()
	}
	*r = Received{Number: l.streams[0].number.Load(), Bytes: int(l.bytes.Load())}
	for _, s := range l.streams {
		r.Times = append(r.Times, s.at.Load())
	}
	return nil
}

func (l *Listeners) receiveError() error {
	if lost := l.lost.Load(); lost != nil {
		return fmt.Errorf("a connection has ended: %w", *lost)
	}
	return fmt.Errorf("%d listeners have not received a change in %v", l.left.Load(), patience)
}

// Close ends all connections.
func (l *Listeners) Close() error {
	l.closed.Store(true)
	for _, c := range l.conns {
		c.Close()
	}
	l.reading.Wait()
	return nil
}
