package leasemap_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/leaseholdtest"
	"github.com/leasehold-dev/leasehold/leasemap"
	"github.com/leasehold-dev/leasehold/lookup"
)

// A reply is the response of a server about a register.
type reply struct {
	Kind    leasehold.Kind
	Value   string
	Version leasemap.Version
}

// serve runs a server of registers on a node, and returns its Close.
func serve(t *testing.T, n *leaseholdtest.Node) (leave func(context.Context) error) {
	t.Helper()
	return serveMap(t, n, leasemap.Config[string]{})
}

func serveMap(t *testing.T, n *leaseholdtest.Node, registers leasemap.Config[string]) (leave func(context.Context) error) {
	t.Helper()
	cfg := n.MovingConfig()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	m, err := leasemap.Join(ctx, cfg, registers)
	if err != nil {
		t.Fatal(err)
	}
	n.Serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = json.NewEncoder(w).Encode(answer(r, m))
	}))
	n.Cleanup(func(ctx context.Context) { _ = m.Close(ctx) })
	return m.Close
}

// answer executes a request: a GET, a PUT, or a conditional PUT.
func answer(r *http.Request, m *leasemap.Map[string]) reply {
	name := r.URL.Query().Get("name")
	var out reply
	var err error
	if r.Method == http.MethodGet {
		out.Value, out.Version, err = m.GetVersion(name)
	} else {
		var in reply
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			return reply{Kind: leasehold.ErrInvalid}
		}
		var options []leasemap.Option
		if r.URL.Query().Has("if") {
			options = append(options, leasemap.WithVersion(in.Version))
		}
		out.Version, err = m.Set(r.Context(), name, in.Value, options...)
	}
	if err != nil {
		out.Kind = leasehold.KindOf(err)
	}
	return out
}

// A client sends requests to the owner of a register.
type client struct {
	lookup *lookup.Lookup
	http   *http.Client
}

func newClient(n *leaseholdtest.Node) *client {
	return &client{lookup: n.Lookup(), http: n.Client()}
}

// call sends a request about a register. It fails with [leasehold.ErrIndeterminate] if the request may have been
// executed.
func (c *client) call(ctx context.Context, method, name string, in reply, conditional bool) (reply, error) {
	body, err := json.Marshal(in)
	if err != nil {
		return reply{}, err
	}
	query := url.Values{"name": {name}}
	if conditional {
		query.Set("if", "")
	}
	var out reply
	err = c.lookup.Do(ctx, leasehold.KeyOf(name), func(ctx context.Context, addr string) error {
		out = reply{}
		if err := c.send(ctx, method, "http://"+addr+"/?"+query.Encode(), body, &out); err != nil {
			return leasehold.Errorf("call", leasehold.ErrIndeterminate, addr, "%w", err)
		}
		if out.Kind != leasehold.Other {
			return out.Kind
		}
		return nil
	})
	return out, err
}

func (c *client) send(ctx context.Context, method, to string, body []byte, out *reply) error {
	r, err := http.NewRequestWithContext(ctx, method, to, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.GetBody = nil // prevents a retry
	response, err := c.http.Do(r)
	if err != nil {
		return err
	}
	defer response.Body.Close() //nolint:errcheck // after reading it
	return json.NewDecoder(response.Body).Decode(out)
}
