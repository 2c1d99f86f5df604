package agent

import (
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/leaseholdtest"
)

// TestBadInput: each kind of invalid input has its own status, error kind and hint.
func TestBadInput(t *testing.T) {
	one(t, nil, func(t *testing.T, _ *leaseholdtest.Cluster, p *program) {
		owner := p.path("")
		for _, test := range []struct {
			name, method, path, body string
			status                   int
			says                     string
		}{
			{"no such path", "GET", "/v2", "", 404, "not_found: agent \"GET /v2\": unknown method and path"},
			{"another method", "PUT", "/v1/owners", "{}", 404, "not_found"},
			{"no such owner", "POST", "/v1/owners/nobody/check", `{"name":"x"}`, 404, "join again"},
			{"no body", "POST", owner + "/check", "", 400, "invalid: request \"body\": want one JSON object"},
			{"no object", "POST", owner + "/check", "[]", 400, "invalid"},
			{"two objects", "POST", owner + "/check", `{"name":"x"}{}`, 400, "more than one JSON object"},
			{"unknown field", "POST", owner + "/check", `{"nome":"x"}`, 400, `unknown field "nome"`},
			{"no key", "POST", owner + "/check", `{}`, 400, `want one of "key"`},
			{"key and name", "POST", owner + "/check", `{"name":"x","key":"0000000000000000"}`, 400, `want one of "key"`},
			{"a short key", "POST", owner + "/check", `{"key":"1"}`, 400, "want 16 hexadecimal digits"},
			{"a key that is a number", "POST", owner + "/check", `{"key":1}`, 400, "cannot unmarshal number"},
			{"an empty name", "POST", owner + "/check", `{"name":""}`, 400, `"name": is empty`},
			{"a long body", "POST", owner + "/check", `{"name":"` + strings.Repeat("x", maxBody) + `"}`, 413, "more than 65536 bytes"},
			{"a body that is no UTF-8", "POST", owner + "/check", "{\"name\":\"\xff\"}", 400, "no valid UTF-8"},
			{"half a character", "POST", owner + "/check", `{"name":"\ud800"}`, 400, "U+FFFD"},
			{"half a character in held", "POST", owner + "/held", `{"name":"\ud800","generation":"1"}`, 400, "U+FFFD"},
			{"U+FFFD", "POST", owner + "/check", `{"name":"a\ufffd"}`, 400, "U+FFFD"},
			{"half a character in an owner's name", "POST", "/v1/owners", `{"namespace":"test","addr":"a:1","name":"\udfff"}`, 400, "U+FFFD"},
			{"find with invalid UTF-8", "GET", "/v1/namespaces/test/find?name=%FF", "", 400, "no valid UTF-8"},
			{"find with U+FFFD", "GET", "/v1/namespaces/test/find?name=%EF%BF%BD", "", 400, "U+FFFD"},
			{"losses since the last possible LSN", "GET", "/v1/namespaces/test/losses?since=18446744073709551615", "", 400, "want a number in decimal, an LSN of this stream"},
			{"no generation", "POST", owner + "/held", `{"name":"x"}`, 400, "want a number in decimal"},
			{"a generation below 0", "POST", owner + "/held", `{"name":"x","generation":"-1"}`, 400, "want a number in decimal"},
			{"leases with a parameter", "POST", owner + "/leases", `{"name":"x"}`, 400, "unknown field"},
			{"a long wait", "POST", owner + "/await", `{"name":"x","timeout_ms":10001}`, 400, "want 1 to 10000"},
			{"a report of a program that is measured", "POST", owner + "/report", `{"costs":[]}`, 400, `join with "load": "reported"`},
			{"no namespace", "POST", "/v1/owners", `{"addr":"a:1"}`, 400, `agent "namespace": is missing`},
			{"an unknown namespace", "POST", "/v1/owners", `{"namespace":"nosuch","addr":"a:1"}`, 404, "leasehold namespace create nosuch"},
			{"no address", "POST", "/v1/owners", `{"namespace":"test"}`, 400, `agent "addr": an address is missing: want host:port, such as 10.0.0.1:8080`},
			{"an address without a port", "POST", "/v1/owners", `{"namespace":"test","addr":"a"}`, 400, `agent "addr": want host:port`},
			{"an address to listen on", "POST", "/v1/owners", `{"namespace":"test","addr":"0.0.0.0:1"}`, 400, `agent "addr": "0.0.0.0:1" is no address that callers can reach`},
			{"a name that is not printable", "POST", "/v1/owners", `{"namespace":"test","addr":"a:1","name":"a\nb"}`, 400, `agent "name": `},
			{"a name that is too long", "POST", "/v1/owners", `{"namespace":"test","addr":"` + strings.Repeat("a", 200) + `:1"}`, 400, `agent "addr": `},
			{"a great weight", "POST", "/v1/owners", `{"namespace":"test","addr":"a:1","weight":1001}`, 400, `agent "weight": is 1001, want more than 0 and at most 1000`},
			{"a name that is taken", "POST", "/v1/owners", `{"namespace":"test","addr":"a:1","name":"a","timeout_ms":500}`, 409, `has the name "a"`},
			{"a negative weight", "POST", "/v1/owners", `{"namespace":"test","addr":"a:1","weight":-1}`, 400, `agent "weight": is -1, want`},
			{"an unknown load", "POST", "/v1/owners", `{"namespace":"test","addr":"a:1","load":"cpu"}`, 400, `want "checks" or "reported"`},
			{"a short life", "POST", "/v1/owners", `{"namespace":"test","addr":"a:1","ttl_ms":1}`, 400, "want 1000 to 60000"},
			{"a long join", "POST", "/v1/owners", `{"namespace":"test","addr":"a:1","timeout_ms":60001}`, 400, "want 100 to 60000"},
			{"find without a key", "GET", "/v1/namespaces/test/find", "", 400, `want one of "key"`},
			{"find with something else", "GET", "/v1/namespaces/test/find?nome=x", "", 400, `there is no parameter "nome"`},
			{"find twice", "GET", "/v1/namespaces/test/find?name=x&name=y", "", 400, "name is there 2 times"},
			{"find with an invalid refresh", "GET", "/v1/namespaces/test/find?name=x&refresh=1", "", 400, "want true or false"},
			{"find with an invalid escape", "GET", "/v1/namespaces/test/find?name=%", "", 400, "invalid URL escape"},
			{"find in an unknown namespace", "GET", "/v1/namespaces/nosuch/find?name=x", "", 404, "not_found"},
			{"find in no namespace", "GET", "/v1/namespaces/No/find?name=x", "", 400, "use a-z"},
			{"losses since forever", "GET", "/v1/namespaces/test/losses?since=forever", "", 400, "want a number in decimal"},
		} {
			status, got := p.raw(test.method, test.path, test.body)
			if status != test.status || !strings.Contains(got, test.says) {
				t.Errorf("%s: %d %s\nwant %d, and %q", test.name, status, got, test.status, test.says)
			}
		}
	})
}

