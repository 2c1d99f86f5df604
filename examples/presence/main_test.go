package main

import (
	"context"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/leaseholdtest"
	"github.com/leasehold-dev/leasehold/leasehttp"
	"github.com/leasehold-dev/leasehold/leasemap"
)

// TestReadmeShowsIt: the README shows this program.
func TestReadmeShowsIt(t *testing.T) {
	program, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, code, _ := strings.Cut(string(program), ")\n\n") // after the imports
	if !strings.Contains(string(readme), "```go\n"+code+"```\n") {
		t.Error("README.md shows another program: copy main.go without its imports into it")
	}
}

// start runs a server on a node. It returns the server's Close.
func start(t *testing.T, n *leaseholdtest.Node) func(context.Context) error {
	t.Helper()
	cfg := n.MovingConfig()
	statuses, err := leasemap.Join(t.Context(), cfg, leasemap.Config[string]{})
	if err != nil {
		t.Fatal(err)
	}
	n.Cleanup(func(ctx context.Context) { _ = statuses.Close(ctx) })
	n.Serve(serve(statuses))
	return statuses.Close
}

// TestPresence: callers reach the owner of a user. A status moves with the user when a server is
// drained; it is lost when a server is killed.
func TestPresence(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		leave := map[string]func(context.Context) error{"a": start(t, c.Node("a")), "b": start(t, c.Node("b"))}
		c.Settle()
		caller := c.Node("caller")
		transport, err := leasehttp.NewTransport(leasehttp.TransportConfig{
			Lookup: caller.Lookup(), Key: leasehttp.PathSegment(2), Base: caller.Client().Transport,
		})
		if err != nil {
			t.Fatal(err)
		}
		client := &http.Client{Transport: transport}
		setStatus := func(text string) {
			t.Helper()
			if status, body := do(t, client, http.MethodPut, text); status != http.StatusOK {
				t.Fatal(status, body)
			}
		}
		wantStatus := func(when, want string) {
			t.Helper()
			if status, body := do(t, client, http.MethodGet, ""); status != http.StatusOK || body != want {
				t.Errorf("%s: %d %q, want %q", when, status, body, want)
			}
		}
		setStatus("at home")
		wantStatus("at first", "at home")
		if status, _ := do(t, client, http.MethodPut, strings.Repeat("x", 1001)); status != http.StatusRequestEntityTooLarge {
			t.Errorf("an oversized status: %d", status)
		}
		first, _ := c.Owner(leasehold.KeyOf("alice"))
		if err := leave[first](t.Context()); err != nil {
			t.Error(err)
		}
		wantStatus("when its server was stopped", "at home")
		c.Node(first).Kill()
		start(t, c.Node(first))
		c.Settle()
		second, _ := c.Owner(leasehold.KeyOf("alice"))
		c.Node(second).Kill()
		wantStatus("when its server was killed", "")
		setStatus("at work")
		wantStatus("after that", "at work")
	})
}

func do(t *testing.T, client *http.Client, method, text string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, "http://presence/status/alice", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close() //nolint:errcheck // it was read
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(body)
}
