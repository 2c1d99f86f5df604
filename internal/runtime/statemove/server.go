package statemove

import (
	"bytes"
	"context"
	"crypto/subtle"
	"log/slog"
	"net"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/runtime/connlimit"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
	"github.com/leasehold-dev/leasehold/secure"
)

// ServerConfig says who takes state in.
type ServerConfig struct {
	Namespace leasehold.Namespace
	Session   leasehold.Session
	// Credentials secure the connections.
	Credentials credentials.TransportCredentials
	// Options come after our own, so that they prevail.
	Options []grpc.ServerOption
	// Shown: these credentials are such that sources show who they are.
	Shown bool
	// Idle is after how long without progress a transfer fails.
	Idle time.Duration
	// Logger hears that the listener has failed.
	Logger *slog.Logger
}

// A Server takes in the state that an owner was told to expect. Its methods may
// be called from many goroutines at once.
type Server struct {
	leaseholdv1.UnimplementedMoverServiceServer
	ServerConfig
	grpc    *grpc.Server
	ctx     context.Context // ends when the server is closed
	cancel  context.CancelFunc
	running sync.WaitGroup // what serves, and what listens to streams
	slots   chan struct{}  // has one for each transfer that has begun and was not released
	doors   chan struct{}  // has one for each stream that has not been let in

	mu       sync.Mutex
	news     news // somebody is expected
	expected map[protocol.Ticket]*Incoming
}

// Serve takes in what comes to a listener, until Close, which closes it.
func Serve(listener net.Listener, cfg ServerConfig) *Server {
	s := &Server{
		ServerConfig: cfg, grpc: grpc.NewServer(slices.Concat(serverOptions(), []grpc.ServerOption{grpc.Creds(connlimit.Credentials(cfg.Credentials))}, cfg.Options)...),
		slots: make(chan struct{}, MaxTransfers), doors: make(chan struct{}, maxStrangers),
		news: make(news), expected: make(map[protocol.Ticket]*Incoming),
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	leaseholdv1.RegisterMoverServiceServer(connlimit.Services{Server: s.grpc}, s)
	s.running.Go(func() { s.serve(listener) })
	return s
}

// serve lets peers in until the server is closed or nobody can come any more.
// The owner lives on with that: moves to it fail, and its ranges stay.
func (s *Server) serve(listener net.Listener) {
	if err := s.grpc.Serve(connlimit.New(listener, connlimit.Config{Conns: maxConnections, Logger: s.Logger})); err != nil && s.ctx.Err() == nil {
		s.Logger.Error("no more state can be taken in: the listener has failed", "address", listener.Addr(), "why", err)
	}
}

// Expect lets a source in that has the ticket, and the identity if there is one. Begin is called when it has come,
// once, and must not wait; it has to see to it that [Incoming.Release] is called.
func (s *Server) Expect(ticket protocol.Ticket, from secure.Identity, begin func(*Incoming)) *Incoming {
	in := &Incoming{ticket: ticket, from: from, server: s, news: make(news), next: 1, sum: newTally()}
	in.begin = func() { begin(in) }
	in.ctx, in.cancel = context.WithCancelCause(s.ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expected[ticket] = in
	s.news.spread()
	return in
}

func (s *Server) forget(ticket protocol.Ticket) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.expected, ticket)
}

// Close refuses whatever is under way, closes the listener, and waits for what
// Serve started.
func (s *Server) Close() {
	s.mu.Lock()
	expected := s.expected
	s.expected = make(map[protocol.Ticket]*Incoming)
	s.mu.Unlock()
	for _, in := range expected {
		in.fail(leasehold.Errorf(opReceive, leasehold.ErrClosed, "", "this owner is shutting down"), true)
	}
	// Sources hear of it if they listen.
	const patience = time.Second
	late := time.AfterFunc(patience, s.grpc.Stop)
	s.cancel()
	s.grpc.GracefulStop()
	late.Stop()
	s.grpc.Stop()
	s.running.Wait()
}

// find returns the transfer with a ticket. How long it takes says nothing about
// the tickets that there are.
func (s *Server) find(ticket []byte) (*Incoming, news) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found *Incoming
	for t, in := range s.expected {
		if subtle.ConstantTimeCompare(t[:], ticket) == 1 {
			found = in
		}
	}
	return found, s.news
}

// Transfer serves one stream of a source.
func (s *Server) Transfer(stream grpc.BidiStreamingServer[leaseholdv1.TransferRequest, leaseholdv1.TransferResponse]) error {
	c := &conversation{server: s, stream: stream, heard: make(chan *leaseholdv1.TransferRequest), ended: make(chan error, 1)}
	if err := c.admit(); err != nil {
		return err
	}
	return c.serve()
}

func (s *Server) await(ctx context.Context, o *leaseholdv1.TransferOpening) (*Incoming, error) {
	if err := wire.CheckVersion(o.GetVersion()); err != nil {
		return nil, wire.FromError(err)
	}
	if o.GetNamespace() != string(s.Namespace) || !bytes.Equal(o.GetSession(), s.Session[:]) {
		return nil, status.Errorf(codes.FailedPrecondition, "the state is meant for another process: this is session %s in namespace %q", s.Session.Short(), s.Namespace)
	}
	for {
		in, expecting := s.find(o.GetTicket())
		if in != nil {
			return in, nil
		}
		if expecting.await(ctx) != nil {
			return nil, status.Error(codes.PermissionDenied, "no leader has announced this move here, or it is over")
		}
	}
}
