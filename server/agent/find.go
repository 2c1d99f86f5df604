package agent

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/admin"
	"github.com/leasehold-dev/leasehold/lookup"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
	"github.com/leasehold-dev/leasehold/server/jsonapi"
)

// A findAnswer is the location of a key in the local table. It is a hint: the server decides whether it
// owns the key.
type findAnswer struct {
	Key   admin.Point `json:"key"`
	Addr  string      `json:"addr"`
	Owner string      `json:"owner"`
	leaseDocument
	LSN   leasehold.LSN `json:"lsn,string"`
	AgeMS int64         `json:"age_ms"` // time since the table was known to be complete
	Ready bool          `json:"ready"`  // false: contact is lost, and losses may be missing
}

// find answers GET /v1/namespaces/{namespace}/find.
func (a *Agent) find(_ http.ResponseWriter, r *http.Request) (any, error) {
	query, err := parameters(r, "key", "name", "refresh")
	if err != nil {
		return nil, err
	}
	key, err := keyDocument{query.get("key"), query.get("name")}.parse()
	if err != nil {
		return nil, err
	}
	refresh := query["refresh"]
	if query.get("refresh") != nil && refresh != "true" && refresh != "false" {
		return nil, bad("refresh", "is %q, want true or false", jsonapi.Clip(refresh))
	}
	l, done, err := a.lookup(r)
	if err != nil {
		return nil, err
	}
	defer done()
	if refresh == "true" {
		l.Refresh()
	}
	p, ok := l.At(key)
	if !ok {
		return nil, leasehold.Errorf("find", leasehold.ErrNoOwner, key.String(), "no owner has the key at present; try again in a moment")
	}
	return findAnswer{
		Key: admin.Point(key), Addr: p.Addr, Owner: string(p.Owner), leaseDocument: leaseOf(p.Range, p.Generation),
		LSN: p.LSN, AgeMS: l.Age().Milliseconds(), Ready: l.Ready(),
	}, nil
}

// lookup returns the lookup of the namespace in the path, which stays open until done is called.
func (a *Agent) lookup(r *http.Request) (_ *lookup.Lookup, done func(), err error) {
	ns := leasehold.Namespace(r.PathValue("namespace"))
	if err := a.may(r.Context(), followMethod, ns, ""); err != nil {
		return nil, nil, err
	}
	return a.lookups.get(r.Context(), ns)
}

// values are the parameters of a request, each at most once.
type values map[string]string

func (v values) get(name string) *string {
	if text, ok := v[name]; ok {
		return &text
	}
	return nil
}

func parameters(r *http.Request, known ...string) (values, error) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, bad("query", "%w", err)
	}
	out := make(values)
	for name, all := range query {
		switch {
		case !slices.Contains(known, name):
			return nil, bad("query", "there is no parameter %q; those are %s", jsonapi.Clip(name), strings.Join(known, ", "))
		case len(all) > 1:
			return nil, bad("query", "%s is there %d times", name, len(all))
		}
		out[name] = all[0]
	}
	return out, nil
}

// A lossLine is one line of the stream of losses.
type lossLine struct {
	Type string `json:"type" enum:"loss"`
	leaseDocument
	Owner  string        `json:"owner"` // "" if unknown, with the generation 0
	Cause  string        `json:"cause"`
	LSN    leasehold.LSN `json:"lsn,string"`
	Resume leasehold.LSN `json:"resume,string"` // see leasehold.Loss
}

// A contactLine reports that contact with the managers was lost or restored. All losses before a restored
// contact are on the stream before this line.
type contactLine struct {
	Type  string        `json:"type" enum:"contact"`
	Lost  bool          `json:"lost"`
	LSN   leasehold.LSN `json:"lsn,string"` // all losses up to it are on the stream
	AgeMS int64         `json:"age_ms"`     // time for which the table was not known to be complete
}

// A lossBegin is the first line: resuming from its LSN misses no loss.
type lossBegin struct {
	Type string        `json:"type" enum:"begin"`
	LSN  leasehold.LSN `json:"lsn,string"`
}

// sinceOf returns the LSN from which a request resumes; nil: from now. A 64-bit LSN is never on the
// stream.
func sinceOf(r *http.Request) (*leasehold.LSN, error) {
	query, err := parameters(r, "since")
	if err != nil || query.get("since") == nil {
		return nil, err
	}
	n, err := strconv.ParseUint(query["since"], 10, 63)
	if err != nil {
		return nil, bad("since", "is %q: want a number in decimal, an LSN of this stream", jsonapi.Clip(query["since"]))
	}
	return new(leasehold.LSN(n)), nil
}

// losses answers GET /v1/namespaces/{namespace}/losses.
func (a *Agent) losses(w http.ResponseWriter, r *http.Request) {
	since, err := sinceOf(r)
	if err != nil {
		fail(w, err)
		return
	}
	l, done, err := a.lookup(r)
	if err != nil {
		fail(w, err)
		return
	}
	defer done()
	if since == nil {
		since = new(l.LSN())
	}
	a.stream(w, func(out *stream) {
		request := &leaseholdv1.FollowRequest{Namespace: r.PathValue("namespace")}
		// Errors cannot be reported on an open stream: it ends.
		_ = a.while(r.Context(), followMethod, request, func(ctx context.Context) { follow(ctx, l, *since, out) })
	})
}

// follow writes losses until the program disconnects or the lookup is closed.
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
			pass(contactLine{"contact", c.Lost, c.LSN, c.Age.Milliseconds()})
		})
		for l, err := range l.LossesSince(ctx, since, contact) {
			if err != nil {
				break
			}
			if !pass(lossLine{"loss", leaseOf(l.Range, l.Generation), string(l.Owner), causeName(l.Cause), l.LSN, l.Resume}) {
				return
			}
		}
	}()
	defer func() { // and wait for the goroutine
		cancel()
		for range heard {
		}
	}()
	pulse := time.NewTicker(aliveEvery)
	defer pulse.Stop()
	for ok := out.send(lossBegin{"begin", since}); ok; {
		select {
		case line, more := <-heard:
			ok = more && out.send(line)
		case <-pulse.C:
			ok = out.send(alive{"alive"})
		}
	}
}
