package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"iter"
	"net"
	"net/http"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/leasehttp"
	"github.com/leasehold-dev/leasehold/lookup"
)

const (
	lookupTimeout = 20 * time.Second
	// attemptTimeout bounds connecting to a server, and waiting for its answer.
	attemptTimeout = 2 * time.Second
	// maxConns bounds the connections to one server. More requests wait for one: a stopped
	// server would collect a connection for each of its users.
	maxConns = 64
)

// A table is what callers use of [lookup.Lookup] directly.
type table interface {
	Find(key leasehold.Key) (addr string, ok bool)
	At(key leasehold.Key) (lookup.Placement, bool)
	Changed() <-chan struct{}
	Losses(ctx context.Context) iter.Seq2[leasehold.Loss, error]
	Close(ctx context.Context) error
}

func openLoad(ctx context.Context, c *cluster) (*load, error) {
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	_, secured := c.certificates.credentials()
	t, err := lookup.Open(ctx, lookup.Config{Namespace: namespace, Managers: c.managers.Addrs(), Credentials: secured})
	if err != nil {
		return nil, err
	}
	base := &http.Transport{
		DialContext:    (&net.Dialer{Timeout: attemptTimeout}).DialContext,
		DialTLSContext: c.certificates.dialServer, ResponseHeaderTimeout: attemptTimeout,
		MaxConnsPerHost: maxConns, MaxIdleConnsPerHost: maxConns, IdleConnTimeout: time.Minute,
	}
	routed, err := leasehttp.NewTransport(leasehttp.TransportConfig{
		Lookup: t, Key: leasehttp.PathSegment(2), Base: countedTransport{base},
		MaxOutstanding: maxWaiting, Attempts: attemptsFor(c.cfg.Lease + c.cfg.Outage),
	})
	if err != nil {
		_ = t.Close(context.Background()) // it always returns nil
		return nil, err
	}
	l := newLoad(&c.cfg, t, routed, base)
	l.byRestart = c.byRestart
	return l, nil
}

// attemptsFor is enough attempts for three times as long as keys may have no owner, with
// half a second at least between two of them once the first few have failed.
func attemptsFor(unowned time.Duration) int { return 20 + int(3*unowned/(500*time.Millisecond)) }

type attempts struct{ made, misrouted int }

type attemptsKey struct{}

type countedTransport struct{ http.RoundTripper }

func (t countedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := t.RoundTripper.RoundTrip(r)
	if a, ok := r.Context().Value(attemptsKey{}).(*attempts); ok {
		a.made++
		if err == nil && answer.Header.Get(leasehttp.HeaderRefused) == leasehttp.RefusedNotOwner {
			a.misrouted++
		}
	}
	return answer, err
}

// request makes one request of a user, which is repeated until it succeeds. It is not
// complete if it was dropped because the whole has ended.
func (l *load) request(ctx, whole context.Context, u *user, d due) (out outcome, complete bool) {
	number, republish := u.next(d.set)
	out.republished, out.queued = republish, d.queued
	_, out.owned = l.table.Find(u.key)
	begin := time.Now()
	answer, err := l.call(context.WithValue(ctx, attemptsKey{}, &out.attempts), u, number)
	now := time.Now()
	out.took, out.tried, out.err = now.Sub(d.at), now.Sub(begin), err
	if err != nil {
		if republish {
			u.lost.Store(true) // it is still to be done
		}
		return out, whole.Err() == nil
	}
	l.judge(u, number, answer)
	return out, true
}

// judge compares an answer with what the user has set; number is 0 if the request was a read.
func (l *load) judge(u *user, number uint64, answer status) {
	switch u.judge(number, answer.Number) {
	case stale:
		l.tally.count(func(c *counts) { c.StaleAnswers++ })
	case forgotten:
		l.tally.suspect(u, time.Now())
	case current:
		if answer.Number != 0 && answer.Text != u.text(answer.Number, l.cfg.ValueSize) {
			l.tally.count(func(c *counts) { c.Garbled++ })
		}
	}
}

// call sets the status of a user with a number, or reads it if the number is 0.
func (l *load) call(ctx context.Context, u *user, number uint64) (status, error) {
	method, body := http.MethodGet, []byte(nil)
	if number != 0 {
		var err error
		if body, err = json.Marshal(status{Number: number, Text: u.text(number, l.cfg.ValueSize)}); err != nil {
			return status{}, err
		}
		method = http.MethodPut
	}
	var answer status
	err := exchange(ctx, l.routed, method, l.scheme+"://presence/presence/"+u.name(), body, &answer)
	return answer, err
}

func exchange(ctx context.Context, client *http.Client, method, url string, body []byte, answer any) error {
	request, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close() //nolint:errcheck // all of it has been read, or is not wanted
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return leasehold.Errorf("call", leasehold.ErrInternal, url, "%s: %s", response.Status, text)
	}
	return json.Unmarshal(text, answer)
}
