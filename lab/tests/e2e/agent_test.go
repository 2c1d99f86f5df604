//go:build unix

package e2e

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/server/proc"
)

// A language has a client of the agent and an example in a directory of examples/agent.
type language struct {
	name        string
	interpreter string
	version     string   // a program that exits with status 0 if the version is supported
	example     string   // a file
	test        []string // runs the tests of the client
}

// languages returns all of them. A test is skipped if its interpreter is missing.
func languages() []language {
	return []language{
		{
			"python", "python3", "import sys; sys.exit(sys.version_info < (3, 9))", "kv.py",
			[]string{"test_leasehold.py"},
		},
		{
			"javascript", "node", "process.exit(Number(parseInt(process.versions.node) < 18))", "kv.mjs",
			[]string{"--test"},
		},
	}
}

// inEveryLanguage runs a test for each installed language.
func inEveryLanguage(t *testing.T, test func(t *testing.T, l language)) {
	t.Parallel()
	for _, l := range languages() {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			flag := map[string]string{"python3": "-c", "node": "-e"}[l.interpreter]
			if out, err := exec.CommandContext(t.Context(), l.interpreter, flag, l.version).CombinedOutput(); err != nil {
				t.Skipf("NOT TESTED: the agent's client in %s, because %s is missing or too old: %v %s", l.name, l.interpreter, err, out)
			}
			test(t, l)
		})
	}
}

func (l language) dir(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join("..", "..", "..", "examples", "agent", l.name))
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestAgentClients runs the clients' unit tests.
func TestAgentClients(t *testing.T) {
	inEveryLanguage(t, func(t *testing.T, l language) {
		cmd := exec.CommandContext(t.Context(), l.interpreter, l.test...)
		cmd.Dir = l.dir(t)
		cmd.Env = append(proc.Environment(), "PYTHONDONTWRITEBYTECODE=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v: %v\n%s", cmd, err, out)
		}
	})
}

// agentNamespace is the namespace of the examples.
const agentNamespace = "kv"

// An agentProcess is "leasehold agent", which can be killed and started again.
type agentProcess struct {
	*process
	listen string // the --listen flag
	url    string // for programs
	group  *group
	log    string
}

// startAgent starts an agent on loopback.
func (g *group) startAgent(t *testing.T) *agentProcess {
	t.Helper()
	a := &agentProcess{listen: freeAddr(t), group: g, log: filepath.Join(t.TempDir(), "agent.log")}
	a.url = "http://" + a.listen
	a.start(t)
	return a
}

// startSocketAgent starts an agent on a Unix socket.
func (g *group) startSocketAgent(t *testing.T) *agentProcess {
	t.Helper()
	dir, err := os.MkdirTemp("", "agent") // t.TempDir is too long for a socket on some systems
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	a := &agentProcess{listen: "unix:" + filepath.Join(dir, "s"), group: g, log: filepath.Join(t.TempDir(), "agent.log")}
	a.url = a.listen
	a.start(t)
	return a
}

// start returns when the agent listens.
func (a *agentProcess) start(t *testing.T) {
	t.Helper()
	a.process = launch{
		program: leaseholdProgram, log: a.log,
		args: []string{"agent", "--listen", a.listen, "--managers", strings.Join(a.group.addrs(), ",")},
	}.start(t)
	eventually(t, "the agent listens", func() error {
		network, addr := "tcp", a.listen
		if path, ok := strings.CutPrefix(a.listen, "unix:"); ok {
			network, addr = "unix", path
		}
		conn, err := net.Dial(network, addr)
		if err != nil {
			return err
		}
		return conn.Close()
	})
}

// start starts the example with an agent.
func (l language) start(t *testing.T, a *agentProcess, args ...string) *process {
	t.Helper()
	return launch{
		program: l.interpreter, args: append([]string{l.example}, args...), dir: l.dir(t),
		env: []string{"AGENT=" + a.url, "NAMESPACE=" + agentNamespace, "PYTHONDONTWRITEBYTECODE=1"},
		log: filepath.Join(t.TempDir(), strings.Join(args[:1], "")+".log"),
	}.start(t)
}

// run runs the example to its end, and returns its output.
func (l language) run(t *testing.T, a *agentProcess, args ...string) string {
	t.Helper()
	p := l.start(t, a, args...)
	if status := p.exit(t); status != 0 {
		t.Fatalf("%s %v exited with status %d: %s", l.example, args, status, p.output(t))
	}
	return strings.TrimSpace(p.output(t))
}

// serve starts a server, and waits until it has joined.
func (l language) serve(t *testing.T, a *agentProcess, addr string) *process {
	t.Helper()
	p := l.start(t, a, "serve", addr)
	eventually(t, "the server has joined", func() error {
		if !strings.Contains(p.output(t), "serving "+addr) {
			return errNotYet
		}
		return nil
	})
	return p
}

