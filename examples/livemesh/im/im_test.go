package im_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/examples/livemesh/im"
	"github.com/leasehold-dev/leasehold/examples/livemesh/jsonhttp"
	"github.com/leasehold-dev/leasehold/examples/livemesh/meshtest"
	"github.com/leasehold-dev/leasehold/leaseholdtest"
	"github.com/leasehold-dev/leasehold/leasemap"
)

// serve runs a server of presence on a node.
func serve(t *testing.T, n *leaseholdtest.Node, cfg im.Config) func(context.Context) error {
	t.Helper()
	s, err := im.Join(t.Context(), n.MovingConfig(), cfg)
	return meshtest.Serve(t, n, s, err)
}

func client(t *testing.T, c *leaseholdtest.Cluster, n *leaseholdtest.Node) *im.Client {
	t.Helper()
	return &im.Client{Client: meshtest.Client(t, c, n)}
}

// alone runs a test with one server.
func alone(t *testing.T, cfg im.Config, test func(t *testing.T, c *leaseholdtest.Cluster, api *im.Client)) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		serve(t, c.Node("a"), cfg)
		c.Settle()
		test(t, c, client(t, c, c.Node("caller")))
	})
}

func signOn(session, status string) im.SignOn {
	return im.SignOn{Session: session, Address: "sip:alice@example.com", Status: status, IP: "10.0.0.1"}
}

