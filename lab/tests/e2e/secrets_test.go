//go:build unix

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// quitSignal makes a Go program print all stacks and exit.
const quitSignal = syscall.SIGQUIT

// startEtcdWithUsers starts an etcd server with authentication.
func startEtcdWithUsers(t *testing.T, user, password string) *etcdServer {
	t.Helper()
	dir, peer := t.TempDir(), "http://"+freeAddr(t)
	s := &etcdServer{url: "http://" + freeAddr(t), log: filepath.Join(dir, "etcd.log")}
	s.args = []string{
		"--name=e", "--data-dir=" + filepath.Join(dir, "data"), "--log-level=warn", "--initial-cluster=e=" + peer,
		"--listen-client-urls=" + s.url, "--advertise-client-urls=" + s.url, "--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer,
	}
	s.start(t)
	etcdCluster{s}.leader(t)
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{s.url}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close() //nolint:errcheck // no call is in progress
	ctx, cancel := context.WithTimeout(t.Context(), eventTimeout)
	defer cancel()
	for _, step := range []func() error{
		func() error { _, err := client.UserAdd(ctx, "root", "unused"); return err },
		func() error { _, err := client.UserGrantRole(ctx, "root", "root"); return err },
		func() error { _, err := client.UserAdd(ctx, user, password); return err },
		func() error { _, err := client.UserGrantRole(ctx, user, "root"); return err },
		func() error { _, err := client.AuthEnable(ctx); return err },
	} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// TestManagerKeepsSecrets: no secret of a manager appears in its logs, pages, metrics, command
// output or stacks, also after failed logins.
func TestManagerKeepsSecrets(t *testing.T) {
	t.Parallel()
	s := newSweep()
	password, token, guess := s.secret("the password"), s.secret("the token"), s.secret("a token that is wrong")
	store := startEtcdWithUsers(t, "leasehold", password)
	addr, page, debug := freeAddr(t), freeAddr(t), freeAddr(t)
	m := launch{
		program: leaseholdProgram, log: filepath.Join(t.TempDir(), "manager.log"), env: []string{"LEASEHOLD_ETCD_PASSWORD=" + password},
		args: []string{
			"manager", "run", "--listen=" + addr, "--http=" + page, "--debug-listen=" + debug, "--log-level=debug", "--log-format=json",
			"--etcd=" + store.url, "--etcd-user=leasehold", "--admin-token-file=" + inFile(t, token),
		},
	}.start(t)
	eventually(t, "the manager is ready", func() error { return probe(t, "http://"+page+"/readyz", http.StatusOK, "ok") })
	g := &group{managers: []*manager{{name: "m", addr: addr, process: m}}}
	g.createNamespace(t, "n", keptLease)
	g.join(t, "n", "ann")
	g.waitForAssignment(t, "n", "ann")

	login(t, s, page, guess, http.StatusForbidden)
	session := login(t, s, page, token, http.StatusOK)
	for _, path := range []string{"/", "/main.js", "/api/session", "/api/explain?namespace=n&key=x", "/api/stream?namespace=n", "/metrics", "/healthz", "/readyz", "/restartz", "/nosuch"} {
		s.get(t, "http://"+page+path, nil)
	}
	s.debug(t, debug)
	s.process(t, m.Pid())
	for _, args := range [][]string{
		{"status", "--managers=" + addr}, {"status", "--json", "--managers=" + addr}, {"doctor", "--managers=" + addr}, {"events", "--managers=" + addr, "--namespace=n"},
	} {
		_, stdout, stderr := run(t, args...)
		s.add(strings.Join(args, " "), stdout+stderr)
	}
	store.kill() // errors about the store
	eventually(t, "the manager is not ready", func() error { return probe(t, "http://"+page+"/readyz", http.StatusServiceUnavailable, "") })
	s.panics(t, m)
	s.file(t, store.log)
	s.canaries = append(s.canaries, session...)
	s.clean(t)
}

// login logs in to a dashboard, and returns the secrets of the browser's session.
func login(t *testing.T, s *sweep, page, token string, want int) []canary {
	t.Helper()
	body, err := json.Marshal(map[string]string{"token": token})
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+page+"/api/login", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close() //nolint:errcheck // the body was read
	var document struct {
		CSRF  string `json:"csrf"`
		Error string `json:"error"`
	}
	if err := json.NewDecoder(response.Body).Decode(&document); err != nil || response.StatusCode != want {
		t.Fatalf("login: status %d, want %d: %v", response.StatusCode, want, err)
	}
	s.add("the login response", document.Error)
	var out []canary
	for _, c := range response.Cookies() {
		out = append(out, canary{"the session cookie", c.Value})
	}
	if document.CSRF != "" {
		out = append(out, canary{"the CSRF token", document.CSRF})
	}
	return out
}

// TestFailuresKeepSecrets: errors about a secret do not contain it.
func TestFailuresKeepSecrets(t *testing.T) {
	t.Parallel()
	s := newSweep()
	right, wrong := s.secret("the password"), s.secret("another password")
	store := startEtcdWithUsers(t, "leasehold", right)
	nowhere := "127.0.0.1:1"
	lax := inFile(t, wrong)
	if err := os.Chmod(lax, 0o644); err != nil {
		t.Fatal(err)
	}
	twoLines, threeLines := inFile(t, wrong+"\n"+wrong), inFile(t, wrong+"\n"+wrong+"\n"+wrong)
	for name, args := range map[string][]string{
		"wrong password":              {"--etcd=" + store.url, "--etcd-user=leasehold", "--etcd-password-file=" + inFile(t, wrong)},
		"unknown user":                {"--etcd=" + store.url, "--etcd-user=nobody", "--etcd-password-file=" + inFile(t, right)},
		"no server":                   {"--etcd=" + nowhere, "--etcd-user=leasehold", "--etcd-password-file=" + inFile(t, right)},
		"on the command line":         {"--etcd=" + store.url, "--etcd-user=leasehold", "--etcd-password=" + right},
		"in a URL":                    {"--etcd=http://leasehold:" + right + "@" + nowhere},
		"in a malformed URL":          {"--etcd=http://leasehold:" + right + "%zz@" + nowhere},
		"in a member's URL":           {"--members=m=http://leasehold:" + right + "@" + nowhere, "--name=m"},
		"a file that others can read": {"--etcd=" + nowhere, "--etcd-user=u", "--etcd-password-file=" + lax},
		"two lines":                   {"--etcd=" + nowhere, "--etcd-user=u", "--etcd-password-file=" + twoLines},
		"a token of two lines":        {"--admin-token-file=" + twoLines},
		"a key of three lines":        {"--store=flease", "--peers=127.0.0.1:1,127.0.0.1:2,127.0.0.1:3", "--advertise=127.0.0.1:1", "--peer-key-file=" + threeLines},
		"print-config":                {"--etcd=" + nowhere, "--etcd-user=u", "--etcd-password-file=" + inFile(t, right), "--print-config"},
	} {
		status, stdout, stderr := run(t, append([]string{"manager", "run", "--listen=127.0.0.1:0", "--http=", "--log-level=debug"}, args...)...)
		if (status == 0) != (name == "print-config") {
			t.Errorf("%s: status %d: %s", name, status, stderr)
		}
		s.add(name, stdout+stderr)
	}
	s.clean(t)
}

// TestFleaseKeepsSecrets: the same for the keys of diskless managers and of Flease members, also
// if the keys differ.
func TestFleaseKeepsSecrets(t *testing.T) {
	t.Parallel()
	s := newSweep()
	right, wrong := inFile(t, s.secret("the key")), inFile(t, s.secret("another key"))
	var addrs []string
	for range 3 {
		addrs = append(addrs, freeAddr(t))
	}
	var managers []*process
	for i, addr := range addrs {
		key := right
		if i == 2 {
			key = wrong
		}
		page, debug := freeAddr(t), freeAddr(t)
		m := launch{
			program: leaseholdProgram, log: filepath.Join(t.TempDir(), "manager.log"),
			args: []string{
				"manager", "run", "--store=flease", "--listen=" + addr, "--http=" + page, "--debug-listen=" + debug, "--log-level=debug",
				"--peers=" + strings.Join(addrs, ","), "--longest-lease=1s", "--peer-key-file=" + key,
			},
		}.start(t)
		managers = append(managers, m)
		eventually(t, "the manager serves", func() error { return probe(t, "http://"+debug+"/debug/pprof/cmdline", http.StatusOK, "manager") })
		s.debug(t, debug)
		s.get(t, "http://"+page+"/metrics", nil)
		s.process(t, m.Pid())
	}
	eventually(t, "the mismatched key is logged", func() error {
		for _, m := range managers {
			if strings.Contains(m.output(t), "another key") || strings.Contains(m.output(t), "--peer-key-file") {
				return nil
			}
		}
		return errNotYet
	})
	for _, m := range managers {
		s.panics(t, m)
	}
	member := launch{
		program: leaseholdProgram, log: filepath.Join(t.TempDir(), "member.log"),
		args: []string{"flease", "run", "--id=1", "--members=1=" + addrs[0] + ",2=" + addrs[1] + ",3=" + addrs[2], "--key-file=" + right},
	}.start(t)
	eventually(t, "the member runs", func() error {
		_, _, stderr := run(t, "flease", "status", "--member="+addrs[0])
		if strings.Contains(stderr, "refused") {
			return errNotYet
		}
		return nil
	})
	s.process(t, member.Pid())
	s.panics(t, member)
	s.clean(t)
}

// TestOthersKeepSecrets: credentials that callers send through a gateway, and owner IDs of an
// agent, appear in no log, page or metric.
func TestOthersKeepSecrets(t *testing.T) {
	t.Parallel()
	s := newSweep()
	bearer, sid := s.secret("a caller's token"), s.secret("a caller's cookie")
	g := startLone(t)
	g.createNamespace(t, "n", keptLease)
	debug := freeAddr(t)
	front, health := freeAddr(t), freeAddr(t)
	gateway := launch{
		program: leaseholdProgram, log: filepath.Join(t.TempDir(), "gateway.log"),
		args: []string{
			"gateway", "--managers=" + strings.Join(g.addrs(), ","), "--namespace=n", "--key=path:1", "--listen=" + front, "--attempts=1",
			"--health-listen=" + health, "--debug-listen=" + debug, "--log-level=debug",
		},
	}.start(t)
	eventually(t, "the gateway serves", func() error { return probe(t, "http://"+health+"/healthz", http.StatusOK, "") })
	with := func(r *http.Request) {
		r.Header.Set("Authorization", "Bearer "+bearer)
		r.Header.Set("Cookie", "sid="+sid)
	}
	s.get(t, "http://"+front+"/alice", with) // no owner
	s.get(t, "http://"+front+"/", with)      // no key
	s.get(t, "http://"+health+"/metrics", nil)
	s.debug(t, debug)

	agentDebug := freeAddr(t)
	at := freeAddr(t)
	agent := launch{
		program: leaseholdProgram, log: filepath.Join(t.TempDir(), "agent.log"),
		args: []string{"agent", "--listen=" + at, "--managers=" + strings.Join(g.addrs(), ","), "--debug-listen=" + agentDebug, "--log-level=debug"},
	}.start(t)
	eventually(t, "the agent serves", func() error { return probe(t, "http://"+agentDebug+"/debug/pprof/cmdline", http.StatusOK, "agent") })
	id := joinByAgent(t, "http://"+at)
	s.debug(t, agentDebug)
	s.get(t, "http://"+at+"/metrics", nil)
	s.get(t, "http://"+at+"/v1/owners/nobody/events", nil)
	_, stdout, stderr := run(t, "owner", "list", "--managers="+g.addrs()[0], "--namespace=n", "--json")
	s.add("leasehold owner list", stdout+stderr)
	for _, p := range []*process{gateway, agent} {
		s.process(t, p.Pid())
		s.panics(t, p)
	}
	s.canaries = append(s.canaries, canary{"an owner's ID at the agent", id})
	s.file(t, g.managers[0].log)
	s.clean(t)
}

// joinByAgent joins an owner through the agent, and returns its secret ID.
func joinByAgent(t *testing.T, url string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/v1/owners", strings.NewReader(`{"namespace":"n","addr":"127.0.0.1:9"}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close() //nolint:errcheck // the body was read
	var document struct {
		ID string `json:"id"`
	}
	if err := json.NewDecoder(response.Body).Decode(&document); err != nil || document.ID == "" {
		t.Fatalf("join: status %d, %v", response.StatusCode, err)
	}
	return document.ID
}

// TestDemoKeepsSecrets: the demo does not pass secrets of its environment to its children.
func TestDemoKeepsSecrets(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("NOT TESTED: the environment of the demo's children, because this requires /proc")
	}
	t.Parallel()
	s := newSweep()
	demo := launch{
		program: leaseholdProgram, args: []string{"demo", "--for=1m", "--json"}, log: filepath.Join(t.TempDir(), "demo.log"),
		env: []string{"LEASEHOLD_ETCD_PASSWORD=" + s.secret("the password"), "LEASEHOLD_ADMIN_TOKEN_FILE=/nosuch/" + s.secret("the path of a token")},
	}.start(t)
	itself, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", demo.Pid()))
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the demo has children", func() error {
		result := 0
		for _, pid := range childrenOf(t, demo.Pid()) {
			dir := "/proc/" + strconv.Itoa(pid)
			line, err := os.ReadFile(dir + "/cmdline")
			if err != nil || len(line) == 0 || bytes.Equal(line, itself) {
				continue // it has ended, or has not called exec yet
			}
			if environ, err := os.ReadFile(dir + "/environ"); err == nil {
				s.add(dir+"/cmdline", string(line))
				s.add(dir+"/environ", string(environ))
				result++
			}
		}
		if result < 3 {
			return fmt.Errorf("%d children; output: %s", result, demo.output(t))
		}
		return nil
	})
	s.file(t, demo.Launch.Log)
	s.clean(t)
}

// childrenOf returns the child processes of a process.
func childrenOf(t *testing.T, pid int) (out []int) {
	t.Helper()
	tasks, err := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/children")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range tasks {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // the thread has ended
		}
		for _, field := range strings.Fields(string(text)) {
			if n, err := strconv.Atoi(field); err == nil {
				out = append(out, n)
			}
		}
	}
	return out
}
