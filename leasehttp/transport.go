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

// maxReplay bounds what a configuration can make us keep for each request.
const maxReplay = 64 << 20

// TransportConfig says how requests find their servers.
type TransportConfig struct {
	// Lookup and Key are required: the table, and where in a request its key is.
	// The Lookup stays the caller's, to be closed after the last request.
	Lookup *lookup.Lookup
	Key    Source

	// Base sends a request to the server that was found: its URL has the address.
	// Default: a [http.Transport] that keeps as many idle connections to a server
	// as MaxOutstanding, dials within 5 s, and takes no proxy from the environment.
	// Do not give it a ResponseHeaderTimeout if there are requests that take long.
	Base http.RoundTripper

	// Dial connects to a server for requests with http, in plain text. It is for the
	// default Base. Default: whatever the server's address leads to.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	// DialTLS connects to a server for requests with https, and makes sure that it is
	// the one: secure.Keeper's DialTLS does, which wants a certificate for the address
	// that the server has joined with, or one of the identities that the Keeper was
	// told, and shows our own. It is for the default Base; one that is given has its own
	// way. Default: what the computer trusts, by the address.
	DialTLS func(ctx context.Context, network, addr string) (net.Conn, error)

	// MaxOutstanding is how many requests may be under way to one server (PRS 3.3),
	// each until the body of its answer is closed, a WebSocket until it ends. More
	// fail at once, with [leasehold.ErrLimit]. Default 1024.
	MaxOutstanding int

	// Replay is how much of a request's body is kept, in bytes, so that it can be
	// sent to another server. Requests whose body is longer are sent again only if
	// they have a GetBody, or if the server refused them before that much of it was
	// read. Default 64 KiB; negative keeps nothing.
	Replay int

	// Attempts is how often a request is sent at most or, while its key has no
	// owner, would have been: see [lookup.WithAttempts]. Default: as there. Between
	// them it waits for about 23 seconds in all. What attempts take themselves comes on
	// top: 5 s for each if the server's computer does not even refuse connections.
	Attempts int
}

func (c *TransportConfig) validate() error {
	const op = "new transport"
	switch {
	case c.Lookup == nil:
		return leasehold.Errorf(op, leasehold.ErrInvalid, "Lookup", "it is required: open one with lookup.Open")
	case !c.Key.valid():
		return leasehold.Errorf(op, leasehold.ErrInvalid, "Key", "it is required: say where the key is, with Header for instance")
	case c.Base != nil && (c.Dial != nil || c.DialTLS != nil):
		return leasehold.Errorf(op, leasehold.ErrInvalid, "Dial", "it and DialTLS are for the default Base: set those of the Base which is given instead")
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
		DisableCompression:     true, // whoever asked for it gets it as it comes
	}
	if dial != nil {
		base.DialContext = shakingHands(dial)
	}
	if dialTLS != nil {
		base.DialTLSContext = shakingHands(dialTLS)
	}
	return base
}

// shakingHands bounds the time for a connection and its handshake. If there is none, not
// a byte of a request has left, and the error says so as one of dialling does.
func shakingHands(dial func(ctx context.Context, network, addr string) (net.Conn, error)) func(context.Context, string, string) (net.Conn, error) {
	const patience = 5 * time.Second
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, &net.OpError{Op: "dial", Net: network, Err: err}
		}
		return conn, nil
	}
}

// A Transport is a [http.RoundTripper] that sends each request to the server that
// owns its key, and to another if that one says that it does not. The host of the
// request's URL stands for the service: the server sees it in the Host header.
//
//	client := &http.Client{Transport: transport}
//	answer, err := client.Get("http://presence/users/alice")
//
// When a request is sent again, and when not, is in the documentation of the
// package. An error says with its kind ([leasehold.KindOf]) what to do.
//
// It may be used by many goroutines at once. It starts none that outlives its request's body, and has nothing that
// must be closed besides idle connections.
type Transport struct {
	cfg         TransportConfig
	outstanding *outstanding
	options     []lookup.DoOption // of requests that must not be carried out twice
	idempotent  []lookup.DoOption
}

