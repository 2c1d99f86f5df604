//go:build unix

package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/leasehttp"
)

// usualLease is how long leases last unless the namespace says otherwise.
const usualLease = 10 * time.Second

// TestOutageLosesNothing: all managers are killed for longer than leases last. No server
// dies, so that nothing may be lost: every key has its newest value when a manager leads
// again, and no lookup reports a loss (I11).
func TestOutageLosesNothing(t *testing.T) {
	t.Parallel()
	const (
		ns      = "outage"
		servers = 5
		keys    = 2000
		outage  = 30 * time.Second
	)
	g := startThree(t, "--ttl="+leaderTTL.String())
	g.createNamespace(t, ns, usualLease)
	var names []string
	for i := range servers {
		names = append(names, fmt.Sprint("s", i+1))
		g.startHTTPServer(t, ns, names[i])
	}
	g.settled(t, ns, names...)
	calls := g.open(t, ns, usualLease) // so that contact is lost: that is no loss
	users := newUsers(t, calls)
	for _, version := range []string{"old", "new"} {
		users.each(keys, func(name string) error { return users.put(name, version+name) })
	}

	end := g.killAll()
	refused := users.until(t, end.Add(outage))
	if refused != leasehttp.RefusedSuspended {
		t.Errorf("at the end of the outage servers answer %q", refused)
	}
	g.startAll(t)
	g.leader(t)
	leads := time.Now()
	first := make(map[string]time.Duration) // by server
	var mu sync.Mutex
	users.each(keys, func(name string) error {
		text, by, err := users.get(name)
		if err == nil && text != "new"+name {
			err = fmt.Errorf("%s is %q after the outage", name, text)
		}
		mu.Lock()
		defer mu.Unlock()
		if _, known := first[by]; !known && err == nil {
			first[by] = time.Since(leads)
		}
		return err
	})
	t.Logf("%d keys read %v after a manager said that it leads; the first of each server: %v", keys, time.Since(leads), first)
	for by, after := range first {
		if after > 3*time.Second {
			t.Errorf("%s serves %v after a manager leads, want 3 s", by, after)
		}
	}
	if len(first) != servers {
		t.Errorf("%d servers have answered: %v", len(first), first)
	}
	eventually(t, "the lookup knows that its table is complete", func() error { return calls.younger(2 * time.Second) })
	if told := calls.told(); len(told) > 0 {
		t.Errorf("the lookup reported losses: %v", told)
	}
}

// TestPresenceSurvivesItsManagers is the walk of the README, with what may happen to a
// small deployment: its only manager is killed, and started again when leases have run out.
func TestPresenceSurvivesItsManagers(t *testing.T) {
	t.Parallel()
	for _, managers := range []int{1, 3} {
		t.Run(fmt.Sprint(managers, " managers"), func(t *testing.T) {
			t.Parallel()
			start := startLone
			if managers == 3 {
				start = startThree
			}
			const ns = "presence"
			g := start(t, "--ttl="+leaderTTL.String())
			g.createNamespace(t, ns, usualLease)
			var servers []string
			for range 2 {
				addr := freeAddr(t)
				servers = append(servers, addr)
				launch{program: presenceProgram, args: []string{addr, strings.Join(g.addrs(), ",")}, log: filepath.Join(t.TempDir(), "presence.log")}.start(t)
			}
			g.settled(t, ns, servers...)
			gateway := "http://" + g.startGateway(t, ns, "--key=path:2").addr
			eventually(t, "a status is set", func() error {
				status, _, text, err := askHTTP(t, http.MethodPut, gateway+"/status/alice", "at home")
				if err == nil && status != http.StatusOK {
					err = errors.New(text)
				}
				return err
			})
			users := newUsers(t, g.open(t, ns, usualLease))
			users.path = "/status/"
			end := g.killAll()
			users.until(t, end.Add(20*time.Second))
			g.startAll(t)
			eventually(t, "the status is read", func() error {
				status, _, text, err := askHTTP(t, http.MethodGet, gateway+"/status/alice", "")
				if err == nil && status != http.StatusOK {
					return errors.New(text)
				}
				if err == nil && text != "at home" {
					t.Fatalf("alice's status is %q", text)
				}
				return err
			})
		})
	}
}

// killAll kills all managers, and returns when.
func (g *group) killAll() time.Time {
	for _, m := range g.managers {
		m.kill()
	}
	return time.Now()
}

func (g *group) startAll(t *testing.T) {
	t.Helper()
	for _, m := range g.managers {
		m.start(t)
	}
}

// users asks servers for what they keep, over HTTP.
type users struct {
	t      *testing.T
	client *http.Client
	calls  *caller
	path   string
}

func newUsers(t *testing.T, calls *caller) *users {
	t.Helper()
	transport, err := leasehttp.NewTransport(leasehttp.TransportConfig{Lookup: calls.Lookup, Key: userKey})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &users{t, &http.Client{Transport: transport}, calls, "/users/"}
}

// each does something for each of n users, some at a time, and fails the test if that fails.
func (u *users) each(n int, do func(name string) error) {
	u.t.Helper()
	var next atomic.Int64
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			for i := next.Add(1); int(i) <= n; i = next.Add(1) {
				if err := do(fmt.Sprint("user-", i)); err != nil {
					u.t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if u.t.Failed() {
		u.t.FailNow()
	}
}

func (u *users) put(name, text string) error {
	_, _, err := u.ask(http.MethodPut, name, text)
	return err
}

func (u *users) get(name string) (text, by string, err error) {
	return u.ask(http.MethodGet, name, "")
}

func (u *users) ask(method, name, body string) (text, by string, err error) {
	ctx, cancel := context.WithTimeout(u.t.Context(), patience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, "http://service"+u.path+name, strings.NewReader(body))
	if err != nil {
		return "", "", err
	}
	answer, err := u.client.Do(r)
	if err != nil {
		return "", "", err
	}
	defer answer.Body.Close() //nolint:errcheck // it was read
	content, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s %s: %s %s", method, name, answer.Status, content)
	}
	return string(content), answer.Header.Get(servedBy), err
}

// until asks the server of a user, and no other, again and again until then, and returns how
// it refuses in the end.
func (u *users) until(t *testing.T, then time.Time) (refused string) {
	t.Helper()
	const name = "user-1"
	addr, ok := u.calls.Find(leasehold.KeyOf(name))
	if !ok {
		t.Fatal("nobody owns the user")
	}
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	client := http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	for time.Now().Before(then) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+addr+u.path+name, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close() // what it says is in the header
		refused = answer.Header.Get(leasehttp.HeaderRefused)
		<-again.C
	}
	return refused
}
