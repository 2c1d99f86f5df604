package agent

import (
	"context"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/lookup"
)

// A findAnswer is where a key is, as far as is known here. It is a hint: the server
// knows whether it owns the key.
type findAnswer struct {
	Key        string `json:"key"`
	Addr       string `json:"addr"`
	Owner      string `json:"owner"`
	Generation string `json:"generation"`
	Start      string `json:"start"` // of the keys around this one that are at the same place
	Limit      string `json:"limit"`
	LSN        string `json:"lsn"`
	AgeMS      int64  `json:"age_ms"` // for how long the table has not been known to be complete
	Ready      bool   `json:"ready"`  // false: contact is lost, and losses may be unknown
}

// find answers GET /v1/namespaces/{namespace}/find.
func (a *Agent) find(w http.ResponseWriter, r *http.Request) {
	document, err := a.findKey(r)
	if err != nil {
		fail(w, err)
		return
	}
	answer(w, http.StatusOK, document)
}

func (a *Agent) findKey(r *http.Request) (*findAnswer, error) {
	query, err := parameters(r, "key", "name", "refresh")
	if err != nil {
		return nil, err
	}
	key, err := keyDocument{query.get("key"), query.get("name")}.parse()
	if err != nil {
		return nil, err
	}
	refresh := query.get("refresh")
	if refresh != nil && *refresh != "true" && *refresh != "false" {
		return nil, bad("refresh", "is %q, want true or false", clip(*refresh))
	}
	ns := leasehold.Namespace(r.PathValue("namespace"))
	if err := a.mayFollow(r.Context(), ns); err != nil {
		return nil, err
	}
	l, done, err := a.lookups.get(r.Context(), ns)
	if err != nil {
		return nil, err
	}
	defer done()
	if refresh != nil && *refresh == "true" {
		l.Refresh()
	}
	p, ok := l.At(key)
	if !ok {
		return nil, leasehold.Errorf("find", leasehold.ErrNoOwner, key.String(), "nobody owns the key at present; try again in a moment")
	}
	start, limit := rangeJSON(p.Range)
	return &findAnswer{
		Key: key.String(), Addr: p.Addr, Owner: string(p.Owner), Generation: decimal(p.Generation),
		Start: start, Limit: limit, LSN: decimal(p.LSN), AgeMS: l.Age().Milliseconds(), Ready: l.Ready(),
	}, nil
}

// values are the parameters of a request, each there once at most.
type values map[string]string

func (v values) get(name string) *string {
	if text, ok := v[name]; ok {
		return &text
	}
	return nil
}

// parameters reads those that are known, and refuses others.
func parameters(r *http.Request, known ...string) (values, error) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, bad("query", "%w", err)
	}
	out := make(values)
	for name, all := range query {
		switch {
		case !slices.Contains(known, name):
			return nil, bad("query", "there is no parameter %q; those are %s", clip(name), strings.Join(known, ", "))
		case len(all) > 1:
			return nil, bad("query", "%s is there %d times", name, len(all))
		}
		out[name] = all[0]
	}
	return out, nil
}

// A lossLine is one line of the stream of losses.
type lossLine struct {
	Type       string `json:"type"` // "loss"
	Start      string `json:"start"`
	Limit      string `json:"limit"`
	Owner      string `json:"owner"`      // "" if that is not known
	Generation string `json:"generation"` // "0" if that is not known
	Cause      string `json:"cause"`
	LSN        string `json:"lsn"`
	Resume     string `json:"resume"` // see leasehold.Loss
}

// A contactLine says that contact with the managers was lost, or is restored: then all losses that happened before
// are on the stream before it.
type contactLine struct {
	Type  string `json:"type"` // "contact"
	Lost  bool   `json:"lost"`
	LSN   string `json:"lsn"`    // all losses up to it are on the stream
	AgeMS int64  `json:"age_ms"` // for how long the table had not been known to be complete
}

// A lossBegin is the first one: resuming from its LSN is as good as having read on.
type lossBegin struct {
	Type string `json:"type"` // "begin"
	LSN  string `json:"lsn"`
}

// maxLSN is far more than there will ever be. Whoever names more has not read it
// here, and would wait for ever.
const maxLSN = math.MaxInt64

// losses answers GET /v1/namespaces/{namespace}/losses.
func (a *Agent) losses(w http.ResponseWriter, r *http.Request) {
	query, err := parameters(r, "since")
	if err != nil {
		fail(w, err)
		return
	}
	var since *leasehold.LSN
	if text := query.get("since"); text != nil {
		n, err := parseDecimal("since", *text)
		if err == nil && n > maxLSN {
			err = bad("since", "is %d, which no LSN comes near: want that of a line of this stream", n)
		}
		if err != nil {
			fail(w, err)
			return
		}
		since = (*leasehold.LSN)(&n)
	}
	ns := leasehold.Namespace(r.PathValue("namespace"))
	if err := a.mayFollow(r.Context(), ns); err != nil {
		fail(w, err)
		return
	}
	l, done, err := a.lookups.get(r.Context(), ns)
	if err != nil {
		fail(w, err)
		return
	}
	defer done()
	if since == nil {
		now := l.LSN()
		since = &now
	}
	a.stream(w, func(out *stream) {
		a.following(r.Context(), ns, func(ctx context.Context) { follow(ctx, l, *since, out) })
	})
}

// follow writes losses until the program hangs up or the lookup is closed.
func follow(ctx context.Context, l *lookup.Lookup, since leasehold.LSN, out *stream) {
	ctx, cancel := context.WithCancel(ctx)
	heard := make(chan any)
	pass := func(line any) bool {
		select {
		case heard <- line:
			return true
		case <-ctx.Done():
			return false
		}
	}
	go func() {
		defer close(heard)
		contact := lookup.WithContact(func(c lookup.Contact) {
			pass(contactLine{"contact", c.Lost, decimal(c.LSN), c.Age.Milliseconds()})
		})
		for loss, err := range l.LossesSince(ctx, since, contact) {
			if err != nil {
				break
			}
			if !pass(lossJSON(loss)) {
				return
			}
		}
	}()
	defer func() { // and wait for it
		cancel()
		for range heard {
		}
	}()
	pulse := time.NewTicker(aliveEvery)
	defer pulse.Stop()
	for ok := out.send(lossBegin{"begin", decimal(since)}); ok; {
		select {
		case line, more := <-heard:
			ok = more && out.send(line)
		case <-pulse.C:
			ok = out.send(alive{"alive"})
		}
	}
}

func lossJSON(l leasehold.Loss) lossLine {
	start, limit := rangeJSON(l.Range)
	return lossLine{
		Type: "loss", Start: start, Limit: limit, Owner: string(l.Owner), Generation: decimal(l.Generation),
		Cause: causeName(l.Cause), LSN: decimal(l.LSN), Resume: decimal(l.Resume),
	}
}
