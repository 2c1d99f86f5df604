package leasehttp

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/lookup"
)

// Defaults of a [TransportConfig].
const (
	DefaultMaxOutstanding = 1024
	DefaultReplay         = 64 << 10
)

// maxReplay bounds the memory for each request.
const maxReplay = 64 << 20

// TransportConfig configures a [Transport].
type TransportConfig struct {
	// Lookup and Key are required: the lease table, and the source of a request's key.
	// The Transport does not close the Lookup; close it after the last request.
	Lookup *lookup.Lookup
	Key    Source

	// Base sends a request to the owner: its URL has the owner's address. Default: a
	// [http.Transport] with up to MaxOutstanding idle connections to each server, a dial
	// timeout of 5 s, and no proxy from the environment. With long requests it must not
	// have a ResponseHeaderTimeout.
	Base http.RoundTripper

	// Dial connects to a server for plaintext requests (http), in the default Base.
	// Default: a [net.Dialer].
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	// DialTLS connects to a server for requests with https, in the default Base, and
	// verifies the server's certificate. DialTLS of secure.Keeper sends the process's
	// certificate, and requires one for the address with which the server joined, or with
	// an identity of Config.Servers. Default: verification with the system's roots.
	DialTLS func(ctx context.Context, network, addr string) (net.Conn, error)

	// MaxOutstanding is the number of outstanding requests to one server (PRS 3.3). A
	// request is outstanding until the body of its response is closed, a WebSocket until
	// it ends. Further requests fail immediately with [leasehold.ErrLimit]. Default 1024.
	MaxOutstanding int

	// Replay is the number of bytes of a request's body that are kept for retries. A
	// request with a longer body is retried only if it has a GetBody, or if the server
	// rejects it before more was read. Default 64 KiB; negative keeps nothing.
	Replay int

	// Attempts is the maximum number of attempts; while the key has no owner, a wait
	// counts as one: see [lookup.WithAttempts], also for the default, with which the
	// backoff is about 23 s in total. The attempts themselves take additional time: up to
	// 5 s each if the server's host drops packets.
	Attempts int
}

func (c *TransportConfig) validate() error {
	const op = "new transport"
	switch {
	case c.Lookup == nil:
		return leasehold.Errorf(op, leasehold.ErrInvalid, "Lookup", "it is required: open one with lookup.Open")
	case !c.Key.valid():
		return leasehold.Errorf(op, leasehold.ErrInvalid, "Key", "it is required: use Header, for example")
	case c.Base != nil && (c.Dial != nil || c.DialTLS != nil):
		return leasehold.Errorf(op, leasehold.ErrInvalid, "Dial", "Dial and DialTLS are for the default Base: configure those of Base instead")
	case c.MaxOutstanding < 0:
		return leasehold.Errorf(op, leasehold.ErrInvalid, "MaxOutstanding", "%d: want at least 1, or 0 for the default", c.MaxOutstanding)
	case c.Attempts < 0:
		return leasehold.Errorf(op, leasehold.ErrInvalid, "Attempts", "%d: want at least 1, or 0 for the default", c.Attempts)
	case c.Replay > maxReplay:
		return leasehold.Errorf(op, leasehold.ErrInvalid, "Replay", "%d bytes for each request: want at most %d", c.Replay, maxReplay)
	}
	c.MaxOutstanding = cmp.Or(c.MaxOutstanding, DefaultMaxOutstanding)
	c.Replay = max(0, cmp.Or(c.Replay, DefaultReplay))
	if c.Base == nil {
		c.Base = newBase(c.MaxOutstanding, c.Dial, c.DialTLS)
	}
	return nil
}

func newBase(idle int, dial, dialTLS func(ctx context.Context, network, addr string) (net.Conn, error)) *http.Transport {
	base := &http.Transport{
		DialContext:            (&net.Dialer{Timeout: 5 * time.Second, KeepAlive: 15 * time.Second}).DialContext,
		MaxIdleConnsPerHost:    idle,
		IdleConnTimeout:        90 * time.Second,
		TLSHandshakeTimeout:    5 * time.Second,
		ExpectContinueTimeout:  time.Second,
		MaxResponseHeaderBytes: 1 << 20,
		DisableCompression:     true, // responses are forwarded unchanged
	}
	if dial != nil {
		base.DialContext = dialWithTimeout(dial)
	}
	if dialTLS != nil {
		base.DialTLSContext = dialWithTimeout(dialTLS)
	}
	return base
}

// dialWithTimeout bounds the time of dial, including a handshake. Its errors are dial errors
// for [neverSent].
func dialWithTimeout(dial func(ctx context.Context, network, addr string) (net.Conn, error)) func(context.Context, string, string) (net.Conn, error) {
	const timeout = 5 * time.Second
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, &net.OpError{Op: "dial", Net: network, Err: err}
		}
		return conn, nil
	}
}

// A Transport is a [http.RoundTripper] that sends each request to the owner of its key, and
// retries at another server if that one rejects it. The host of the request's URL names the
// service: the server gets it in the Host header.
//
//	client := &http.Client{Transport: transport}
//	answer, err := client.Get("http://presence/users/alice")
//
// The documentation of the package describes retries. The kind of an error
// ([leasehold.KindOf]) tells whether the request may have been executed.
//
// It is safe for concurrent use. It starts no goroutine that outlives the request's body, and
// has nothing to close but idle connections.
type Transport struct {
	cfg         TransportConfig
	outstanding *outstanding
	options     []lookup.DoOption // of requests that are not idempotent
	idempotent  []lookup.DoOption
}