// TestAgentExamples: two servers in another language, each with its own agent. Servers
// and agents are killed and restarted, or terminated. During the whole test both servers
// receive requests for all keys: no request may be executed under a generation lower than
// that of an earlier one. Callers find the remaining owner, and receive the losses.
func TestAgentExamples(t *testing.T) {
	inEveryLanguage(t, func(t *testing.T, l language) {
		g := startLone(t)
		g.createNamespace(t, agentNamespace, lostLease)
		first, second := g.startAgent(t), g.startSocketAgent(t)
		a, b := freeAddr(t), freeAddr(t)
		serverA, serverB := l.serve(t, first, a), l.serve(t, second, b)
		w := startDualWriters(t, a, b)
		losses := l.start(t, second, "losses")

		w.waitForServers(t, "both servers own keys", a, b)
		if got := l.run(t, second, "put", "colour", "green"); !strings.HasPrefix(got, "colour = green (at ") {
			t.Errorf("put prints %q", got)
		}
		if got := l.run(t, first, "get", "colour"); !strings.HasPrefix(got, "colour = green (at ") {
			t.Errorf("get prints %q", got)
		}

		serverA.kill()
		began := time.Now()
		w.waitForServers(t, "a server was killed: the other owns its keys", b)
		t.Logf("the other server owned all keys %v after one was killed; the lease is %v", time.Since(began), lostLease)
		if got := l.run(t, first, "put", "colour", "red"); got != fmt.Sprintf("colour = red (at %s)", b) {
			t.Errorf("put prints %q", got)
		}
		waitForLoss(t, losses, a, "left")

		serverA = l.serve(t, first, a)
		w.waitForServers(t, "the server is back", a, b)
		first.kill()
		began = time.Now()
		w.waitForServers(t, "an agent was killed: the other server owns all keys", b)
		t.Logf("the other server owned all keys %v after an agent was killed; the lease is %v", time.Since(began), lostLease)
		waitForLoss(t, losses, a, "expired")
		if !serverA.Alive() {
			t.Error("the server ended with its agent")
		}

		first.start(t)
		w.waitForServers(t, "the agent is back, and its server owns keys", a, b)
		serverA.signal(t, syscall.SIGTERM)
		if status := serverA.exit(t); status != 0 {
			t.Errorf("SIGTERM to a server: exit status %d", status)
		}
		w.waitForServers(t, "a server left", b)
		second.signal(t, syscall.SIGTERM)
		if status := second.exit(t); status != 0 {
			t.Errorf("SIGTERM to an agent: exit status %d", status)
		}
		w.waitForServers(t, "the agent of the last server stopped")
		w.check(t)
		serverB.signal(t, syscall.SIGTERM)
		if status := serverB.exit(t); status != 0 {
			t.Errorf("SIGTERM to a server without an agent: exit status %d", status)
		}
	})
}

// TestAgentExamplesInterrupted: SIGINT makes a server release its leases and exit without
// an error message, and ends a waiting caller.
func TestAgentExamplesInterrupted(t *testing.T) {
	inEveryLanguage(t, func(t *testing.T, l language) {
		g := startLone(t)
		g.createNamespace(t, agentNamespace, lostLease)
		agent := g.startAgent(t)
		addr := freeAddr(t)
		server := l.serve(t, agent, addr)
		losses := l.start(t, agent, "losses")
		if got, want := l.run(t, agent, "put", "colour", "green"), fmt.Sprintf("colour = green (at %s)", addr); got != want {
			t.Errorf("put prints %q, want %q", got, want)
		}
		server.signal(t, syscall.SIGINT)
		if status := server.exit(t); status != 0 {
			t.Errorf("SIGINT to a server: exit status %d", status)
		}
		if output := server.output(t); output != "serving "+addr+"\n" {
			t.Errorf("the server printed %q", output)
		}
		waitForLoss(t, losses, addr, "left") // without a release it would be "expired"
		losses.signal(t, syscall.SIGINT)
		losses.exit(t)
		for line := range strings.Lines(losses.output(t)) {
			if !strings.HasPrefix(line, "lost ") {
				t.Errorf("SIGINT to a caller: it printed %q", line)
			}
		}
	})
}

// TestAgentAddress: an invalid agent address, or one without an agent, is an error of one
// line.
func TestAgentAddress(t *testing.T) {
	inEveryLanguage(t, func(t *testing.T, l language) {
		free := freeAddr(t)
		for _, c := range []struct{ addr, says string }{
			{"127.0.0.1:7404", "is no address of an agent: want http://HOST:PORT"},
			{"https://127.0.0.1:7404", "is no address of an agent"},
			{"http://127.0.0.1:http", "is no address of an agent"},
			{"http://" + free, "no agent answers at http://" + free},
			{"unix:/nowhere/agent.sock", "no agent answers at unix:/nowhere/agent.sock"},
		} {
			for _, args := range [][]string{{"get", "colour"}, {"serve", free}, {"losses"}} {
				p := l.start(t, &agentProcess{url: c.addr}, args...)
				status, output := p.exit(t), p.output(t)
				if status != 1 || strings.Count(output, "\n") != 1 || !strings.Contains(output, c.says) {
					t.Errorf("AGENT=%s %s %v exited with status %d: %s", c.addr, l.example, args, status, output)
				}
			}
		}
	})
}

// waitForLoss waits until a loss of an owner's key is printed.
func waitForLoss(t *testing.T, losses *process, owner, cause string) {
	t.Helper()
	eventually(t, "a loss is reported", func() error {
		for line := range strings.Lines(losses.output(t)) {
			if f := strings.Fields(line); len(f) == 5 && f[0] == "lost" && f[3] == owner && f[4] == cause {
				return nil
			}
		}
		return fmt.Errorf("no loss by %s, %s", owner, cause)
	})
}

// keyPath is the URL of a key at a server.
func keyPath(addr, key string) string { return "http://" + addr + "/" + url.PathEscape(key) }

// errRefused is the error of a server that does not own the key.
var errRefused = errors.New("not the owner")