// raw sends a body unchanged.
func (p *program) raw(method, path, body string) (status int, got string) {
	p.t.Helper()
	r, err := http.NewRequest(method, p.base+path, strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json; charset=utf-8")
	w, err := p.http.Do(r)
	if err != nil {
		p.t.Fatal(err)
	}
	defer w.Body.Close() //nolint:errcheck // read-only
	var d errorDocument
	if err := json.NewDecoder(w.Body).Decode(&d); err != nil {
		p.t.Fatal(err)
	}
	return w.StatusCode, d.Error.Kind + ": " + d.Error.Message
}

// TestErrorKindsHaveDistinctStatuses covers each error kind that a response can have.
func TestErrorKindsHaveDistinctStatuses(t *testing.T) {
	seen := map[int]string{}
	for _, k := range []leasehold.Kind{
		leasehold.ErrInvalid, leasehold.ErrNotOwner, leasehold.ErrNoOwner, leasehold.ErrNameTaken, leasehold.ErrNotFound,
		leasehold.ErrUnavailable, leasehold.ErrLimit, leasehold.ErrClosed, leasehold.ErrInternal, leasehold.ErrDenied,
	} {
		v := verdictOf(k)
		if seen[v.status] != "" {
			t.Errorf("%s has the status of %s", v.name, seen[v.status])
		}
		seen[v.status] = v.name
	}
}

// TestGuard: requests that a browser sends for another site are rejected; requests of programs are
// accepted.
func TestGuard(t *testing.T) {
	a, err := New(Config{Managers: []string{"127.0.0.1:1"}, Hosts: []string{"Agent.internal"}})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close(t.Context())
	for _, test := range []struct {
		name   string
		change func(r *http.Request)
		want   int
	}{
		{"curl", func(*http.Request) {}, 200},
		{"by name", func(r *http.Request) { r.Host = "localhost:7404" }, 200},
		{"IPv6", func(r *http.Request) { r.Host = "[::1]:7404" }, 200},
		{"IPv6 without a port", func(r *http.Request) { r.Host = "[::1]" }, 200},
		{"a configured name", func(r *http.Request) { r.Host = "agent.internal:7404" }, 200},
		{"typed into a browser", func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "none") }, 200},
		{"a name that resolves to 127.0.0.1", func(r *http.Request) { r.Host = "evil.example:7404" }, 403},
		{"no name", func(r *http.Request) { r.Host = "" }, 403},
		{"a page of another site", func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }, 403},
		{"a page on another port", func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-site") }, 403},
		{"a page of an old browser", func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") }, 403},
		{"a page without an origin", func(r *http.Request) { r.Header.Set("Origin", "null") }, 403},
		{"a form", func(r *http.Request) {
			r.Method = http.MethodPost
			r.Header.Set("Content-Type", "text/plain")
		}, 415},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodGet, "http://127.0.0.1:7404/healthz", nil)
			test.change(r)
			w := httptest.NewRecorder()
			a.ServeHTTP(w, r)
			if w.Code != test.want {
				t.Errorf("%d, want %d: %s", w.Code, test.want, w.Body)
			}
		})
	}
}

