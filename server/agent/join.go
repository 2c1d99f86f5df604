package agent

import (
	"cmp"
	"context"
	"crypto/rand"
	"net/http"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/access"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/runtime/address"
	"github.com/leasehold-dev/leasehold/internal/runtime/failpoint"
	"github.com/leasehold-dev/leasehold/owner"
	"github.com/leasehold-dev/leasehold/server/jsonapi"
)

// Limits of the times in a request to join.
const (
	usualJoin, leastJoin, mostJoin = 10 * time.Second, 100 * time.Millisecond, time.Minute
	usualTTL, leastTTL, mostTTL    = 10 * time.Second, time.Second, time.Minute
)

// A joinRequest is the body of POST /v1/owners.
type joinRequest struct {
	Namespace string  `json:"namespace"`
	Addr      string  `json:"addr" doc:"host:port for callers; listen there first"`
	Name      string  `json:"name,omitempty" doc:"stable across restarts, unique among live programs (default addr)"`
	Weight    float64 `json:"weight,omitempty" doc:"relative share of the keys (default 1)"`
	Load      string  `json:"load,omitempty" enum:"checks,reported" doc:"checks: each successful check counts (the default); reported: the program reports costs"`
	Process   bool    `json:"process,omitempty" doc:"only this process uses the leases, and they end with it at once; needs a unix: socket"`
	TTLMS     *int64  `json:"ttl_ms,omitempty" doc:"maximum silence of the program, 1000 to 60000 (default 10000)"`
	TimeoutMS *int64  `json:"timeout_ms,omitempty" doc:"time to wait for the leader, 100 to 60000 (default 10000)"`
}

// A joinAnswer has the id of the session, a secret of the program and the agent.
type joinAnswer struct {
	ID           string `json:"id" doc:"a secret of the program and the agent"`
	Name         string `json:"name"`
	Session      string `json:"session"`
	TTLMS        int64  `json:"ttl_ms"`
	MaxPromiseMS int64  `json:"max_promise_ms"`
}

func (a *Agent) join(w http.ResponseWriter, r *http.Request) {
	var in joinRequest
	if err := jsonapi.Read(w, r, maxBody, &in); err != nil {
		fail(w, err)
		return
	}
	s, err := a.newSession(r.Context(), &in)
	if err != nil {
		fail(w, err)
		return
	}
	failpoint.Here("agent/joined-before-answer")
	jsonapi.Write(w, http.StatusCreated, joinAnswer{
		ID: s.id, Name: string(s.owner.Name()), Session: s.owner.Session().String(),
		TTLMS: s.ttl.Milliseconds(), MaxPromiseMS: a.cfg.MaxPromise.Milliseconds(),
	})
}

func (in *joinRequest) owner() leasehold.OwnerID {
	return leasehold.OwnerID(cmp.Or(in.Name, in.Addr))
}

// validate rejects what the owner library would reject, with the names of the fields.
func (in *joinRequest) validate() error {
	if in.Namespace == "" {
		return bad("namespace", "is missing: say which one to join")
	}
	if err := address.Check(in.Addr, "10.0.0.1:8080"); err != nil {
		return bad("addr", "%w", err)
	}
	if address.Wildcard(in.Addr) {
		return bad("addr", "%q is no address that callers can reach: name this computer, or its IP address", in.Addr)
	}
	if !readable(in.Name) {
		return bad("name", "is no valid UTF-8, or has the character U+FFFD")
	}
	field := "name"
	if in.Name == "" {
		field = "addr"
	}
	if err := in.owner().Validate(); err != nil {
		return bad(field, "%w", err)
	}
	if in.Weight < 0 || in.Weight > protocol.MaxWeight {
		return bad("weight", "is %v, want more than 0 and at most %v", in.Weight, float64(protocol.MaxWeight))
	}
	return nil
}