// TestSessions: a user has one session at a time. The same one may sign on again; another takes
// over only with the current version.
func TestSessions(t *testing.T) {
	alone(t, im.Config{}, func(t *testing.T, _ *leaseholdtest.Cluster, api *im.Client) {
		ctx := t.Context()
		if _, err := api.Get(ctx, "alice"); !errors.Is(err, leasehold.ErrNotFound) {
			t.Errorf("an absent user: %v", err)
		}
		first, err := api.SignOn(ctx, "alice", signOn("home", "online"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := api.SignOn(ctx, "alice", signOn("home", "online")); err != nil {
			t.Errorf("the same session again: %v", err)
		}
		if _, err := api.SignOn(ctx, "alice", signOn("work", "online")); !errors.Is(err, leasehold.ErrExists) {
			t.Errorf("another session: %v", err)
		}
		stale := signOn("work", "online")
		stale.If = first.Version
		if _, err := api.SignOn(ctx, "alice", stale); !errors.Is(err, leasehold.ErrStale) {
			t.Errorf("another session with an old version: %v", err)
		}
		away := "away"
		if _, err := api.Change(ctx, "alice", im.Change{Session: "work", Status: &away}); !errors.Is(err, leasehold.ErrExists) {
			t.Errorf("a change by another session: %v", err)
		}
		if err := api.Refresh(ctx, "alice", "work"); !errors.Is(err, leasehold.ErrExists) {
			t.Errorf("a refresh by another session: %v", err)
		}
		if err := api.SignOff(ctx, "alice", "work"); !errors.Is(err, leasehold.ErrExists) {
			t.Errorf("signed off by another session: %v", err)
		}
		want := im.Presence{Address: "sip:alice@example.com", Status: "away", IP: "10.0.0.1"}
		got, err := api.Change(ctx, "alice", im.Change{Session: "home", Status: &away})
		if diff := cmp.Diff(want, plain(got)); err != nil || diff != "" {
			t.Errorf("changed, %v: %s", err, diff)
		}
		over := signOn("work", "online")
		over.If = got.Version
		for range 2 { // idempotent
			if _, err := api.SignOn(ctx, "alice", over); err != nil {
				t.Errorf("taking over: %v", err)
			}
		}
		if err := api.SignOff(ctx, "alice", "work"); err != nil {
			t.Error(err)
		}
		if _, err := api.Get(ctx, "alice"); !errors.Is(err, leasehold.ErrNotFound) {
			t.Errorf("signed off: %v", err)
		}
	})
}

func plain(p im.Presence) im.Presence {
	p.Version = leasemap.Version{}
	return p
}

func TestExpires(t *testing.T) {
	alone(t, im.Config{}, func(t *testing.T, c *leaseholdtest.Cluster, api *im.Client) {
		ctx := t.Context()
		for _, user := range []string{"refreshed", "forgotten"} {
			if _, err := api.SignOn(ctx, user, signOn("home", "online")); err != nil {
				t.Fatal(err)
			}
		}
		c.Advance(10 * time.Minute)
		was, err := api.Get(ctx, "refreshed")
		if err != nil {
			t.Error(err)
		}
		if err := api.Refresh(ctx, "refreshed", "home"); err != nil {
			t.Error(err)
		}
		c.Advance(10 * time.Minute)
		if is, err := api.Get(ctx, "refreshed"); err != nil || is != was {
			t.Errorf("refreshed: %v, was %v, %v", is, was, err)
		}
		if err := api.Refresh(ctx, "forgotten", "home"); !errors.Is(err, leasehold.ErrNotFound) {
			t.Errorf("refreshing an expired user: %v", err)
		}
	})
}

// TestStatuses: every kind of invalid input has its status, and changes nothing.
func TestStatuses(t *testing.T) {
	alone(t, im.Config{}, func(t *testing.T, _ *leaseholdtest.Cluster, api *im.Client) {
		const body = `{"session": "home", "address": "sip:a", "status": "online", "ip": "2001:db8::1"}`
		with := func(old, replacement string) string { return strings.Replace(body, old, replacement, 1) }
		long := strings.Repeat("x", im.MaxField+1)
		meshtest.Check(t, api.HTTP, api.URL, []meshtest.Case{
			{What: "sign on", Method: "PUT", Path: "/im/a", Body: body, Status: 200, Has: `"version"`},
			{What: "an absent user", Method: "GET", Path: "/im/none", Status: 404, Has: "sign on"},
			{What: "change an absent user", Method: "PATCH", Path: "/im/none", Body: body, Status: 404},
			{What: "refresh an absent user", Method: "POST", Path: "/im/none/refresh?session=home", Status: 404},
			{What: "sign off an absent user", Method: "DELETE", Path: "/im/none?session=home", Status: 204},
			{What: "not JSON", Method: "PUT", Path: "/im/a", Body: "{", Status: 400},
			{What: "not a presence", Method: "PATCH", Path: "/im/a", Body: "[]", Status: 400},
			{What: "a misspelled presence", Method: "PATCH", Path: "/im/a", Body: `{"session": "home", "status": "x", "iff": "9.9"}`, Status: 400, Has: "iff"},
			{What: "a number", Method: "PATCH", Path: "/im/a", Body: `{"session": "home", "status": 1}`, Status: 400, Has: "status cannot be a JSON number"},
			{What: "no session", Method: "PUT", Path: "/im/a", Body: with("home", ""), Status: 400, Has: "session"},
			{What: "refresh without session", Method: "POST", Path: "/im/a/refresh", Status: 400, Has: "session"},
			{What: "sign off without session", Method: "DELETE", Path: "/im/a", Status: 400, Has: "session"},
			{What: "no status", Method: "PUT", Path: "/im/a", Body: with("online", ""), Status: 400, Has: "status"},
			{What: "no IP address", Method: "PUT", Path: "/im/a", Body: with("2001:db8::1", "here"), Status: 400, Has: "ip"},
			{What: "nothing to change", Method: "PATCH", Path: "/im/a", Body: `{"session": "home"}`, Status: 400},
			{What: "not a version", Method: "PATCH", Path: "/im/a", Body: `{"session": "home", "status": "x", "if": "one"}`, Status: 400},
			{What: "another version", Method: "PATCH", Path: "/im/a", Body: `{"session": "home", "status": "x", "if": "9.9"}`, Status: 412},
			{What: "another session", Method: "PUT", Path: "/im/a", Body: with("home", "work"), Status: 409},
			{What: "a long status", Method: "PUT", Path: "/im/a", Body: with("online", long), Status: 413, Has: "status"},
			{What: "a long session", Method: "DELETE", Path: "/im/a?session=" + long, Status: 413, Has: "session"},
			{What: "far too long", Method: "PUT", Path: "/im/a", Body: body + strings.Repeat(" ", 1<<16), Status: 413},
			{What: "a long name", Method: "PUT", Path: "/im/" + strings.Repeat("n", jsonhttp.MaxName+1), Body: body, Status: 400},
			{What: "unchanged", Method: "GET", Path: "/im/a", Status: 200, Has: `"status":"online"`},
		})
	})
}

// TestAnnounces: changes are announced in order, without delaying requests.
func TestAnnounces(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		announced := make(chan string, 100)
		stuck := make(chan struct{})
		serve(t, c.Node("a"), im.Config{Announce: func(ctx context.Context, user, text string) error {
			select {
			case <-stuck:
				announced <- user + " " + text
				return errors.New("ignored")
			case <-ctx.Done():
				return ctx.Err()
			}
		}})
		c.Settle()
		api, ctx := client(t, c, c.Node("caller")), t.Context()
		lost := signOn("home", "online")
		lost.Known = "online"
		away, ip := "away", "10.0.0.2"
		began := time.Now()
		for what, do := range []func() error{
			func() error { _, err := api.SignOn(ctx, "alice", signOn("home", "online")); return err },
			func() error { _, err := api.SignOn(ctx, "alice", signOn("home", "online")); return err },
			func() error { _, err := api.Change(ctx, "alice", im.Change{Session: "home", IP: &ip}); return err },
			func() error {
				_, err := api.Change(ctx, "alice", im.Change{Session: "home", Status: &away})
				return err
			},
			func() error { return api.SignOff(ctx, "alice", "home") },
			func() error { return api.SignOff(ctx, "alice", "home") },
			func() error { _, err := api.SignOn(ctx, "alice", lost); return err },
		} {
			if err := do(); err != nil {
				t.Errorf("%d: %v", what, err)
			}
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("requests took %v while announcements were blocked", took)
		}
		close(stuck)
		synctest.Wait()
		var got []string
		for len(announced) > 0 {
			got = append(got, <-announced)
		}
		want := []string{"alice is now online", "alice is now away", "alice is now offline"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
}
