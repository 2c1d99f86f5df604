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

// A gateway is a process of "leasehold gateway".
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

// url is the URL of a user's note.
func (w *gateway) url(user string) string { return "http://" + w.addr + "/users/" + user }

// put stores a user's note, and returns the server that stored it.
func (w *gateway) put(t *testing.T, user, note string) (by string, err error) {
	t.Helper()
	status, by, text, err := askHTTP(t, http.MethodPut, w.url(user), note)
	if err == nil && (status != http.StatusOK || text != note) {
		err = fmt.Errorf("%d %s", status, text)
	}
	return by, err
}

// someUsers returns enough users that each of two servers owns some.
func someUsers() []string {
	var names []string
	for i := range 16 {
		names = append(names, fmt.Sprint("user", i))
	}
	return names
}

// TestGateway: requests reach the owner of their key, and the next owner if it is killed.
// A WebSocket stays open until its server ends.
func TestGateway(t *testing.T) {
	t.Parallel()
	const ns = "gateway"
	g := startLone(t)
	g.createNamespace(t, ns, lostLease)
	servers := map[string]*process{"ann": g.startHTTPServer(t, ns, "ann"), "bob": g.startHTTPServer(t, ns, "bob")}
	g.waitForAssignment(t, ns, "ann", "bob")
	w := g.startGateway(t, ns, "--key=path:2")
	calls := g.open(t, ns, eventTimeout)

	result := make(map[string]string) // server to one of its users
	for _, user := range someUsers() {
		by, err := w.put(t, user, "note of "+user)
		if err != nil {
			t.Fatal(err)
		}
		if p, _ := calls.At(leasehold.KeyOf(user)); string(p.Owner) != by {
			t.Errorf("%s was served by %s, its owner is %s", user, by, p.Owner)
		}
		result[by] = user
	}
	if len(result) != 2 {
		t.Fatalf("one server owns all users: %v", result)
	}
	curlGets(t, w.url("user1"), "note of user1")

	victim, kept := result["ann"], result["bob"]
	line := openLine(t, w, kept)
	servers["ann"].kill()
	began := time.Now()
	if _, by, note, err := askHTTP(t, http.MethodGet, w.url(victim), ""); by != "bob" || note != "" || err != nil {
		t.Errorf("after the owner was killed: %q by %q, %v", note, by, err)
	}
	t.Logf("a request was answered %v after its server was killed; the lease is %v", time.Since(began), lostLease)
	if _, by, note, err := askHTTP(t, http.MethodGet, w.url(kept), ""); by != "bob" || note != "note of "+kept || err != nil {
		t.Errorf("a note of the other server: %q by %q, %v", note, by, err)
	}
	echoOn(t, line, "still there")

	servers["bob"].kill()
	if _, _, err := line.Read(t.Context()); err == nil {
		t.Error("the WebSocket to a killed server is open")
	}
	_ = line.CloseNow()
}

// TestGatewayStops: a gateway that is terminated accepts no new requests, and finishes those
// in progress.
func TestGatewayStops(t *testing.T) {
	t.Parallel()
	const ns = "stops"
	g := startLone(t)
	g.createNamespace(t, ns, keptLease)
	g.startHTTPServer(t, ns, "ann")
	g.waitForAssignment(t, ns, "ann")
	w := g.startGateway(t, ns, "--key=path:2", "--drain="+eventTimeout.String())
	line := openLine(t, w, "alice")
	echoOn(t, line, "hello")
	w.signal(t, syscall.SIGTERM)
	eventually(t, "new requests are refused", func() error {
		if _, _, _, err := askHTTP(t, http.MethodGet, w.url("alice"), ""); err == nil {
			return errNotYet
		}
		return nil
	})
	if status, _, text, err := askHTTP(t, http.MethodGet, "http://"+w.health+"/readyz", ""); status != http.StatusServiceUnavailable {
		t.Errorf("/readyz while it drains: %d %s %v", status, text, err)
	}
	echoOn(t, line, "still there")
	if err := line.Close(websocket.StatusNormalClosure, ""); err != nil {
		t.Error(err)
	}
	if status := w.exit(t); status != 0 {
		t.Errorf("exit status %d", status)
	}
}

// TestGatewayWithoutManagers: a gateway forwards while no manager runs, and does not wait for
// a namespace that does not exist.
func TestGatewayWithoutManagers(t *testing.T) {
	t.Parallel()
	const ns = "managerless"
	g := startLone(t)
	g.createNamespace(t, ns, time.Minute)
	g.startHTTPServer(t, ns, "ann")
	g.waitForAssignment(t, ns, "ann")
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

// curlGets sends a request with curl, if it is installed.
func curlGets(t *testing.T, url, want string) {
	t.Helper()
	program, err := exec.LookPath("curl")
	if err != nil {
		t.Log("curl is not installed")
		return
	}
	out, err := exec.Command(program, "--silent", "--show-error", "--max-time", "45", url).CombinedOutput()
	if string(out) != want || err != nil {
		t.Errorf("curl %s: %q, %v; want %q", url, out, err, want)
	}
}

// openLine opens a WebSocket to a user's echo.
func openLine(t *testing.T, w *gateway, user string) *websocket.Conn {
	t.Helper()
	line, _, err := websocket.Dial(t.Context(), w.url(user)+"/echo", nil) //nolint:bodyclose // closed with the WebSocket
	if err != nil {
		t.Fatal(err)
	}
	return line
}

func echoOn(t *testing.T, line *websocket.Conn, text string) {
	t.Helper()
	if err := line.Write(t.Context(), websocket.MessageText, []byte(text)); err != nil {
		t.Fatal(err)
	}
	if _, got, err := line.Read(t.Context()); string(got) != text {
		t.Errorf("sent %q, received %q, %v", text, got, err)
	}
}
