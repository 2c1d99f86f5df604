package daemon

import (
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestProfiles: the profile address accepts loopback hosts only, and serves profiles only.
func TestProfiles(t *testing.T) {
	for _, test := range []struct {
		host, path string
		status     int
	}{
		{"127.0.0.1:6060", "/debug/pprof/", 200},
		{"localhost:6060", "/debug/pprof/goroutine?debug=1", 200},
		{"[::1]:6060", "/debug/pprof/cmdline", 200},
		{"evil.example.com:6060", "/debug/pprof/", 403},
		{"evil.example.com", "/debug/pprof/heap", 403},
		{"127.0.0.1:6060", "/metrics", 404},
	} {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodGet, "http://"+test.host+test.path, nil)
		profiles().ServeHTTP(w, r)
		if w.Code != test.status {
			t.Errorf("%s%s: %d, want %d", test.host, test.path, w.Code, test.status)
		}
	}
}

// TestDebugListens: the debug listener serves until it is stopped, and reports an address in use
// with the flag's name.
func TestDebugListens(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close() //nolint:errcheck // cleanup only
	log := slog.New(slog.DiscardHandler)
	if _, err := (&Debug{listen: taken.Addr().String()}).Serve(log); err == nil || !strings.Contains(err.Error(), "--debug-listen") {
		t.Errorf("address in use: %v", err)
	}
	addr := taken.Addr().String()
	if err := taken.Close(); err != nil {
		t.Fatal(err)
	}
	stop, err := (&Debug{listen: addr}).Serve(log)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.Get("http://" + addr + "/debug/pprof/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	text, _ := io.ReadAll(answer.Body)
	_ = answer.Body.Close() // read-only
	if answer.StatusCode != http.StatusOK || len(text) == 0 {
		t.Errorf("%d %s", answer.StatusCode, text)
	}
	stop()
	if answer, err := http.Get("http://" + addr + "/debug/pprof/cmdline"); err == nil {
		_ = answer.Body.Close() // an unexpected response
		t.Error("the listener responds after the stop")
	}
}
