package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/leasehold-dev/leasehold/bench/cast"
	"github.com/leasehold-dev/leasehold/internal/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// A dialect is how one listens to a server: a method, what is said first, and where
// the answers have their numbers.
type dialect struct {
	method string
	hello  any
	path   path
}

const (
	namespace  = "propagation"
	etcdKey    = "table"
	pushMethod = "/bench.Push/Listen"
)

func dialects() map[string]dialect {
	return map[string]dialect{
		nameLeasehold: {
			leaseholdv1.LookupService_Follow_FullMethodName,
			&leaseholdv1.FollowRequest{Version: wire.Version, Namespace: namespace, Seq: 1}, leaseholdPath,
		},
		nameEtcd: {
			pb.Watch_Watch_FullMethodName,
			&pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{CreateRequest: &pb.WatchCreateRequest{Key: []byte(etcdKey)}}}, etcdPath,
		},
		namePush: {pushMethod, []byte{}, pushPath},
	}
}

// The orders of a crowd.
const (
	orderArm   = "arm"   // for the change after the one with this number, once all have heard of that
	orderHeard = "heard" // waits until all have heard of the next, and says when each did
)

// A crowd is many streams in one process. Each is reduced to hearing of changes and
// to noting when.
type crowd struct {
	end       context.CancelFunc
	conns     []*grpc.ClientConn
	listeners []*listener
	listening sync.WaitGroup

	left  atomic.Int64 // how many have not yet heard of the next change
	all   chan struct{}
	bytes atomic.Int64 // of the last message
	lost  atomic.Pointer[error]
}

// A listener is one stream.
type listener struct {
	number atomic.Uint64 // the last that it heard of
	armed  atomic.Uint64 // the next one is above this
	at     atomic.Int64  // when it heard of that; 0 if it has not yet
}

// startCrowd opens all streams, and waits until each has had its first answer.
func startCrowd(ctx context.Context, args []string) (cast.Member, string, error) {
	flags := flag.NewFlagSet("crowd", flag.ContinueOnError)
	to := flags.String("to", "", "address of the server")
	from := flags.String("from", "127.0.0.1", "address that connections come from: a port is good for one connection")
	speaks := flags.String("speaks", "", "whose dialect")
	streams := flags.Int("streams", 1, "how many")
	conns := flags.Int("conns", 1, "over how many connections")
	if err := flags.Parse(args); err != nil {
		return nil, "", err
	}
	d, ok := dialects()[*speaks]
	if !ok {
		return nil, "", fmt.Errorf("nobody speaks %q", *speaks)
	}
	// What is one process here are thousands in life, whose collections of garbage
	// are short and do not fall together. The server's own are part of the figure.
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(3 << 30)
	c := &crowd{all: make(chan struct{}, 1)}
	ctx, c.end = context.WithCancel(ctx)
	if err := c.open(ctx, d, *to, *from, *streams, *conns); err != nil {
		return nil, "", errors.Join(err, c.Close())
	}
	return c, "", nil
}

// opening is how many streams are opened at a time: a server that is asked by all
// at once refuses some.
const opening = 64

func (c *crowd) open(ctx context.Context, d dialect, to, from string, streams, conns int) error {
	for range conns {
		conn, err := dial(to, from, d.path)
		if err != nil {
			return err
		}
		c.conns = append(c.conns, conn)
	}
	for range streams {
		c.listeners = append(c.listeners, &listener{})
	}
	return cast.Each(min(opening, streams), func(first int) error {
		for i := first; i < streams; i += opening {
			if err := c.listen(ctx, d, c.conns[i%conns], c.listeners[i]); err != nil {
				return fmt.Errorf("stream %d of %d: %w", i+1, streams, err)
			}
		}
		return nil
	})
}

// dial connects as everyone's clients do here: without compression, with small
// buffers, from an address of its own.
func dial(to, from string, p path) (*grpc.ClientConn, error) {
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}, Control: portLater}
	return grpc.NewClient("passthrough:///"+to,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) { return dialer.DialContext(ctx, "tcp", addr) }),
		grpc.WithReadBufferSize(8<<10), grpc.WithDisableRetry(), grpc.WithDisableServiceConfig(),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(newLean(p))))
}

// portLater has the port chosen when both ends are known, among those that are free
// for that server, and not among those that are free for all.
func portLater(_, _ string, socket syscall.RawConn) error {
	const bindAddressNoPort = 24 // of Linux, which package syscall does not name
	var err error
	if failed := socket.Control(func(fd uintptr) {
		err = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_IP, bindAddressNoPort, 1)
	}); failed != nil {
		return failed
	}
	return err
}

// listen opens a stream and waits for its first answer, which says where it begins.
func (c *crowd) listen(ctx context.Context, d dialect, conn *grpc.ClientConn, l *listener) error {
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, d.method)
	if err != nil {
		return err
	}
	if err := stream.SendMsg(d.hello); err != nil {
		return err
	}
	var first news
	if err := stream.RecvMsg(&first); err != nil {
		return err
	}
	l.number.Store(first.number)
	c.listening.Go(func() {
		for {
			var n news
			if err := stream.RecvMsg(&n); err != nil {
				if ctx.Err() == nil {
					c.lost.CompareAndSwap(nil, &err)
				}
				return
			}
			c.hear(l, n)
		}
	})
	return nil
}

func (c *crowd) hear(l *listener, n news) {
	if n.number <= l.number.Load() {
		return
	}
	now := time.Now().UnixNano()
	l.number.Store(n.number)
	c.bytes.Store(int64(n.bytes))
	if n.number > l.armed.Load() && l.at.CompareAndSwap(0, now) && c.left.Add(-1) == 0 {
		c.all <- struct{}{}
	}
}

func (c *crowd) Obey(ctx context.Context, o cast.Order) (cast.Answer, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errors.New("not everybody has heard of a change"))
	defer cancel()
	switch o.Do {
	case orderArm:
		return cast.Answer{}, c.arm(ctx, o.Number)
	case orderHeard:
		select {
		case <-c.all:
		case <-ctx.Done():
			return cast.Answer{}, c.trouble(ctx)
		}
		a := cast.Answer{Bytes: c.bytes.Load(), Number: c.listeners[0].number.Load()}
		for _, l := range c.listeners {
			a.Times = append(a.Times, l.at.Load())
		}
		return a, nil
	}
	return cast.Answer{}, cast.UnknownOrder(o)
}

// trouble says why nothing is heard.
func (c *crowd) trouble(ctx context.Context) error {
	if lost := c.lost.Load(); lost != nil {
		return fmt.Errorf("a stream has ended: %w", *lost)
	}
	return fmt.Errorf("%w: %d are left", context.Cause(ctx), c.left.Load())
}

// arm waits until all have heard of a change, and makes ready for the next.
func (c *crowd) arm(ctx context.Context, number uint64) error {
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	for _, l := range c.listeners {
		for l.number.Load() < number {
			select {
			case <-look.C:
			case <-ctx.Done():
				return c.trouble(ctx)
			}
		}
	}
	c.left.Store(int64(len(c.listeners)))
	for _, l := range c.listeners {
		l.armed.Store(number)
		l.at.Store(0)
	}
	return nil
}

func (c *crowd) Close() error {
	c.end()
	for _, conn := range c.conns {
		_ = conn.Close() // nobody listens any more
	}
	c.listening.Wait()
	return nil
}
