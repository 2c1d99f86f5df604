package im_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/examples/livemesh/im"
	"github.com/leasehold-dev/leasehold/examples/livemesh/jsonhttp"
	"github.com/leasehold-dev/leasehold/examples/livemesh/meshtest"
	"github.com/leasehold-dev/leasehold/leaseholdtest"
	"github.com/leasehold-dev/leasehold/leasemap"
)

// serve runs a server of presence on a node.
func serve(t *testing.T, n *leaseholdtest.Node) func(context.Context) error {
	t.Helper()
	s, err := im.Join(t.Context(), n.MovingConfig())
	return meshtest.Serve(t, n, s, err)
}

func client(t *testing.T, c *leaseholdtest.Cluster, n *leaseholdtest.Node) *im.Client {
	t.Helper()
	return &im.Client{Client: meshtest.Client(t, c, n)}
}

// alone runs a test with one server.
func alone(t *testing.T, test func(t *testing.T, c *leaseholdtest.Cluster, api *im.Client)) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		serve(t, c.Node("a"))
		c.Settle()
		test(t, c, client(t, c, c.Node("caller")))
	})
}

func presence(status string) im.Presence {
	return im.Presence{Address: "sip:alice@example.com", Status: status, IP: "10.0.0.1"}
}

// TestSessions: the last session that has published a user has it. Another one cannot renew or
// remove it.
func TestSessions(t *testing.T) {
	alone(t, func(t *testing.T, _ *leaseholdtest.Cluster, api *im.Client) {
		ctx := t.Context()
		if _, err := api.Get(ctx, "alice"); !errors.Is(err, leasehold.ErrNotFound) {
			t.Errorf("an absent user: %v", err)
		}
		first, err := api.SignOn(ctx, "alice", "home", presence("online"), false)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := api.SignOn(ctx, "alice", "home", presence("online"), true); err != nil || again != first {
			t.Errorf("renewed: %v, was %v, %v", again, first, err)
		}
		if _, err := api.SignOn(ctx, "alice", "work", presence("away"), true); !errors.Is(err, leasehold.ErrExists) {
			t.Errorf("renewed by another session: %v", err)
		}
		if err := api.SignOff(ctx, "alice", "work"); !errors.Is(err, leasehold.ErrExists) {
			t.Errorf("signed off by another session: %v", err)
		}
		if over, err := api.SignOn(ctx, "alice", "work", presence("away"), false); err != nil || over == first {
			t.Errorf("taken over: %v, was %v, %v", over, first, err)
		}
		if got, err := api.Get(ctx, "alice"); err != nil || got != presence("away") {
			t.Errorf("%+v, %v", got, err)
		}
		if err := api.SignOff(ctx, "alice", "work"); err != nil {
			t.Error(err)
		}
		if _, err := api.Get(ctx, "alice"); !errors.Is(err, leasehold.ErrNotFound) {
			t.Errorf("signed off: %v", err)
		}
	})
}

// TestExpires: a presence expires after the TTL, unless it is renewed.
func TestExpires(t *testing.T) {
	alone(t, func(t *testing.T, c *leaseholdtest.Cluster, api *im.Client) {
		ctx := t.Context()
		versions := make(map[string]leasemap.Version)
		for _, user := range []string{"renewed", "forgotten"} {
			var err error
			if versions[user], err = api.SignOn(ctx, user, "home", presence("online"), false); err != nil {
				t.Fatal(err)
			}
		}
		renew := func(user string) leasemap.Version {
			got, err := api.SignOn(ctx, user, "home", presence("online"), true)
			if err != nil {
				t.Error(err)
			}
			return got
		}
		c.Advance(10 * time.Minute)
		renew("renewed")
		c.Advance(10 * time.Minute)
		if _, err := api.Get(ctx, "forgotten"); !errors.Is(err, leasehold.ErrNotFound) {
			t.Errorf("not renewed: %v", err)
		}
		if got := renew("renewed"); got != versions["renewed"] {
			t.Errorf("renewed: %v, was %v", got, versions["renewed"])
		}
		if got := renew("forgotten"); got == versions["forgotten"] {
			t.Error("renewing an expired user did not change the version")
		}
	})
}

// TestStatuses: every kind of invalid input has its status, and changes nothing.
func TestStatuses(t *testing.T) {
	alone(t, func(t *testing.T, _ *leaseholdtest.Cluster, api *im.Client) {
		const body = `{"session": "home", "address": "sip:a", "status": "online", "ip": "2001:db8::1"}`
		with := func(old, replacement string) string { return strings.Replace(body, old, replacement, 1) }
		long := strings.Repeat("x", im.MaxField+1)
		meshtest.Check(t, api.HTTP, api.URL, []meshtest.Case{
			{What: "sign on", Method: "PUT", Path: "/im/a", Body: body, Status: 200},
			{What: "an absent user", Method: "GET", Path: "/im/none", Status: 404, Has: "absent"},
			{What: "sign off an absent user", Method: "DELETE", Path: "/im/none?session=home", Status: 204},
			{What: "not JSON", Method: "PUT", Path: "/im/a", Body: "{", Status: 400},
			{What: "not a presence", Method: "PUT", Path: "/im/a", Body: "[]", Status: 400},
			{What: "a misspelled presence", Method: "PUT", Path: "/im/a", Body: with("status", "stat"), Status: 400, Has: "stat"},
			{What: "no session", Method: "PUT", Path: "/im/a", Body: with("home", ""), Status: 400, Has: "session"},
			{What: "sign off without session", Method: "DELETE", Path: "/im/a", Status: 409},
			{What: "no status", Method: "PUT", Path: "/im/a", Body: with("online", ""), Status: 400, Has: "status"},
			{What: "no IP address", Method: "PUT", Path: "/im/a", Body: with("2001:db8::1", "here"), Status: 400, Has: "ip"},
			{What: "a long status", Method: "PUT", Path: "/im/a", Body: with("online", long), Status: 400, Has: "status"},
			{What: "far too long", Method: "PUT", Path: "/im/a", Body: body + strings.Repeat(" ", 1<<16), Status: 413},
			{What: "a long name", Method: "PUT", Path: "/im/" + strings.Repeat("n", jsonhttp.MaxName+1), Body: body, Status: 400},
			{What: "unchanged", Method: "GET", Path: "/im/a", Status: 200, Has: `"status":"online"`},
		})
	})
}
