package frontend_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/leasehold-dev/leasehold/examples/livemesh/frontend"
	"github.com/leasehold-dev/leasehold/examples/livemesh/meshtest"
	"github.com/leasehold-dev/leasehold/examples/livemesh/queue"
	"github.com/leasehold-dev/leasehold/leaseholdtest"
)

// TestPage: the page is served with a strict content security policy.
func TestPage(t *testing.T) {
	handler, err := frontend.New(frontend.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		method, path string
		header       http.Header
		status       int
		has          string
	}{
		{"GET", "/", nil, 200, "<title>Live Mesh</title>"},
		{"GET", "/?device=home", nil, 200, "page.js"},
		{"GET", "/device.js", nil, 200, "class Device"},
		{"GET", "/nothing", nil, 404, ""},
		{"POST", "/", nil, 405, ""},
		{"POST", "/", http.Header{"Sec-Fetch-Site": {"cross-site"}}, 403, ""},
	} {
		r := httptest.NewRequest(test.method, test.path, nil)
		for name, values := range test.header {
			r.Header[name] = values
		}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		if w.Code != test.status || !strings.Contains(w.Body.String(), test.has) {
			t.Errorf("%s %s: %d, want %d with %q", test.method, test.path, w.Code, test.status, test.has)
		}
		if csp := w.Header().Get("Content-Security-Policy"); w.Code == 200 && (!strings.Contains(csp, "default-src 'none'") || strings.Contains(csp, "unsafe")) {
			t.Errorf("%s: content security policy %q", test.path, csp)
		}
	}
}

// TestPassesOn: requests and responses are forwarded.
func TestPassesOn(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{Namespace: "queues"}, func(t *testing.T, c *leaseholdtest.Cluster) {
		server := c.Node("a")
		s, err := queue.Join(t.Context(), server.MovingConfig(), queue.Config{Room: 1})
		meshtest.Serve(t, server, s, err)
		c.Settle()
		front := c.Node("frontend")
		handler, err := frontend.New(frontend.Config{
			Services: []frontend.Service{{Prefix: "/queues/", Lookup: meshtest.Lookup(t, c, front)}},
			Base:     front.Client().Transport,
		})
		if err != nil {
			t.Fatal(err)
		}
		front.Serve(handler)
		client := c.Node("device").Client()
		meshtest.Check(t, client, "http://"+front.Addr(), []meshtest.Case{
			{What: "opened", Method: "GET", Path: "/queues/phone/messages", Status: 200, Has: `"epoch"`},
			{What: "enqueued", Method: "POST", Path: "/queues/phone/messages", Body: `"hello"`, Status: 200, Has: `"number":1`},
			{What: "full", Method: "POST", Path: "/queues/phone/messages", Body: `"hello"`, Status: 503, Has: "full"},
			{What: "from elsewhere", Method: "POST", Path: "/queues/phone/messages", Body: `"hello"`, Header: "Sec-Fetch-Site: cross-site", Status: 403},
		})
	})
}
