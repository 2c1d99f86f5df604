//go:build unix

package e2e

import (
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/leasehold-dev/leasehold"
)

// A gateway is a process that forwards.
type gateway struct {
	*process
	addr, health string
}

// startGateway starts a gateway and waits until it forwards.
func (g *group) startGateway(t *testing.T, ns string, flags ...string) *gateway {
	t.Helper()
	w := &gateway{addr: freeAddr(t), health: freeAddr(t)}
	w.process = launch{
		program: leaseholdProgram,
		args: append([]string{
			"gateway", "--managers=" + strings.Join(g.addrs(), ","), "--namespace=" + ns,
			"--listen=" + w.addr, "--health-listen=" + w.health,
		}, flags...),
		log: filepath.Join(t.TempDir(), "gateway.log"),
	}.start(t)
	eventually(t, "the gateway is ready", func() error {
		status, _, text, err := askHTTP(t, http.MethodGet, "http://"+w.health+"/readyz", "")
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("%d %s", status, text)
		}
		return err
	})
	return w
}

// url is that of a user's note.
func (w *gateway) url(user string) string { return "http://" + w.addr + "/users/" + user }

// put has a user's note kept, and returns who keeps it.
func (w *gateway) put(t *testing.T, user, note string) (by string, err error) {
	t.Helper()
	status, by, text, err := askHTTP(t, http.MethodPut, w.url(user), note)
	if err == nil && (status != http.StatusOK || text != note) {
		err = fmt.Errorf("%d %s", status, text)
	}
	return by, err
}

// someUsers are enough that each of two servers has some.
func someUsers() []string {
	var names []string
	for i := range 16 {
		names = append(names, fmt.Sprint("user", i))
	}
	return names
}

// TestGateway: requests reach the owner of their key, and when it is killed, the next
// one. A WebSocket stays open as long as its server.
func TestGateway(t *testing.T) {
	t.Parallel()
	const ns = "gateway"
	g := startLone(t)
	g.createNamespace(t, ns, lostLease)
	servers := map[string]*process{"ann": g.startHTTPServer(t, ns, "ann"), "bob": g.startHTTPServer(t, ns, "bob")}
	g.settled(t, ns, "ann", "bob")
	w := g.startGateway(t, ns, "--key=path:2")
	calls := g.open(t, ns, patience)

	seen := make(map[string]string) // server to one of its users
	for _, user := range someUsers() {
		by, err := w.put(t, user, "note of "+user)
		if err != nil {
			t.Fatal(err)
		}
		if p, _ := calls.At(leasehold.KeyOf(user)); string(p.Owner) != by {
			t.Errorf("%s was served by %s, and is %s's", user, by, p.Owner)
		}
		seen[by] = user
	}
	if len(seen) != 2 {
		t.Fatalf("one server has all users: %v", seen)
	}
	curlGets(t, w.url("user1"), "note of user1")

	victim, kept := seen["ann"], seen["bob"]
	line := openLine(t, w, kept)
	servers["ann"].kill()
	began := time.Now()
	if _, by, note, err := askHTTP(t, http.MethodGet, w.url(victim), ""); by != "bob" || note != "" || err != nil {
		t.Errorf("after its server was killed: %q by %q, %v", note, by, err)
	}
	t.Logf("a request was answered %v after its server was killed; the lease is %v", time.Since(began), lostLease)
	if _, by, note, err := askHTTP(t, http.MethodGet, w.url(kept), ""); by != "bob" || note != "note of "+kept || err != nil {
		t.Errorf("what the other has: %q by %q, %v", note, by, err)
	}
	sayOn(t, line, "still there")

	servers["bob"].kill()
	if _, _, err := line.Read(t.Context()); err == nil {
		t.Error("the line to a server that is gone is open")
	}
	_ = line.CloseNow()
}

// TestGatewayStops: it takes no more requests, and lets those under way go on.
func TestGatewayStops(t *testing.T) {
	t.Parallel()
	const ns = "stops"
	g := startLone(t)
	g.createNamespace(t, ns, keptLease)
	g.startHTTPServer(t, ns, "ann")
	g.settled(t, ns, "ann")
	w := g.startGateway(t, ns, "--key=path:2", "--drain="+patience.String())
	line := openLine(t, w, "alice")
	sayOn(t, line, "hello")
	w.signal(t, syscall.SIGTERM)
	eventually(t, "it takes no more requests", func() error {
		if _, _, _, err := askHTTP(t, http.MethodGet, w.url("alice"), ""); err == nil {
			return errNotYet
		}
		return nil
	})
	if status, _, text, err := askHTTP(t, http.MethodGet, "http://"+w.health+"/readyz", ""); status != http.StatusServiceUnavailable {
		t.Errorf("it says it is ready: %d %s %v", status, text, err)
	}
	sayOn(t, line, "still there")
	if err := line.Close(websocket.StatusNormalClosure, ""); err != nil {
		t.Error(err)
	}
	if status := w.exit(t); status != 0 {
		t.Errorf("it ended with status %d", status)
	}
}

// TestGatewayWithoutManagers: it waits for a manager when it starts, goes on when all of
// them are gone, and does not take a namespace that is not there for one to wait for.
func TestGatewayWithoutManagers(t *testing.T) {
	t.Parallel()
	const ns = "managerless"
	g := startLone(t)
	g.createNamespace(t, ns, time.Minute)
	g.startHTTPServer(t, ns, "ann")
	g.settled(t, ns, "ann")
	w := g.startGateway(t, ns, "--key=path:2")
	g.managers[0].kill()
	if by, err := w.put(t, "alice", "note"); by != "ann" || err != nil {
		t.Errorf("without a manager: %q, %v", by, err)
	}
	g.managers[0].start(t)
	status, stdout, stderr := run(t, "gateway", "--managers="+g.addrs()[0], "--namespace=nosuch", "--key=path:2",
		"--listen="+freeAddr(t), "--health-listen=")
	if status != 2 || stdout != "" || strings.Count(stderr, "leasehold namespace create nosuch") != 1 {
		t.Errorf("status %d: %s%s", status, stdout, stderr)
	}
}

// curlGets asks as people do, if they have it.
func curlGets(t *testing.T, url, want string) {
	t.Helper()
	program, err := exec.LookPath("curl")
	if err != nil {
		t.Log("no curl on this computer")
		return
	}
	out, err := exec.Command(program, "--silent", "--show-error", "--max-time", "45", url).CombinedOutput()
	if string(out) != want || err != nil {
		t.Errorf("curl %s: %q, %v; want %q", url, out, err, want)
	}
}

// openLine opens a line to a user's echo.
func openLine(t *testing.T, w *gateway, user string) *websocket.Conn {
	t.Helper()
	line, _, err := websocket.Dial(t.Context(), w.url(user)+"/echo", nil) //nolint:bodyclose // the line has it
	if err != nil {
		t.Fatal(err)
	}
	return line
}

func sayOn(t *testing.T, line *websocket.Conn, text string) {
	t.Helper()
	if err := line.Write(t.Context(), websocket.MessageText, []byte(text)); err != nil {
		t.Fatal(err)
	}
	if _, got, err := line.Read(t.Context()); string(got) != text {
		t.Errorf("said %q, heard %q, %v", text, got, err)
	}
}
