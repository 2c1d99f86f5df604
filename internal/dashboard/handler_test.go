package dashboard_test

import (
	"bufio"
	"compress/gzip"
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold/internal/dashboard"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

const token = "correct horse battery staple"

func newDashboard(t *testing.T, cfg dashboard.Config) *dashboard.Dashboard {
	t.Helper()
	if cfg.Admin == nil {
		cfg.Admin = leaseholdv1.UnimplementedAdminServiceServer{}
	}
	cfg.Logger = slog.New(slog.DiscardHandler)
	d, err := dashboard.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	return d
}

// A browser keeps its cookies.
type browser struct {
	handler http.Handler
	cookie  *http.Cookie
	csrf    string
	header  map[string]string
	tls     bool
}

func (b *browser) do(method, path, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Host = "127.0.0.1:7401"
	if b.cookie != nil {
		r.AddCookie(b.cookie)
	}
	if b.csrf != "" {
		r.Header.Set("X-Leasehold-Csrf", b.csrf)
	}
	if b.tls {
		r.TLS = &tls.ConnectionState{}
	}
	for name, value := range b.header {
		if name == "Host" {
			r.Host = value
			continue
		}
		r.Header.Set(name, value)
	}
	ctx, cancel := context.WithTimeout(r.Context(), browserPatience/6) // a stream would never end
	defer cancel()
	w := httptest.NewRecorder()
	b.handler.ServeHTTP(w, r.WithContext(ctx))
	for _, line := range w.Header().Values("Set-Cookie") {
		if c, err := http.ParseSetCookie(line); err == nil {
			b.cookie = c
		}
	}
	return w
}

func (b *browser) login(t *testing.T, with string) *httptest.ResponseRecorder {
	t.Helper()
	body, err := json.Marshal(map[string]string{"token": with})
	if err != nil {
		t.Fatal(err)
	}
	answer := b.do(http.MethodPost, "/api/login", string(body))
	var session struct{ CSRF string }
	if err := json.NewDecoder(answer.Body).Decode(&session); err != nil {
		t.Fatal(err)
	}
	b.csrf = session.CSRF
	return answer
}

func TestAnswers(t *testing.T) {
	d := newDashboard(t, dashboard.Config{Token: token, Hosts: []string{"m1.example.com"}})
	for name, test := range map[string]struct {
		method, path, body string
		header             map[string]string
		want               int
	}{
		"the page":                 {"GET", "/", "", nil, 200},
		"a module":                 {"GET", "/main.js", "", nil, 200},
		"a file that is not":       {"GET", "/secret", "", nil, 404},
		"a way out":                {"GET", "/../handler.go", "", nil, 307},
		"post the page":            {"POST", "/", "", nil, 405},
		"a known name":             {"GET", "/", "", map[string]string{"Host": "M1.example.com:7401"}, 200},
		"a known name, absolute":   {"GET", "/", "", map[string]string{"Host": "m1.example.com."}, 200},
		"localhost":                {"GET", "/", "", map[string]string{"Host": "localhost:7401"}, 200},
		"an address":               {"GET", "/", "", map[string]string{"Host": "[fe80::1]:7401"}, 200},
		"another name":             {"GET", "/", "", map[string]string{"Host": "evil.example.com:7401"}, 403},
		"a name like ours":         {"GET", "/", "", map[string]string{"Host": "127.0.0.1.evil.example.com"}, 403},
		"a name like localhost":    {"GET", "/", "", map[string]string{"Host": "notlocalhost"}, 403},
		"another name's stream":    {"GET", "/api/stream", "", map[string]string{"Host": "evil.example.com"}, 403},
		"a namespace that is none": {"GET", "/api/stream?namespace=%3Cscript%3E", "", nil, 422},
		"no key":                   {"GET", "/api/explain?namespace=pool", "", nil, 422},
		"a bad key":                {"GET", "/api/explain?namespace=pool&key=0xz", "", nil, 422},
		"a long key":               {"GET", "/api/explain?namespace=pool&key=" + strings.Repeat("x", 5000), "", nil, 422},
		"a manager that cannot":    {"GET", "/api/explain?namespace=pool&key=x", "", nil, 422},
		"drain without login":      {"POST", "/api/drain", "{}", nil, 403},
		"move without login":       {"POST", "/api/move", "{}", nil, 403},
		"get a drain":              {"GET", "/api/drain", "", nil, 404},
		"login without a body":     {"POST", "/api/login", "", nil, 400},
		"login with too much":      {"POST", "/api/login", `{"token":"` + strings.Repeat("x", 20000) + `"}`, nil, 400},
		"login with another field": {"POST", "/api/login", `{"tokem":"x"}`, nil, 400},
		"login from elsewhere":     {"POST", "/api/login", `{"token":"` + token + `"}`, map[string]string{"Sec-Fetch-Site": "cross-site"}, 403},
		"login of another origin":  {"POST", "/api/login", `{"token":"` + token + `"}`, map[string]string{"Origin": "http://evil.example.com"}, 403},
	} {
		b := &browser{handler: d, header: test.header}
		answer := b.do(test.method, test.path, test.body)
		if answer.Code != test.want {
			t.Errorf("%s: status %d, want %d", name, answer.Code, test.want)
		}
		for header, want := range map[string]string{
			"X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer",
		} {
			if got := answer.Header().Get(header); got != want {
				t.Errorf("%s: %s is %q, want %q", name, header, got, want)
			}
		}
		csp := answer.Header().Get("Content-Security-Policy")
		if !strings.Contains(csp, "default-src 'none'") || !strings.Contains(csp, "frame-ancestors 'none'") || strings.Contains(csp, "unsafe") {
			t.Errorf("%s: the policy is %q", name, csp)
		}
	}
}

// Without a token nobody is an administrator, and whoever tries is told why.
func TestReadOnly(t *testing.T) {
	d := newDashboard(t, dashboard.Config{})
	b := &browser{handler: d}
	for _, path := range []string{"/api/login", "/api/drain", "/api/move"} {
		answer := b.do(http.MethodPost, path, `{"token":""}`)
		text, err := io.ReadAll(answer.Body)
		if answer.Code != http.StatusForbidden || err != nil || !strings.Contains(string(text), "--admin-token-file") {
			t.Errorf("%s: %d, %s, %v", path, answer.Code, text, err)
		}
	}
	var session struct{ Possible, Admin bool }
	if err := json.NewDecoder(b.do(http.MethodGet, "/api/session", "").Body).Decode(&session); err != nil || session.Possible || session.Admin {
		t.Errorf("%+v, %v", session, err)
	}
}

func TestShortTokenIsRefused(t *testing.T) {
	if _, err := dashboard.New(dashboard.Config{Admin: leaseholdv1.UnimplementedAdminServiceServer{}, Token: "short"}); err == nil {
		t.Error("a token that can be guessed is taken")
	}
}

func TestCookie(t *testing.T) {
	d := newDashboard(t, dashboard.Config{Token: token})
	for _, secure := range []bool{false, true} {
		b := &browser{handler: d, tls: secure}
		if answer := b.login(t, token); answer.Code != 200 || b.csrf == "" {
			t.Fatalf("status %d", answer.Code)
		}
		if c := b.cookie; !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Secure != secure || c.MaxAge <= 0 || c.Path != "/api/" {
			t.Errorf("with TLS %v the cookie is %v", secure, c)
		}
	}
}

// Logins that fail are few, and the right token waits as well: whoever tries cannot tell.
func TestLoginIsThrottled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDashboard(t, dashboard.Config{Token: token})
		defer d.Close()
		b := &browser{handler: d}
		refused := 0
		for range 20 {
			if b.login(t, "wrong").Code == http.StatusTooManyRequests {
				refused++
			}
		}
		if refused != 15 {
			t.Errorf("%d of 20 wrong tokens were not even looked at, want 15", refused)
		}
		if answer := b.login(t, token); answer.Code != http.StatusTooManyRequests || answer.Header().Get("Retry-After") == "" {
			t.Errorf("status %d after many failures", answer.Code)
		}
		time.Sleep(3 * time.Second)
		if answer := b.login(t, token); answer.Code != 200 {
			t.Errorf("status %d a while later", answer.Code)
		}
	})
}

