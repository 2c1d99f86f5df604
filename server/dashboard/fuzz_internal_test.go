package dashboard

import (
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/leasehold-dev/leasehold"
)

// FuzzRequest: no request causes a server error, every response has the security headers, and a
// rejection is JSON with a reason. Orders without a login are rejected.
func FuzzRequest(f *testing.F) {
	for _, r := range []struct{ method, target, host, body, cookie string }{
		{"GET", "/", "localhost:7401", "", ""},
		{"GET", "/api/explain?namespace=n&key=0xff", "127.0.0.1", "", ""},
		{"GET", "/api/explain?namespace=%00&key=%ff&name=1", "[::1]:1", "", ""},
		{"GET", "/api/session", "localhost", "", "leasehold=x"},
		{"GET", "/api/stream?namespace=NOT-A-NAME&last=x-1", "localhost", "", ""},
		{"POST", "/api/login", "localhost", `{"token":"guess"}`, ""},
		{"POST", "/api/drain", "localhost", `{"namespace":"n","owner":"o"}`, "leasehold=x"},
		{"POST", "/api/move", "localhost", `{"start":"0","limit":"zz"}`, ""},
		{"GET", "/", "evil.example", "", ""},
		{"GET", "/../../etc/passwd", "localhost", "", ""},
		{"GET", "/page/%2e%2e/%2e%2e/", "localhost", "", ""},
		{"DELETE", "/api/login", "localhost", strings.Repeat("[", 20_000), ""},
	} {
		f.Add(r.method, r.target, r.host, r.body, r.cookie)
	}
	f.Fuzz(func(t *testing.T, method, target, host, body, cookie string) {
		r, err := http.NewRequestWithContext(t.Context(), method, "http://localhost/", strings.NewReader(body))
		if err != nil {
			return
		}
		if u, err := r.URL.Parse(target); err == nil {
			r.URL = u
		}
		if r.Host = host; strings.HasPrefix(r.URL.Path, "/api/stream") && leasehold.Namespace(r.FormValue("namespace")).Validate() == nil {
			return // streams do not end
		}
		r.Header.Set("Cookie", cookie)
		admin := newFakeAdmin()
		d, err := New(Config{Admin: admin, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		w := httptest.NewRecorder()
		d.ServeHTTP(w, r)
		if w.Code >= 500 && w.Code != http.StatusServiceUnavailable && w.Code != http.StatusInternalServerError {
			t.Fatalf("status %d: %s", w.Code, w.Body)
		}
		if h := w.Header(); h.Get("Content-Security-Policy") != policy || h.Get("X-Content-Type-Options") != "nosniff" || h.Get("X-Frame-Options") != "DENY" {
			t.Fatalf("%s %s: headers %v", method, target, h)
		}
		if len(admin.drained)+len(admin.moved) > 0 {
			t.Fatalf("%s %s: a stranger has given an order", method, target)
		}
		if w.Header().Get("Content-Type") == "application/json" && !json.Valid(w.Body.Bytes()) {
			t.Fatalf("%s %s: %s", method, target, w.Body)
		}
		if w.Code == http.StatusOK && !plainlyOurs(host) {
			t.Fatalf("it answers under %q", host)
		}
	})
}

// plainlyOurs reports whether a dashboard without configured names accepts a host, computed in
// another way.
func plainlyOurs(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	for _, bare := range []string{host, strings.Trim(host, "[]"), host[:max(0, strings.LastIndexByte(host, ':'))]} {
		bare = strings.TrimSuffix(strings.Trim(bare, "[]"), ".")
		if bare == "localhost" || strings.HasSuffix(bare, ".localhost") || net.ParseIP(bare) != nil {
			return true
		}
	}
	return false
}

// FuzzKey: the input is a name, or a key in hexadecimal.
func FuzzKey(f *testing.F) {
	f.Add("alice", false)
	f.Add("0xff", false)
	f.Add("0Xff", true)
	f.Add("0x", false)
	f.Add("0x00000000000000001", false)
	f.Add("0xé", false)
	f.Fuzz(func(t *testing.T, text string, asName bool) {
		name, key, err := parseKey(text, asName)
		switch {
		case err != nil && leasehold.KindOf(err) != leasehold.ErrInvalid:
			t.Fatal(err)
		case err != nil:
		case name != "" && (name != text || key != leasehold.KeyOf(text)):
			t.Fatalf("%q is taken for the name %q with key %v", text, name, key)
		case name == "" && !strings.HasSuffix(key.String(), strings.ToLower(text[2:])):
			t.Fatalf("%q is taken for the key %v", text, key)
		}
	})
}