// NewTransport fails with [leasehold.ErrInvalid] if the configuration is invalid.
func NewTransport(cfg TransportConfig) (*Transport, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	t := &Transport{cfg: cfg, outstanding: newOutstanding(cfg.MaxOutstanding)}
	if cfg.Attempts > 0 {
		t.options = append(t.options, lookup.WithAttempts(cfg.Attempts))
	}
	t.idempotent = append(slices.Clone(t.options), lookup.WithIdempotent())
	return t, nil
}

// CloseIdleConnections closes idle connections to servers.
func (t *Transport) CloseIdleConnections() {
	if c, ok := t.cfg.Base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// RoundTrip sends a request to the owner of its key.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	b := newBody(r, t.cfg.Replay)
	defer b.finish()
	key, err := t.cfg.Key.Key(r)
	if err != nil {
		return nil, err
	}
	if r.URL == nil || r.URL.Opaque != "" || r.Method == http.MethodConnect {
		return nil, leasehold.Errorf("route", leasehold.ErrInvalid, clip(r.Method), "only requests for a path can be routed")
	}
	c := &call{transport: t, request: r, key: key, body: b, idempotent: idempotent(r)}
	options := t.options
	if c.idempotent {
		options = t.idempotent
	}
	if err = t.cfg.Lookup.Do(r.Context(), key, c.attempt, options...); err != nil {
		return nil, c.finalError(err)
	}
	return c.response, nil
}

// finalError returns the error of RoundTrip from the error of the last attempt: if an earlier
// attempt may have been executed, the outcome is indeterminate.
func (c *call) finalError(err error) error {
	if last := (final{}); errors.As(err, &last) {
		err = last.err
	} else if c.request.Context().Err() != nil && leasehold.KindOf(err) == leasehold.Other {
		err = context.Cause(c.request.Context())
	}
	if c.mayBeExecuted && leasehold.KindOf(err) != leasehold.ErrIndeterminate {
		return leasehold.Errorf("send", leasehold.ErrIndeterminate, c.key.String(), "the request may have been executed in an earlier attempt: %w", err)
	}
	return err
}

// idempotent reports whether a request may be executed twice: by its method (RFC 9110,
// section 9.2.2), or by an idempotency key, with the headers of package net/http. A
// conditional change is not idempotent: after it has succeeded, a retry fails its condition,
// and the caller would conclude that it was not executed.
func idempotent(r *http.Request) bool {
	switch r.Method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return true
	case http.MethodPut, http.MethodDelete:
		if !conditional(r) {
			return true
		}
	}
	return r.Header.Get("Idempotency-Key") != "" || r.Header.Get("X-Idempotency-Key") != ""
}

// conditional reports whether a request has a precondition (RFC 9110, section 13.1).
func conditional(r *http.Request) bool {
	return r.Header.Get("If-Match") != "" || r.Header.Get("If-None-Match") != "" || r.Header.Get("If-Unmodified-Since") != ""
}

// A final error ends the attempts. It does not unwrap, so that Do does not retry because of
// its kind.
type final struct{ err error }

func (f final) Error() string { return f.err.Error() }

// outgoing returns the request for one attempt. A RoundTripper must not change the original.
func (c *call) outgoing(ctx context.Context, addr string) (*http.Request, error) {
	sent, err := c.body.next()
	if err != nil {
		return nil, err
	}
	out := c.request.WithContext(ctx)
	out.URL = &url.URL{}
	*out.URL = *c.request.URL
	out.URL.Host = addr
	out.Host = cmp.Or(c.request.Host, c.request.URL.Host)
	out.Header = make(http.Header, len(c.request.Header)+2)
	maps.Copy(out.Header, c.request.Header)
	strip(out.Header)
	out.Header[HeaderKey] = []string{c.key.String()}
	out.Body, out.GetBody = nil, nil
	if sent != nil { // the Base uses GetBody if an idle connection turns out to be closed
		out.Body, out.GetBody = sent, c.body.next
		// A body that cannot be sent twice waits for the server's agreement. One of unknown
		// length does not: it may be one direction of a bidirectional stream.
		if c.request.ContentLength > int64(c.transport.cfg.Replay) && c.body.getBody == nil {
			out.Header["Expect"] = []string{"100-continue"}
		}
	}
	return out, nil
}

func refusalError(addr, how string) error {
	kind, what := leasehold.ErrNotOwner, "the server does not own the key"
	switch how {
	case RefusedLost:
		what = "the server lost the key while it executed the request"
	case RefusedSuspended:
		kind, what = leasehold.ErrSuspended, "the server's lease is suspended because no manager responded in time"
	}
	return leasehold.Errorf("send", kind, addr, "%s", what)
}

// neverSent reports whether an error means that no byte of the request was sent: the
// connection failed.
func neverSent(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// outstanding limits the outstanding requests to each server (PRS 3.3): a slow server must
// neither tie up its callers nor get ever more requests. It has entries only for servers with
// outstanding requests.
type outstanding struct {
	limit int

	mu sync.Mutex
	at map[string]int // by address; none is 0
}

func newOutstanding(limit int) *outstanding {
	return &outstanding{limit: limit, at: make(map[string]int)}
}

// begin counts a request, or fails immediately: a queue would only hide the overload from
// callers.
func (o *outstanding) begin(addr string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.at[addr] >= o.limit {
		return leasehold.Errorf("send", leasehold.ErrLimit, addr, "the owner of the key has %d outstanding requests, which is the limit", o.limit)
	}
	o.at[addr]++
	return nil
}

func (o *outstanding) end(addr string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.at[addr]--; o.at[addr] == 0 {
		delete(o.at, addr)
	}
}
