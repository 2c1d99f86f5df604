// Package recipetest runs two servers of a recipe of the cookbook in a test, on virtual time.
package recipetest

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/leaseholdtest"
	"github.com/leasehold-dev/leasehold/leasehttp"
	"github.com/leasehold-dev/leasehold/owner"
)

// A Server is a server of a recipe.
type Server interface {
	Handler() http.Handler
	Close(ctx context.Context) error
}

// A Pair is two servers, on the nodes a and b, and a caller.
type Pair struct {
	*leaseholdtest.Cluster
	t       *testing.T
	join    func(*leaseholdtest.Node) (Server, error)
	servers map[string]Server
	caller  *http.Client
}

// Run runs a test with two servers that own all keys.
func Run[S Server](t *testing.T, join func(context.Context, owner.Config) (S, error), test func(t *testing.T, p *Pair)) {
	t.Helper()
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		p := &Pair{Cluster: c, t: t, servers: make(map[string]Server)}
		p.join = func(n *leaseholdtest.Node) (Server, error) { return join(t.Context(), n.MovingConfig()) }
		p.start("a")
		p.start("b")
		c.Settle()
		n := c.Node("caller")
		transport, err := leasehttp.NewTransport(leasehttp.TransportConfig{
			Lookup: n.Lookup(), Key: leasehttp.PathSegment(2), Base: n.Client().Transport,
		})
		if err != nil {
			t.Fatal(err)
		}
		p.caller = &http.Client{Transport: transport}
		test(t, p)
	})
}

func (p *Pair) start(name string) {
	p.t.Helper()
	n := p.Node(name)
	s, err := p.join(n)
	if err != nil {
		p.t.Fatal(err)
	}
	p.servers[name] = s
	n.Cleanup(func(ctx context.Context) { _ = s.Close(ctx) }) // fails if the node was killed, or is the last
	n.Serve(s.Handler())
}

// Restart restarts the owner of a name. The state of its keys moves to the other server.
func (p *Pair) Restart(name string) {
	p.t.Helper()
	node := p.OwnerOf(name)
	if err := p.servers[node].Close(p.t.Context()); err != nil {
		p.t.Error(err)
	}
	p.Node(node).Kill()
	p.start(node)
	p.Settle()
}

// Crash kills the owner of a name, and returns when the other server owns the name.
func (p *Pair) Crash(name string) {
	p.t.Helper()
	p.Node(p.OwnerOf(name)).Kill()
	p.Settle()
}

// OwnerOf returns the node that owns a name.
func (p *Pair) OwnerOf(name string) string {
	p.t.Helper()
	node, ok := p.Owner(leasehold.KeyOf(name))
	if !ok {
		p.t.Fatalf("%s has no owner", name)
	}
	return node
}

// Send sends a request to the owner of the second segment of the path, and returns the response.
func (p *Pair) Send(method, path, body string) (status int, text string) {
	p.t.Helper()
	r, err := http.NewRequestWithContext(p.t.Context(), method, "http://service"+path, strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	response, err := p.caller.Do(r)
	if err != nil {
		p.t.Fatal(err)
	}
	defer response.Body.Close() //nolint:errcheck // it was read
	data, err := io.ReadAll(response.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return response.StatusCode, string(data)
}

// Want sends a request and checks the status and a part of the response.
func (p *Pair) Want(status int, part, method, path, body string) {
	p.t.Helper()
	if got, text := p.Send(method, path, body); got != status || !strings.Contains(text, part) {
		p.t.Errorf("%s %s: %d %q, want %d with %q", method, path, got, text, status, part)
	}
}
