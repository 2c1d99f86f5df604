package managerd

import (
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestDashboardSettings(t *testing.T) {
	file := func(text string, mode os.FileMode) string {
		path := filepath.Join(t.TempDir(), "token")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const good = "0123456789abcdef0123456789abcdef"
	m, err := managerFrom(t, "--admin-token-file="+file(good+"\n", 0o600), "--dashboard-hosts=a.example.com,b.example.com")
	if err != nil || m.Dashboard.Token.Reveal() != good || len(m.Dashboard.Hosts) != 2 {
		t.Errorf("%+v, %v", m.Dashboard, err)
	}
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"others can read it":     {[]string{"--admin-token-file=" + file(good, 0o644)}, "mode 0644 lets other users read or change the file, want 0600 or 0640: run chmod 600 "},
		"it is too short":        {[]string{"--admin-token-file=" + file("secret", 0o600)}, "too short to be secure"},
		"it is empty":            {[]string{"--admin-token-file=" + file("", 0o600)}, "want one line"},
		"it is not there":        {[]string{"--admin-token-file=/nosuch"}, "--admin-token-file: open /nosuch: no such file"},
		"there is no dashboard":  {[]string{"--http=", "--admin-token-file=" + file(good, 0o600)}, `--admin-token-file requires the dashboard, which --http "" disables`},
		"a host with a port":     {[]string{"--dashboard-hosts=m1:7401"}, `--dashboard-hosts: "m1:7401": want a host name without a port`},
		"a host that is a URL":   {[]string{"--dashboard-hosts=http://m1"}, "want a host name"},
		"a host that is nothing": {[]string{"--dashboard-hosts=a,,b"}, "want a host name"},
	} {
		if _, err := managerFrom(t, test.args...); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s:\n got %v\nwant %s", name, err, test.want)
		}
	}
}

// TestPages: health is served independently of the dashboard, which serves all other paths.
func TestPages(t *testing.T) {
	health := http.NewServeMux()
	health.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	board := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	for request, want := range map[string]int{
		"GET /healthz": 204, "POST /healthz": 405, "GET /readyz": 404, "GET /restartz": 404,
		"GET /": 418, "GET /main.js": 418, "POST /api/login": 418, "GET /healthz/x": 418,
	} {
		method, path, _ := strings.Cut(request, " ")
		w := httptest.NewRecorder()
		pages(health, board).ServeHTTP(w, httptest.NewRequest(method, path, nil))
		if w.Code != want {
			t.Errorf("%s: %d, want %d", request, w.Code, want)
		}
	}
}

func TestOnLoopback(t *testing.T) {
	for addr, want := range map[string]bool{"127.0.0.1": true, "::1": true, "0.0.0.0": false, "10.0.0.1": false, "::": false} {
		if got := onLoopback(&net.TCPAddr{IP: net.ParseIP(addr)}); got != want {
			t.Errorf("%s: %v, want %v", addr, got, want)
		}
	}
}
