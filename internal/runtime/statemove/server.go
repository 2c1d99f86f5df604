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

// ServerConfig configures a Server.
type ServerConfig struct {
	Namespace leasehold.Namespace
	Session   leasehold.Session
	// Credentials secure the connections.
	Credentials credentials.TransportCredentials
	// Options follow the default options and override them.
	Options []grpc.ServerOption
	// Idle is the timeout of a transfer without progress.
	Idle time.Duration
	// Logger receives failures of the listener and rejected sources.
	Logger *slog.Logger
}

// A Server receives the state of the moves that the leader has announced to an owner. It is safe for concurrent
// use.
type Server struct {
	leaseholdv1.UnimplementedMoverServiceServer
	ServerConfig
	grpc    *grpc.Server
	ctx     context.Context // ends when the server is closed
	cancel  context.CancelFunc
	running sync.WaitGroup // serve and the receivers of streams
	slots   chan struct{}  // one element for each transfer between begin and Release
	pending chan struct{}  // one element for each stream that is not accepted yet

	mu       sync.Mutex
	changed  notifier // of expected
	expected map[protocol.Ticket]*Incoming
}

// Serve serves transfers on a listener, which it owns, until Close.
func Serve(listener net.Listener, cfg ServerConfig) *Server {
	s := &Server{
		ServerConfig: cfg, grpc: grpc.NewServer(slices.Concat(serverOptions(), []grpc.ServerOption{grpc.Creds(connlimit.Credentials(cfg.Credentials))}, cfg.Options)...),
		slots: make(chan struct{}, MaxTransfers), pending: make(chan struct{}, maxPendingStreams),
		changed: make(notifier), expected: make(map[protocol.Ticket]*Incoming),
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	leaseholdv1.RegisterMoverServiceServer(connlimit.Services{Server: s.grpc}, s)
	s.running.Go(func() { s.serve(listener) })
	return s
}

// serve accepts connections until the server is closed or the listener fails. In the latter case the owner keeps
// its ranges, and moves to it fail.
func (s *Server) serve(listener net.Listener) {
	if err := s.grpc.Serve(connlimit.New(listener, connlimit.Config{Conns: maxConnections, Logger: s.Logger})); err != nil && s.ctx.Err() == nil {
		s.Logger.Error("listener failed: moves to this owner fail until it restarts", "address", listener.Addr(), "why", err)
	}
}

// Expect announces a transfer: a source with the ticket is accepted, and must have the identity unless that
// is empty. begin is called once, when the source is accepted. It must not block, and must ensure that
// [Incoming.Release] is called.
func (s *Server) Expect(ticket protocol.Ticket, from secure.Identity, begin func(*Incoming)) *Incoming {
	in := &Incoming{ticket: ticket, from: from, server: s, changed: make(notifier), next: 1, tally: newTally()}
	in.begin = func() { begin(in) }
	in.ctx, in.cancel = context.WithCancelCause(s.ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expected[ticket] = in
	s.changed.broadcast()
	return in
}

func (s *Server) remove(ticket protocol.Ticket) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.expected, ticket)
}

// Close refuses all transfers, closes the listener and waits for the goroutines of Serve. It takes at most
// about a second.
func (s *Server) Close() {
	s.mu.Lock()
	expected := s.expected
	s.expected = make(map[protocol.Ticket]*Incoming)
	s.mu.Unlock()
	for _, in := range expected {
		in.fail(leasehold.Errorf(opReceive, leasehold.ErrClosed, "", "transfer refused: the owner is shutting down"), true)
	}
	// A graceful stop sends the refusals to the sources.
	const gracePeriod = time.Second
	forced := time.AfterFunc(gracePeriod, s.grpc.Stop)
	s.cancel()
	s.grpc.GracefulStop()
	forced.Stop()
	s.grpc.Stop()
	s.running.Wait()
}

// find returns the transfer with a ticket, in a time that does not depend on the content of the
// tickets.
func (s *Server) find(ticket []byte) (*Incoming, notifier) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found *Incoming
	for t, in := range s.expected {
		if subtle.ConstantTimeCompare(t[:], ticket) == 1 {
			found = in
		}
	}
	return found, s.changed
}

// errUnknownTicket is also the reply to a source with another identity than announced, so that it cannot
// test tickets.
var errUnknownTicket = status.Error(codes.PermissionDenied, "transfer rejected: no leader has announced it, or it has ended")

// Transfer serves one stream of a source.
func (s *Server) Transfer(stream grpc.BidiStreamingServer[leaseholdv1.TransferRequest, leaseholdv1.TransferResponse]) error {
	c := &serverStream{server: s, stream: stream, received: make(chan *leaseholdv1.TransferRequest), failed: make(chan error, 1)}
	if err := c.admit(); err != nil {
		return err
	}
	return c.serve()
}

// awaitTicket waits until the leader has announced the ticket of an opening.
func (s *Server) awaitTicket(ctx context.Context, o *leaseholdv1.TransferOpening) (*Incoming, error) {
	if err := wire.CheckVersion(o.GetVersion()); err != nil {
		return nil, wire.FromError(err)
	}
	if o.GetNamespace() != string(s.Namespace) || !bytes.Equal(o.GetSession(), s.Session[:]) {
		return nil, status.Errorf(codes.FailedPrecondition, "transfer rejected: it is for another process; this is session %s in namespace %q", s.Session.Short(), s.Namespace)
	}
	for {
		in, changed := s.find(o.GetTicket())
		if in != nil {
			return in, nil
		}
		if changed.wait(ctx) != nil {
			return nil, errUnknownTicket
		}
	}
}
