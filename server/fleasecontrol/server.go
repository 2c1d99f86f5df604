package fleasecontrol

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/flease"
	"github.com/leasehold-dev/leasehold/internal/runtime/address"
	"github.com/leasehold-dev/leasehold/internal/runtime/connlimit"
	"github.com/leasehold-dev/leasehold/server/jsonapi"
)

const (
	maxHolders   = 1024            // clients that hold or wait for leases
	writeTimeout = 5 * time.Second // per answer
	reportEvery  = time.Second     // interval of reports to a waiting client
	maxLeases    = 100             // listed in a status
)

// A Server answers clients on behalf of a member.
type Server struct {
	node    *flease.Node
	every   time.Duration // interval of reports to a holder
	http    *http.Server
	slots   chan struct{} // one for each client that holds or waits
	running sync.WaitGroup
}

// Serve serves clients until [Server.Close]. Lease is how long the node's leases last.
func Serve(node *flease.Node, lease time.Duration, at net.Listener, log *slog.Logger) *Server {
	s := &Server{node: node, every: lease / 6, slots: make(chan struct{}, maxHolders)}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/status", s.status)
	mux.HandleFunc("POST /v1/acquire", s.acquire)
	s.http = &http.Server{
		// A web page in a browser on this computer must not reach the API.
		Handler:           loopbackHostOnly(http.NewCrossOriginProtection().Handler(mux)),
		ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10,
	}
	s.running.Go(func() {
		if err := connlimit.Serve(s.http, at, connlimit.Config{Conns: 2 * maxHolders, Logger: log}); !errors.Is(err, http.ErrServerClosed) {
			log.Warn("the control API is not served any more", "why", err)
		}
	})
	return s
}

// loopbackHostOnly rejects requests for other hosts: a DNS name may resolve to the loopback.
func loopbackHostOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !address.Loopback(net.JoinHostPort(jsonapi.Host(r.Host), "80")) {
			http.Error(w, "not a name of the loopback", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// Close waits for requests to end. Close the node first, which ends them.
func (s *Server) Close(ctx context.Context) error {
	err := s.http.Shutdown(ctx)
	if err != nil {
		err = errors.Join(err, s.http.Close())
	}
	s.running.Wait()
	return err
}

func (s *Server) status(w http.ResponseWriter, r *http.Request) {
	out := Status{Status: s.node.Status(), Leases: []LeaseStatus{}}
	if out.Err != nil {
		out.Error = out.Err.Error()
	}
	for _, l := range s.node.Leases() {
		if until := l.Until(); !until.IsZero() && len(out.Leases) < maxLeases {
			out.Leases = append(out.Leases, LeaseStatus{l.Resource(), l.Fence(), until})
		}
	}
	if name := r.URL.Query().Get("resource"); name != "" {
		resource := s.node.Resource(name)
		out.Resource = &resource
	}
	jsonapi.Write(w, http.StatusOK, out)
}

// acquire acquires a lease for a client, and holds it while the connection lasts.
func (s *Server) acquire(w http.ResponseWriter, r *http.Request) {
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	default:
		http.Error(w, "too many clients hold or wait for leases through this member", http.StatusServiceUnavailable)
		return
	}
	var ask Request
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 4<<10)).Decode(&ask); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	out := answers{http.NewResponseController(w), json.NewEncoder(w)}
	w.Header().Set("Content-Type", answerType)
	lease, err := s.await(r.Context(), &ask, out)
	if err != nil {
		if leasehold.KindOf(err) == leasehold.ErrInvalid {
			w.WriteHeader(http.StatusBadRequest)
		}
		_ = out.write(Answer{State: Failed, Resource: ask.Resource, Why: err.Error()})
		return
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), writeTimeout)
		defer cancel()
		_ = lease.Release(ctx) // or it expires
	}()
	s.hold(r.Context(), lease, out)
}

// await acquires a lease, and reports the reason of a wait.
func (s *Server) await(ctx context.Context, ask *Request, out answers) (lease *flease.Lease, err error) {
	if wait := time.Duration(ask.WaitMillis) * time.Millisecond; wait > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, wait, fmt.Errorf("it was not acquired within %v", wait))
		defer cancel()
	}
	acquire := s.node.Acquire
	if ask.Try {
		acquire = s.node.TryAcquire
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		lease, err = acquire(ctx, ask.Resource)
	}()
	tick := time.NewTicker(reportEvery)
	defer tick.Stop()
	for said := ""; ; {
		select {
		case <-done:
			return lease, err
		case <-tick.C:
		}
		if why := s.node.Resource(ask.Resource).Why; why != "" && why != said {
			said = why
			_ = out.write(Answer{State: Waiting, Resource: ask.Resource, Why: why}) // a client that is gone ends ctx
		}
	}
}

// hold reports the lease's validity until the client disconnects or the lease is over.
func (s *Server) hold(ctx context.Context, lease *flease.Lease, out answers) {
	tick := time.NewTicker(s.every)
	defer tick.Stop()
	answer := Answer{State: Held, Resource: lease.Resource(), Member: s.node.Self(), Fence: lease.Fence()}
	for {
		if answer.Until = lease.Until(); !answer.Until.IsZero() && out.write(answer) != nil {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-lease.Done():
			_ = out.write(Answer{State: Over, Resource: lease.Resource(), Why: lease.Err().Error()})
			return
		case <-tick.C:
		}
	}
}

// answers writes answers one by one, each within a time limit.
type answers struct {
	control *http.ResponseController
	encoder *json.Encoder
}

func (a answers) write(answer Answer) error {
	_ = a.control.SetWriteDeadline(time.Now().Add(writeTimeout))
	return errors.Join(a.encoder.Encode(answer), a.control.Flush())
}

// Events are called as a member starts.
type Events struct {
	Started func(*flease.Node) error // it listens; an error stops it
	Ready   func(flease.Status)      // it votes
}

// farewell is the timeout of a stopping member to notify the others.
const farewell = 5 * time.Second

// RunMember runs a member until ctx ends or the member fails. It serves the control API on the
// listener, which may be nil, and closes it. The configuration has a Lease and a Logger.
func RunMember(ctx context.Context, cfg flease.Config, control net.Listener, events Events) error {
	node, err := flease.Start(cfg)
	if err != nil {
		if control != nil {
			err = errors.Join(err, control.Close())
		}
		return err
	}
	var server *Server // nil if there is none
	if control != nil {
		server = Serve(node, cfg.Lease, control, cfg.Logger)
	}
	err = attend(ctx, node, events)
	ended, cancel := context.WithTimeout(context.WithoutCancel(ctx), farewell)
	defer cancel()
	err = errors.Join(err, node.Close(ended)) // ends the requests that the server has
	if server != nil {
		err = errors.Join(err, server.Close(ended))
	}
	return err
}

// attend reports the events of a node, and waits until ctx ends or the node is done.
func attend(ctx context.Context, node *flease.Node, events Events) error {
	if err := events.Started(node); err != nil {
		return err
	}
	if node.Ready(ctx) == nil {
		events.Ready(node.Status())
	}
	select {
	case <-node.Done():
		return node.Err()
	case <-ctx.Done():
		return nil
	}
}