// newSession joins an owner, unless the program disconnects first.
func (a *Agent) newSession(ctx context.Context, in *joinRequest) (_ *session, err error) {
	s := &session{agent: a, namespace: leasehold.Namespace(in.Namespace), addr: in.Addr, over: make(chan struct{}), gone: make(chan struct{})}
	if err := in.validate(); err != nil {
		return nil, err
	}
	if s.ttl, err = milliseconds("ttl_ms", in.TTLMS, usualTTL, leastTTL, mostTTL); err != nil {
		return nil, err
	}
	timeout, err := milliseconds("timeout_ms", in.TimeoutMS, usualJoin, leastJoin, mostJoin)
	if err != nil {
		return nil, err
	}
	load, err := parseLoad(in.Load)
	if err != nil {
		return nil, err
	}
	if err := a.may(ctx, holdMethod, s.namespace, in.owner()); err != nil {
		return nil, err
	}
	if in.Process {
		if s.process, err = processOf(ctx); err != nil {
			return nil, err
		}
	}
	defer func() {
		if err != nil {
			s.process.close()
		}
	}()
	s.id, s.reported = rand.Text(), load == owner.LoadReported
	if err := a.reserve(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	defer context.AfterFunc(a.accepting, cancel)()
	s.owner, err = owner.Join(ctx, owner.Config{
		Namespace: s.namespace, Managers: a.cfg.Managers, Addr: in.Addr, Name: leasehold.OwnerID(in.Name),
		Weight: in.Weight, Load: load, OnGrant: s.feed.changed("granted"), OnRevoke: s.feed.revoked,
		OnSuspend: s.feed.changed("suspended"), OnResume: s.feed.changed("resumed"),
		MaxPromise: a.cfg.MaxPromise, WaitForPredecessor: true,
		Credentials: a.cfg.Credentials, DialOptions: a.cfg.DialOptions, Logger: a.cfg.Logger, Metrics: a.cfg.Metrics,
	})
	return a.admit(ctx, s, err)
}

func parseLoad(text string) (owner.LoadSource, error) {
	switch text {
	case "", "checks":
		return owner.LoadChecks, nil
	case "reported":
		return owner.LoadReported, nil
	}
	return 0, bad("load", `is %q, want "checks" or "reported"`, jsonapi.Clip(text))
}

func (a *Agent) reserve() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return errClosed()
	}
	if len(a.sessions)+a.joining >= a.cfg.MaxOwners {
		return leasehold.Errorf("join", leasehold.ErrLimit, "owners", "%d have joined through this agent: close one, or raise --max-owners", a.cfg.MaxOwners)
	}
	a.joining++
	a.running.Add(1)
	return nil
}

// admit adds the session of an owner that has joined. If the agent stops meanwhile, the owner is closed
// with the others.
func (a *Agent) admit(ctx context.Context, s *session, err error) (*session, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	defer a.running.Done()
	a.joining--
	if err != nil {
		return nil, err
	}
	a.sessions[s.id] = s
	s.begin()
	if s.process != nil {
		a.running.Go(s.guardProcess)
	}
	caller, known := access.CallerFrom(ctx)
	if known {
		a.running.Go(func() { s.guardPermission(caller) })
	}
	if a.closed {
		s.end("the agent stops")
		return nil, errClosed()
	}
	a.cfg.Logger.Info("a program has joined", "namespace", s.namespace, "owner", s.owner.Name(), "addr", s.addr, "ttl", s.ttl, "caller", caller.String())
	return s, nil
}

// session returns the session of a request, and restarts its TTL.
func (a *Agent) session(r *http.Request) (*session, error) {
	s, err := a.known(r)
	if err == nil && !s.touch() {
		return nil, leasehold.Errorf("owner", leasehold.ErrClosed, jsonapi.Clip(r.PathValue("id")), "the owner is being closed; join again")
	}
	return s, err
}

// known returns the session of a request, which may be ending. It authorizes the caller for its owner.
func (a *Agent) known(r *http.Request) (*session, error) {
	id := r.PathValue("id")
	a.mu.Lock()
	s := a.sessions[id]
	a.mu.Unlock()
	if s == nil {
		return nil, leasehold.Errorf("owner", leasehold.ErrNotFound, jsonapi.Clip(id), "no owner has this id: it has been closed, its program was silent for too long, or the agent has been restarted; join again")
	}
	if err := a.may(r.Context(), holdMethod, s.namespace, s.owner.Name()); err != nil {
		return nil, err
	}
	return s, s.process.admit(r.Context())
}

func (a *Agent) remove(s *session) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.sessions, s.id)
}