// TestLimits: a request above a limit is rejected with the name of the flag, and accepted when the
// usage is below the limit again.
func TestLimits(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		startAgent(t, c, "a", func(cfg *Config) { cfg.MaxOwners, cfg.MaxStreams, cfg.MaxNamespaces = 1, 1, 1 })
		p := newProgram(t, c, "a")
		p.join(c, nil)
		second := object{"namespace": "test", "addr": "a:2"}
		if status, err := p.call("POST", "/v1/owners", second, new(joinAnswer)); status != 429 || !strings.Contains(err.Error(), "--max-owners") {
			t.Errorf("a second owner: %d, %v", status, err)
		}
		lines := p.lines(t.Context(), p.path("/events"))
		if status, err := p.call("GET", p.path("/events"), nil, nil); status != 429 || !strings.Contains(err.Error(), "--max-streams") {
			t.Errorf("a second stream: %d, %v", status, err)
		}
		p.must("DELETE", p.path(""), nil, new(struct{}))
		for range lines {
		}
		losses := p.lines(t.Context(), "/v1/namespaces/test/losses")
		if status, err := p.call("GET", "/v1/namespaces/other/find?name=x", nil, nil); status != 429 || !strings.Contains(err.Error(), "--max-namespaces") {
			t.Errorf("a second namespace: %d, %v", status, err)
		}
		p.must("POST", "/v1/owners", second, new(joinAnswer))
		c.Node("a").Kill()
		for range losses {
		}
	})
}

// TestRequestsTimeOutWithoutManagers: without a manager, requests fail after a timeout with the reason.
func TestRequestsTimeOutWithoutManagers(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		startAgent(t, c, "a")
		c.KillManager("m1")
		p := newProgram(t, c, "a")
		began := time.Now()
		for _, test := range []struct {
			method, path string
			body         any
		}{
			{"POST", "/v1/owners", object{"namespace": "test", "addr": "a:1", "timeout_ms": 2000}},
			{"GET", "/v1/namespaces/test/find?name=x", nil},
		} {
			if status, err := p.call(test.method, test.path, test.body, nil); status != http.StatusGatewayTimeout || !strings.Contains(err.Error(), "m1") {
				t.Errorf("%s: %d, %v", test.path, status, err)
			}
		}
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

func TestInvalidConfigIsRejected(t *testing.T) {
	for _, test := range []struct {
		cfg  Config
		says string
	}{
		{Config{}, "at least one address"},
		{Config{Managers: []string{"127.0.0.1:1", "m2:1"}}, "m2:1 is not a loopback address, and the connection would be plaintext"},
		{Config{Managers: []string{"127.0.0.1:1"}, MaxPromise: time.Minute}, "want 50ms to 10s"},
		{Config{Managers: []string{"127.0.0.1:1"}, MaxPromise: time.Millisecond}, "want 50ms to 10s"},
		{Config{Managers: []string{"127.0.0.1:1"}, MaxOwners: -1}, "MaxOwners"},
		{Config{Managers: []string{"127.0.0.1:1"}, Hosts: []string{"a:1"}}, "without a port"},
		{Config{Managers: []string{"127.0.0.1:1"}, Hosts: []string{"127.0.0.1"}}, "addresses are allowed anyway"},
	} {
		if _, err := New(test.cfg); leasehold.KindOf(err) != leasehold.ErrInvalid || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%v, want %q", err, test.says)
		}
	}
}

func TestListen(t *testing.T) {
	for _, addr := range []string{":0", "0.0.0.0:0", "[::]:0", "192.0.2.1:0", "example.com:0", "7404", "unix:"} {
		if l, err := Listen(addr, false, 0o600); leasehold.KindOf(err) != leasehold.ErrInvalid {
			t.Errorf("%s: %v, %v", addr, l, err)
		}
	}
	for addr, public := range map[string]bool{"127.0.0.1:0": false, "localhost:0": false, ":0": true} {
		l, err := Listen(addr, public, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		_ = l.Close()
	}
}

// TestListenOnSocket: a socket is accessible to its user only. A new agent rejects the socket of a
// live agent, and takes over that of a dead one.
func TestListenOnSocket(t *testing.T) {
	dir, err := os.MkdirTemp("", "agent") // t.TempDir may be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir) //nolint:errcheck // cleanup only
	path := filepath.Join(dir, "s")
	first, err := Listen("unix:"+path, false, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if _, err := Listen("unix:"+path, false, 0o600); err == nil || !strings.Contains(err.Error(), "another process listens") {
		t.Errorf("two agents on a socket: %v", err)
	}
	leave(first)
	second, err := Listen("unix:"+path, false, 0o660)
	if err != nil {
		t.Fatal(err)
	}
	_ = second.Close()
}

// leave closes a listener and keeps its socket file, as after a crash.
func leave(l net.Listener) {
	if u, ok := l.(*net.UnixListener); ok {
		u.SetUnlinkOnClose(false)
	}
	_ = l.Close()
}
