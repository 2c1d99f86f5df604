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

// The README shows this very program.
func TestReadmeShowsIt(t *testing.T) {
	program, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, code, _ := strings.Cut(string(program), ")\n\n") // what comes after the imports
	if !strings.Contains(string(readme), "```go\n"+code+"```\n") {
		t.Error("README.md shows another program: copy what follows the imports of main.go into it")
	}
}

// start runs a server on a node. What is returned closes it properly.
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

// Callers reach whoever owns a user. What was said goes with the user when a server is
// stopped; when one is killed it is gone, and another server takes over.
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
		say := func(text string) {
			t.Helper()
			if status, body := do(t, client, http.MethodPut, text); status != http.StatusOK {
				t.Fatal(status, body)
			}
		}
		wants := func(when, want string) {
			t.Helper()
			if status, body := do(t, client, http.MethodGet, ""); status != http.StatusOK || body != want {
				t.Errorf("%s: %d %q, want %q", when, status, body, want)
			}
		}
		say("at home")
		wants("at first", "at home")
		if status, _ := do(t, client, http.MethodPut, strings.Repeat("x", 1001)); status != http.StatusRequestEntityTooLarge {
			t.Errorf("a status that is too long: %d", status)
		}
		first, _ := c.Owner(leasehold.KeyOf("alice"))
		if err := leave[first](t.Context()); err != nil {
			t.Error(err)
		}
		wants("when its server was stopped", "at home")
		c.Node(first).Kill()
		start(t, c.Node(first))
		c.Settle()
		second, _ := c.Owner(leasehold.KeyOf("alice"))
		c.Node(second).Kill()
		wants("when its server was killed", "")
		say("at work")
		wants("after that", "at work")
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