func TestPageIsSmall(t *testing.T) {
	const most = 200 << 10
	var sum int64
	err := fs.WalkDir(os.DirFS("page"), ".", func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			sum += info.Size()
		}
		return err
	})
	if err != nil || sum == 0 || sum > most {
		t.Errorf("the page has %d bytes, want %d at most; %v", sum, most, err)
	}
	t.Logf("the page has %d bytes", sum)
}

// Nothing in the page is inline, and nothing is from elsewhere: the policy would block it.
func TestPageKeepsItsPolicy(t *testing.T) {
	text, err := os.ReadFile("page/index.html")
	if err != nil {
		t.Fatal(err)
	}
	for _, sin := range []string{"<style", " style=", " onclick=", "javascript:", "http://", "https://", "<script>"} {
		if strings.Contains(string(text), sin) {
			t.Errorf("index.html has %s", sin)
		}
	}
	modules, err := fs.Glob(os.DirFS("page"), "*.js")
	if err != nil || len(modules) < 5 {
		t.Fatal(modules, err)
	}
	for _, module := range modules {
		text, err := os.ReadFile("page/" + module)
		if err != nil {
			t.Fatal(err)
		}
		for _, sin := range []string{"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", `setAttribute("style"`} {
			if strings.Contains(string(text), sin) {
				t.Errorf("%s has %s", module, sin)
			}
		}
	}
}

// A stream is gzip for those who take it, and the same text as without.
func TestStreamIsCompressed(t *testing.T) {
	server := httptest.NewServer(newDashboard(t, dashboard.Config{}))
	defer server.Close()
	read := func(encoding string) string {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/api/stream", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Accept-Encoding", encoding)
		answer, err := http.DefaultTransport.RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close() //nolint:errcheck // it has been read
		if got := answer.Header.Get("Content-Encoding"); got != strings.TrimSuffix(encoding, "identity") {
			t.Fatalf("asked for %s, it is %q", encoding, got)
		}
		body := io.Reader(answer.Body)
		if encoding == "gzip" {
			if body, err = gzip.NewReader(answer.Body); err != nil {
				t.Fatal(err)
			}
		}
		text, lines := "", bufio.NewScanner(body)
		for range 8 { // two frames
			if !lines.Scan() {
				t.Fatal(lines.Err())
			}
			text += lines.Text() + "\n"
		}
		return text
	}
	for _, encoding := range []string{"gzip", "identity"} {
		if text := read(encoding); !strings.Contains(text, "event: snapshot\ndata: {") || !strings.Contains(text, "event: live\ndata: {") {
			t.Errorf("%s: %s", encoding, text)
		}
	}
}