// NewTransport fails with [leasehold.ErrInvalid] if the configuration makes no sense.
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

// CloseIdleConnections closes connections to servers that nobody uses now.
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
		return nil, leasehold.Errorf("route", leasehold.ErrInvalid, clip(r.Method), "a request that is not for a path cannot be routed")
	}
	c := &call{transport: t, request: r, key: key, body: b, repeatable: idempotent(r)}
	options := t.options
	if c.repeatable {
		options = t.idempotent
	}
	if err = t.cfg.Lookup.Do(r.Context(), key, c.attempt, options...); err != nil {
		return nil, c.ended(err)
	}
	return c.response, nil
}

// ended makes what RoundTrip returns from what ended the attempts. That is about
// the last of them: if an earlier one may have been carried out, so may the request.
func (c *call) ended(err error) error {
	if last := (final{}); errors.As(err, &last) {
		err = last.err
	} else if c.request.Context().Err() != nil && leasehold.KindOf(err) == leasehold.Other {
		err = context.Cause(c.request.Context())
	}
	if c.maybe && leasehold.KindOf(err) != leasehold.ErrIndeterminate {
		return leasehold.Errorf("send", leasehold.ErrIndeterminate, c.key.String(), "an earlier attempt may have carried the request out: %w", err)
	}
	return err
}

// idempotent reports whether it does no harm if a request is carried out twice:
// by its method (RFC 9110, section 9.2.2), or because the caller has given it a
// name by which the server knows it again, as package net/http has it too. A change with a
// condition that has been made does not meet it a second time: the caller would be told that
// nothing was done.
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

// conditional reports whether a change depends on what is there (RFC 9110, section 13.1).
func conditional(r *http.Request) bool {
	return r.Header.Get("If-Match") != "" || r.Header.Get("If-None-Match") != "" || r.Header.Get("If-Unmodified-Since") != ""
}

// A final error ends the attempts, whatever its kind would have Do do. It does
// not unwrap, so that the kind stays hidden from it.
type final struct{ err error }

func (f final) Error() string { return f.err.Error() }

// outgoing is a request as it is sent to a server. The request itself stays as it
// is, as a RoundTripper has to leave it.
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
	if sent != nil { // GetBody is for connections that turn out to be closed before anything was sent
		out.Body, out.GetBody = sent, c.body.next
		// A body that cannot be sent twice waits until the server has agreed to
		// have it. One of unknown length may be half of a conversation, and does not.
		if c.request.ContentLength > int64(c.transport.cfg.Replay) && c.body.fresh == nil {
			out.Header["Expect"] = []string{"100-continue"}
		}
	}
	return out, nil
}

func misrouted(addr, how string) error {
	kind, what := leasehold.ErrNotOwner, "it does not own the key"
	switch how {
	case RefusedLost:
		what = "it lost the key while it worked on the request"
	case RefusedSuspended:
		kind, what = leasehold.ErrSuspended, "its lease on the key is suspended, because no manager has answered it in time"
	}
	return leasehold.Errorf("send", kind, addr, "%s", what)
}

// neverSent reports whether an error means that not a byte of the request has
// left: nobody was there to take it.
func neverSent(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

var errMoved = errors.New("the key went to another server while this one did not answer")

// outstanding bounds how many requests are under way to each server (PRS 3.3):
// one that is slow must not tie up all that its callers have, and be sent ever
// more. It remembers only servers that have some, so that servers which come and
// go leave nothing behind.
type outstanding struct {
	most int

	mu sync.Mutex
	at map[string]int // by address; none is 0
}

func newOutstanding(most int) *outstanding {
	return &outstanding{most: most, at: make(map[string]int)}
}

// begin counts a request, or refuses it at once: a queue here would only hide
// from callers that they ask for too much.
func (o *outstanding) begin(addr string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.at[addr] >= o.most {
		return leasehold.Errorf("send", leasehold.ErrLimit, addr, "%d requests are under way to the owner of the key, as many as may be", o.most)
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
