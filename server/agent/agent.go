package agent

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/runtime/failpoint"
	"github.com/leasehold-dev/leasehold/server/httpauth"
	"github.com/leasehold-dev/leasehold/server/jsonapi"
)

// An Agent is an [http.Handler] that serves owners and lookups. It is safe for concurrent use
// at once.
type Agent struct {
	cfg     Config
	handler http.Handler
	lookups *lookups
	streams chan struct{}  // has one for each that is open
	desk    *httpauth.Desk // authenticates callers; nil without a policy
	refused *httpauth.Complaints

	// accepting ends when the agent begins to stop, and with it joins that are not done; closing ends
	// when there is no time left to release leases.
	accepting, closing context.Context
	stop, abandon      context.CancelFunc
	running            sync.WaitGroup // owners that join or are being closed

	mu       sync.Mutex
	sessions map[string]*session
	joining  int // those that are not in sessions yet
	closed   bool
}

// New returns an agent. It must be closed.
func New(cfg Config) (*Agent, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	a := &Agent{cfg: cfg, streams: make(chan struct{}, cfg.MaxStreams), sessions: make(map[string]*session)}
	a.refused = httpauth.NewComplaints(cfg.Logger)
	if cfg.Access != nil {
		a.desk = httpauth.New(cfg.Access, cfg.Logger)
	}
	a.accepting, a.stop = context.WithCancel(context.Background())
	a.closing, a.abandon = context.WithCancel(context.Background())
	a.lookups = newLookups(a.accepting, &a.cfg)
	mux := http.NewServeMux()
	for _, route := range Routes() {
		if route.Path != "/metrics" || cfg.Scrape != nil {
			mux.HandleFunc(route.Method+" "+route.Path, func(w http.ResponseWriter, r *http.Request) { route.serve(a, w, r) })
		}
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		fail(w, leasehold.Errorf("agent", leasehold.ErrNotFound, jsonapi.Clip(r.Method+" "+r.URL.Path), "unknown method and path: see docs/reference/agent.openapi.json"))
	})
	a.handler = a.guard(a.identified(mux))
	return a, nil
}

func (a *Agent) ServeHTTP(w http.ResponseWriter, r *http.Request) { a.handler.ServeHTTP(w, r) }

// Close closes all owners, releases their leases, and ends all streams. When the context ends first,
// leases are left to expire. It does not wait for requests: new ones are refused, others end soon.
func (a *Agent) Close(ctx context.Context) {
	a.mu.Lock()
	a.closed = true
	all := slices.Collect(maps.Values(a.sessions))
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

func errClosed() error {
	return leasehold.Errorf("agent", leasehold.ErrClosed, "", "the agent is stopping: retry when it has restarted")
}

// A statusDocument is the answer to GET /v1/status. It has no ids, which are secrets of programs.
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
	SilentMS  int64  `json:"silent_ms"`           // since the last request of its program
	TTLMS     int64  `json:"ttl_ms"`
}

func (a *Agent) status(_ http.ResponseWriter, r *http.Request) (any, error) {
	if err := a.may(r.Context(), statusMethod, "", ""); err != nil {
		return nil, err
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
	slices.SortFunc(d.Owners, func(x, y ownerDocument) int {
		return cmp.Or(cmp.Compare(x.Namespace, y.Namespace), cmp.Compare(x.Name, y.Name))
	})
	return d, nil
}

// stream calls serve within the limit of streams, and otherwise responds with an error.
func (a *Agent) stream(w http.ResponseWriter, serve func(*stream)) {
	select {
	case a.streams <- struct{}{}:
		defer func() { <-a.streams }()
	default:
		fail(w, leasehold.Errorf("agent", leasehold.ErrLimit, "streams", "%d are open: close one, or raise --max-streams", cap(a.streams)))
		return
	}
	jsonapi.SetHeader(w.Header(), "application/x-ndjson")
	serve(&stream{w: w, control: http.NewResponseController(w)})
}

// A stream is JSON documents, one per line, until one side ends it. It is for one goroutine.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
}

// aliveEvery is the interval of heartbeat lines on a stream, by which a program detects a hanging agent.
const aliveEvery = 5 * time.Second

// alive is the heartbeat line.
type alive struct {
	Type string `json:"type" enum:"alive"`
}

// send reports whether the line was sent before the deadline.
func (s *stream) send(document any) bool {
	failpoint.Here("agent/before-line")
	_ = s.control.SetWriteDeadline(time.Now().Add(lineTimeout))  // a recorder in a test has none
	if _, err := s.w.Write(jsonapi.Line(document)); err != nil { //nolint:gosec // it is JSON, which no browser renders
		return false
	}
	return s.control.Flush() == nil
}
