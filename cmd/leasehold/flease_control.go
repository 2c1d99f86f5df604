package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/flease"
	"github.com/leasehold-dev/leasehold/internal/gate"
)

// A fleaseControl lets other processes of the computer have leases through a
// member. Such a lease is held for as long as the connection lasts that it was
// asked for on.
type fleaseControl struct {
	node    *flease.Node
	every   time.Duration // how often a holder is told until when
	server  *http.Server  // nil if there is none
	room    chan struct{} // has one for each that may hold or wait
	running sync.WaitGroup
}

const (
	maxFleaseHolders = 1024
	fleaseWriteWait  = 5 * time.Second
	fleaseAnswerType = "application/x-ndjson"
)

// A fleaseRequest asks for a resource. The answer is a sequence of
// [fleaseAnswer]s: some that say what it waits for, if it takes long; one when the
// lease is there, one for each time that it is renewed, and one when it is over.
type fleaseRequest struct {
	Resource string `json:"resource"`
	Try      bool   `json:"try,omitempty"` // do not wait for another to release it
	// WaitMillis is how long to wait for it; 0 is for ever.
	WaitMillis int64 `json:"waitMillis,omitempty"`
}

// A fleaseAnswer is one line of what a holder is told.
type fleaseAnswer struct {
	State    string    `json:"state"` // waiting, held, over, or failed
	Resource string    `json:"resource"`
	Member   uint32    `json:"member,omitempty"`
	Fence    string    `json:"fence,omitempty"`
	Until    time.Time `json:"until,omitzero"` // on the clock of the computer, which both sides share
	Why      string    `json:"why,omitempty"`
}

func serveFlease(node *flease.Node, cfg *flease.Config, at net.Listener) *fleaseControl {
	c := &fleaseControl{node: node, every: cfg.Lease / 6, room: make(chan struct{}, maxFleaseHolders)}
	if at == nil {
		return c
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/status", c.status)
	mux.HandleFunc("POST /v1/acquire", c.acquire)
	// A page in a browser of this computer is not one of its programs.
	handler := onlyLocalNames(http.NewCrossOriginProtection().Handler(mux))
	c.server = &http.Server{
		Handler: handler, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second,
		IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10,
	}
	c.running.Go(func() {
		if err := gate.Serve(c.server, at, gate.Config{Conns: 2 * maxFleaseHolders, Logger: cfg.Logger}); !errors.Is(err, http.ErrServerClosed) {
			cfg.Logger.Warn("other commands are no longer answered", "why", err)
		}
	})
	return c
}

// onlyLocalNames refuses requests for other hosts, which reach us if a name was
// made to point to the loopback.
func onlyLocalNames(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			host = r.Host
		}
		if ip, err := netip.ParseAddr(host); host != "localhost" && (err != nil || !ip.IsLoopback()) {
			http.Error(w, "not a name of the loopback", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// stop waits for those who are being answered; the node is closed, so that is soon.
func (c *fleaseControl) stop(ctx context.Context) error {
	if c.server == nil {
		return nil
	}
	err := c.server.Shutdown(ctx)
	if err != nil {
		err = errors.Join(err, c.server.Close())
	}
	c.running.Wait()
	return err
}

func (c *fleaseControl) status(w http.ResponseWriter, r *http.Request) {
	s := fleaseStatusOf(c.node)
	if name := r.URL.Query().Get("resource"); name != "" {
		s.Resource = fleaseResourceOf(c.node.Resource(name))
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(s) // one who is gone needs no answer
}

// acquire acquires a lease for whoever asks, and keeps it while he stays.
func (c *fleaseControl) acquire(w http.ResponseWriter, r *http.Request) {
	select {
	case c.room <- struct{}{}:
		defer func() { <-c.room }()
	default:
		http.Error(w, "too many hold or wait for leases through this member", http.StatusServiceUnavailable)
		return
	}
	var ask fleaseRequest
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 4<<10)).Decode(&ask); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	out := fleaseAnswers{http.NewResponseController(w), json.NewEncoder(w)}
	w.Header().Set("Content-Type", fleaseAnswerType)
	lease, err := c.await(r.Context(), &ask, out)
	if err != nil {
		if leasehold.KindOf(err) == leasehold.Invalid {
			w.WriteHeader(http.StatusBadRequest)
		}
		_ = out.write(fleaseAnswer{State: "failed", Resource: ask.Resource, Why: err.Error()})
		return
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), fleaseWriteWait)
		defer cancel()
		_ = lease.Release(ctx) // or it runs out
	}()
	c.hold(r.Context(), lease, out)
}

// fleaseImpatience is how long one who waits is not told why.
const fleaseImpatience = time.Second

// await acquires a lease, and says meanwhile what it waits for.
func (c *fleaseControl) await(ctx context.Context, ask *fleaseRequest, out fleaseAnswers) (lease *flease.Lease, err error) {
	if wait := time.Duration(ask.WaitMillis) * time.Millisecond; wait > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, wait, fmt.Errorf("it was not to be had within %v", wait))
		defer cancel()
	}
	acquire := c.node.Acquire
	if ask.Try {
		acquire = c.node.TryAcquire
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		lease, err = acquire(ctx, ask.Resource)
	}()
	tick := time.NewTicker(fleaseImpatience)
	defer tick.Stop()
	for said := ""; ; {
		select {
		case <-done:
			return lease, err
		case <-tick.C:
		}
		if why := c.node.Resource(ask.Resource).Why; why != nil && why.Error() != said {
			said = why.Error()
			_ = out.write(fleaseAnswer{State: "waiting", Resource: ask.Resource, Why: said}) // who is gone ends ctx
		}
	}
}

// hold tells a holder until when he may act, until he goes or the lease is over.
func (c *fleaseControl) hold(ctx context.Context, lease *flease.Lease, out fleaseAnswers) {
	tick := time.NewTicker(c.every)
	defer tick.Stop()
	answer := fleaseAnswer{State: "held", Resource: lease.Resource(), Member: uint32(c.node.Self()), Fence: decimal(lease.Fence())}
	for {
		if answer.Until = lease.Until(); !answer.Until.IsZero() && out.write(answer) != nil {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-lease.Done():
			_ = out.write(fleaseAnswer{State: "over", Resource: lease.Resource(), Why: lease.Err().Error()})
			return
		case <-tick.C:
		}
	}
}

// fleaseAnswers writes answers one by one, and waits for nobody for long.
type fleaseAnswers struct {
	control *http.ResponseController
	encoder *json.Encoder
}

func (a fleaseAnswers) write(answer fleaseAnswer) error {
	_ = a.control.SetWriteDeadline(time.Now().Add(fleaseWriteWait))
	return errors.Join(a.encoder.Encode(answer), a.control.Flush())
}
