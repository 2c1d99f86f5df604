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

// usualLease is the default lease time.
const usualLease = 10 * time.Second

// TestOutageLosesNothing: all managers are down for longer than the lease time. No server
// ends, so that nothing may be lost: every key has its newest value after the outage, and no
// lookup reports a loss (I11).
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
	g.waitForAssignment(t, ns, names...)
	calls := g.open(t, ns, usualLease) // short, so that contact is lost, which is no loss
	users := newUsers(t, calls)
	for _, version := range []string{"old", "new"} {
		users.each(keys, func(name string) error { return users.put(name, version+name) })
	}

	end := g.killAll()
	refused := users.until(t, end.Add(outage))
	if refused != leasehttp.RefusedSuspended {
		t.Errorf("at the end of the outage servers refuse with %q", refused)
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
	t.Logf("%d keys read %v after a manager leads; the first of each server: %v", keys, time.Since(leads), first)
	for by, after := range first {
		if after > 3*time.Second {
			t.Errorf("%s serves %v after a manager leads, want at most 3 s", by, after)
		}
	}
	if len(first) != servers {
		t.Errorf("%d servers have responded: %v", len(first), first)
	}
	eventually(t, "the lookup's table is confirmed", func() error { return calls.maxAge(2 * time.Second) })
	if losses := calls.reportedLosses(); len(losses) > 0 {
		t.Errorf("the lookup reported losses: %v", losses)
	}
}

// TestPresenceSurvivesItsManagers follows the README: all managers are killed, and restarted
// after leases have expired. No status may be lost.
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
			g.waitForAssignment(t, ns, servers...)
			gateway := "http://" + g.startGateway(t, ns, "--key=path:2").addr
			eventually(t, "set a status", func() error {
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
			eventually(t, "read the status", func() error {
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

// killAll kills all managers, and returns the time.
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

// users is an HTTP client of the servers.
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

// each calls do for each of n users, 16 at a time, and fails the test on the first error.
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
	_, _, err := u.query(http.MethodPut, name, text)
	return err
}

func (u *users) get(name string) (text, by string, err error) {
	return u.query(http.MethodGet, name, "")
}

func (u *users) query(method, name, body string) (text, by string, err error) {
	ctx, cancel := context.WithTimeout(u.t.Context(), eventTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, "http://service"+u.path+name, strings.NewReader(body))
	if err != nil {
		return "", "", err
	}
	response, err := u.client.Do(r)
	if err != nil {
		return "", "", err
	}
	defer response.Body.Close() //nolint:errcheck // the body was read
	content, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s %s: %s %s", method, name, response.Status, content)
	}
	return string(content), response.Header.Get(servedBy), err
}

// until sends requests to the owner of a user until a time, and returns the last reason of a
// refusal.
func (u *users) until(t *testing.T, then time.Time) (refused string) {
	t.Helper()
	const name = "user-1"
	addr, ok := u.calls.Find(leasehold.KeyOf(name))
	if !ok {
		t.Fatal("the user has no owner")
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
		response, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close() // only the header is needed
		refused = response.Header.Get(leasehttp.HeaderRefused)
		<-again.C
	}
	return refused
}
