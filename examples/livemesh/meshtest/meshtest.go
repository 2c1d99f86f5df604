// Package meshtest runs services of Live Mesh in a test's cluster.
package meshtest

import (
	"context"
	"flag"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/examples/livemesh/jsonhttp"
	"github.com/leasehold-dev/leasehold/leaseholdtest"
	"github.com/leasehold-dev/leasehold/lookup"
)

// runs overrides the number of runs: go test ./queue -args -runs=1000.
var runs = flag.Int("runs", 0, "runs with faults per test; 0 is the test's default")

// Runs returns the number of runs with faults of a test.
func Runs(usual int) int {
	if *runs > 0 {
		return *runs
	}
	return usual
}

// A Service is a server that has joined its namespace.
type Service interface {
	Handler() http.Handler
	Close(ctx context.Context) error
}

// Serve serves a service on its node, until either ends. It returns the service's Close.
func Serve(t testing.TB, n *leaseholdtest.Node, s Service, err error) (leave func(context.Context) error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	n.Cleanup(func(ctx context.Context) { _ = s.Close(ctx) })
	n.Serve(s.Handler())
	return s.Close
}

// Lookup opens a lookup on a node, until the node ends.
func Lookup(t testing.TB, c *leaseholdtest.Cluster, n *leaseholdtest.Node) *lookup.Lookup {
	t.Helper()
	cfg := n.LookupConfig()
	cfg.Namespace = c.Namespace()
	l, err := lookup.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	n.Cleanup(func(context.Context) { _ = l.Close(context.Background()) })
	return l
}

// Client returns a client on a node for the servers of a namespace.
func Client(t testing.TB, c *leaseholdtest.Cluster, n *leaseholdtest.Node) jsonhttp.Client {
	t.Helper()
	base := &http.Transport{DialContext: n.DialContext}
	client, err := jsonhttp.NewClient(Lookup(t, c, n), c.Namespace(), base, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	n.Cleanup(func(context.Context) { base.CloseIdleConnections() })
	return client
}

// A Case is a request and its expected response.
type Case struct {
	What         string
	Method, Path string
	Body         string
	Header       string // "Name: value"
	Status       int
	Has          string // substring of the response
}

// Check sends requests one after the other, and checks the responses.
func Check(t testing.TB, client *http.Client, url string, cases []Case) {
	t.Helper()
	for _, c := range cases {
		status, answer := c.send(t, client, url)
		if status != c.Status || !strings.Contains(answer, c.Has) {
			t.Errorf("%s: status %d, want %d with %q: %s", c.What, status, c.Status, c.Has, answer)
		}
	}
}

func (c *Case) send(t testing.TB, client *http.Client, url string) (status int, answer string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), c.Method, url+c.Path, strings.NewReader(c.Body))
	if err != nil {
		t.Fatal(err)
	}
	if name, value, ok := strings.Cut(c.Header, ": "); ok {
		r.Header.Set(name, value)
	}
	got, err := client.Do(r)
	if err != nil {
		t.Fatalf("%s: %v", c.What, err)
	}
	defer got.Body.Close() //nolint:errcheck // it was read
	text, err := io.ReadAll(got.Body)
	if err != nil {
		t.Fatalf("%s: %v", c.What, err)
	}
	return got.StatusCode, string(text)
}
