package agent

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/callers"
	"github.com/leasehold-dev/leasehold/internal/failpoint"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// An Agent is an http.Handler that answers for owners and lookups. It may be used
// from many goroutines at once.
type Agent struct {
	cfg     Config
	handler http.Handler
	lookups *lookups
	streams chan struct{} // has one for each that is open
	desk    *callers.Desk // finds out who asks; nil if that does not matter
	refused *callers.Complaints

	// accepting ends when the agent begins to stop, and with it what has only
	// begun; closing ends when there is no time left to say goodbye.
	accepting, closing context.Context
	stop, abandon      context.CancelFunc
	running            sync.WaitGroup // owners that join or are being closed

	mu       sync.Mutex
	sessions map[string]*session
	joining  int // those that are not in sessions yet
	closed   bool
}

// New returns an agent that serves nobody yet. Close ends it.
func New(cfg Config) (*Agent, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	a := &Agent{cfg: cfg, streams: make(chan struct{}, cfg.MaxStreams), sessions: make(map[string]*session)}
	a.refused = callers.NewComplaints(cfg.Logger)
	if cfg.Access != nil {
		a.desk = callers.New(cfg.Access, cfg.Logger)
	}
	a.accepting, a.stop = context.WithCancel(context.Background())
	a.closing, a.abandon = context.WithCancel(context.Background())
	a.lookups = newLookups(a.accepting, &a.cfg)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, struct{}{}) })
	if cfg.Scrape != nil {
		mux.Handle("GET /metrics", a.measured(cfg.Scrape))
	}
	mux.HandleFunc("GET /v1/status", a.status)
	mux.HandleFunc("POST /v1/owners", a.join)
	mux.HandleFunc("DELETE /v1/owners/{id}", a.leave)
	mux.HandleFunc("POST /v1/owners/{id}/leases", a.withOwner((*session).leases))
	mux.HandleFunc("POST /v1/owners/{id}/check", a.withOwner((*session).check))
	mux.HandleFunc("POST /v1/owners/{id}/held", a.withOwner((*session).held))
	mux.HandleFunc("POST /v1/owners/{id}/await", a.withOwner((*session).await))
	mux.HandleFunc("POST /v1/owners/{id}/report", a.withOwner((*session).report))
	mux.HandleFunc("GET /v1/owners/{id}/events", a.events)
	mux.HandleFunc("GET /v1/namespaces/{namespace}/find", a.find)
	mux.HandleFunc("GET /v1/namespaces/{namespace}/losses", a.losses)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		fail(w, leasehold.Errorf("agent", leasehold.ErrNotFound, clip(r.Method+" "+r.URL.Path), "there is nothing of that method and path: docs/AGENT.md has all that there are"))
	})
	a.handler = a.guard(a.identified(mux))
	return a, nil
}

// ServeHTTP answers a request.
func (a *Agent) ServeHTTP(w http.ResponseWriter, r *http.Request) { a.handler.ServeHTTP(w, r) }

// Close closes all owners, gives their leases back, and ends all streams. When the
// context ends first, leases are left to run out.
//
// It does not wait for requests: those that come now are refused, and those that
// are under way end soon.
func (a *Agent) Close(ctx context.Context) {
	a.mu.Lock()
	a.closed = true
	var all []*session
	for _, s := range a.sessions {
		all = append(all, s)
	}
	a.mu.Unlock()
	a.stop()
	for _, s := range all {
		s.end("the agent stops")
	}
	defer context.AfterFunc(ctx, a.abandon)()
	a.running.Wait()
	a.lookups.close()
	a.abandon()
}

// errClosed is for whoever comes when the agent stops.
func errClosed() error {
	return leasehold.Errorf("agent", leasehold.ErrClosed, "", "the agent is about to stop: try again when it has been restarted")
}

// A statusDocument is the answer to GET /v1/status. It names nobody's id: whoever
// has that speaks for the owner.
type statusDocument struct {
	Build        string           `json:"build"`
	Managers     []string         `json:"managers"`
	MaxPromiseMS int64            `json:"max_promise_ms"`
	Owners       []ownerDocument  `json:"owners"`
	Lookups      []lookupDocument `json:"lookups"`
}

type ownerDocument struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Addr      string `json:"addr"`
	Leases    int    `json:"leases"`
	Suspended int    `json:"suspended,omitempty"` // leases that no manager has renewed in time
	SilentMS  int64  `json:"silent_ms"`           // since it was last heard of
	TTLMS     int64  `json:"ttl_ms"`
}

func (a *Agent) status(w http.ResponseWriter, r *http.Request) {
	if err := a.may(r.Context(), leaseholdv1.AdminService_GetStatus_FullMethodName, "", ""); err != nil {
		fail(w, err)
		return
	}
	d := statusDocument{
		Build: a.cfg.Build, Managers: a.cfg.Managers, MaxPromiseMS: a.cfg.MaxPromise.Milliseconds(),
		Owners: []ownerDocument{}, Lookups: a.lookups.status(),
	}
	a.mu.Lock()
	for _, s := range a.sessions {
		d.Owners = append(d.Owners, s.document())
	}
	a.mu.Unlock()
	a.visible(r.Context(), &d)
	sortOwners(d.Owners)
	answer(w, http.StatusOK, d)
}

// stream takes one of the places for streams, and reports false, having said so, if
// there is none. Each write has a deadline, and the first line is sent at once.
func (a *Agent) stream(w http.ResponseWriter, serve func(*stream)) {
	select {
	case a.streams <- struct{}{}:
		defer func() { <-a.streams }()
	default:
		fail(w, leasehold.Errorf("agent", leasehold.ErrLimit, "streams", "%d are open: close one, or raise --max-streams", cap(a.streams)))
		return
	}
	header := w.Header()
	header.Set("Content-Type", "application/x-ndjson")
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	serve(&stream{w: w, control: http.NewResponseController(w)})
}

// A stream is JSON documents, one on a line, until one side ends it. It is for one
// goroutine.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
}

// aliveEvery is how often a stream says that it is still there, so that a program
// finds out that its agent hangs.
const aliveEvery = 5 * time.Second

// alive is the line that says so.
type alive struct {
	Type string `json:"type"` // "alive"
}

// send reports whether the line could be handed over. A reader that takes none for
// too long is hung up on.
func (s *stream) send(document any) bool {
	failpoint.Here("agent/before-line")
	_ = s.control.SetWriteDeadline(time.Now().Add(linePatience)) // a recorder in a test has none
	if _, err := s.w.Write(encode(document)); err != nil {
		return false
	}
	return s.control.Flush() == nil
}
