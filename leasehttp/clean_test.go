package leasehttp_test

import (
	"io"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/leasehold-dev/leasehold/leaseholdtest"
	"github.com/leasehold-dev/leasehold/leasehttp"
)

// own returns the reserved names in a header, in any spelling, and those that begin with X-Own.
func own(h http.Header) []string {
	var names []string
	for name := range h {
		if lower := strings.ToLower(name); strings.HasPrefix(lower, "leasehold") || strings.HasPrefix(lower, "x-own") {
			names = append(names, name)
		}
	}
	return names
}

// A gateway removes reserved headers in both directions, from all parts of a message and in any
// spelling.
func TestReservedHeadersAreRemoved(t *testing.T) {
	set := func(h http.Header, prefix string) {
		for _, name := range []string{"Leasehold-Refused", "leasehold_refused", "X-Own"} {
			h[prefix+name] = []string{"1"}
		}
	}
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		seen := make(chan *http.Request, 1)
		stub(c, "a", func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			seen <- r.Clone(t.Context())
			set(w.Header(), "")
			w.WriteHeader(http.StatusEarlyHints)
			w.Header().Set("Trailer", "Leasehold-Error, X-Own-Trailer")
			_, _ = io.WriteString(w, "served")
			_ = http.NewResponseController(w).Flush()
			w.Header().Set("Leasehold-Error", "1")
			w.Header().Set("X-Own-Trailer", "1")
			set(w.Header(), http.TrailerPrefix)
		})
		c.Settle()
		startGateway(t, c, leasehttp.TransportConfig{}, leasehttp.ProxyConfig{})

		var hints http.Header
		r := request(t, "POST", gateway, "")
		r = r.WithContext(httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
			Got1xxResponse: func(_ int, h textproto.MIMEHeader) error { hints = http.Header(h); return nil },
		}))
		set(r.Header, "")
		r.Body, r.GetBody, r.ContentLength = unknown{strings.NewReader("x")}, nil, -1
		r.Trailer = http.Header{"Leasehold-Key": {"1"}, "X-Own-Trailer": {"1"}}
		got, err := base(c.Node("caller")).RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		if body, err := io.ReadAll(got.Body); string(body) != "served" || err != nil {
			t.Errorf("%q, %v", body, err)
		}
		_ = got.Body.Close()
		request := <-seen
		request.Header.Del(leasehttp.HeaderKey) // set by the gateway
		for name, c := range map[string]struct {
			header http.Header
			want   []string
		}{
			"the request":          {request.Header, []string{"X-Own"}},
			"its trailer":          {request.Trailer, []string{"X-Own-Trailer"}},
			"the hints":            {hints, []string{"X-Own"}},
			"the answer":           {got.Header, []string{"X-Own"}},
			"the answer's trailer": {got.Trailer, []string{"X-Own", "X-Own-Trailer"}},
		} {
			names := slices.Sorted(slices.Values(own(c.header)))
			if diff := cmp.Diff(c.want, names); diff != "" {
				t.Errorf("%s: %s", name, diff)
			}
		}
	})
}
