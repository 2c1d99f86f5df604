package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/testkit/oracle"
	"github.com/leasehold-dev/leasehold/leaseholdtest"
	"github.com/leasehold-dev/leasehold/leasehttp"
	"github.com/leasehold-dev/leasehold/leasemap"
)

// records collects the reports of servers to the oracle.
type records struct {
	mu  sync.Mutex
	all []oracle.Record
}

// add records what a server reports to the oracle.
func (r *records) add(some ...oracle.Record) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, some...)
	return nil
}

// serveOn runs a server of the presence service on a node.
func serveOn(t *testing.T, n *leaseholdtest.Node, r *records) *leasemap.Map[status] {
	t.Helper()
	statuses, err := leasemap.Join(t.Context(), n.MovingConfig(), statusMap())
	if err != nil {
		t.Fatal(err)
	}
	n.Cleanup(func(ctx context.Context) { _ = statuses.Close(ctx) }) // it may be closed already
	n.Serve(newHandler(statuses, r.add))
	return statuses
}

// callersOn returns users on a node.
func callersOn(t *testing.T, n *leaseholdtest.Node, users int) *load {
	t.Helper()
	l := n.Lookup()
	base := &http.Transport{DialContext: n.DialContext}
	n.Cleanup(func(context.Context) { base.CloseIdleConnections() })
	routed, err := leasehttp.NewTransport(leasehttp.TransportConfig{Lookup: l, Key: leasehttp.PathSegment(2), Base: countedTransport{base}})
	if err != nil {
		t.Fatal(err)
	}
	return newLoad(&Config{Users: users, ValueSize: 30}, l, routed, base)
}

// TestStatusesMoveWithTheirUsers: statuses survive the departure of their server, and callers find
// them.
func TestStatusesMoveWithTheirUsers(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		var seen records
		first := serveOn(t, c.Node("a"), &seen)
		c.Settle()
		l := callersOn(t, c.Node("caller"), 20)
		if err := l.fill(t.Context(), func(int) {}); err != nil {
			t.Fatal(err)
		}
		serveOn(t, c.Node("b"), &seen)
		c.Settle()
		if err := within(time.Minute, first.Close); err != nil {
			t.Fatal(err)
		}
		if err := l.lookThrough(t.Context(), func(int) {}); err != nil {
			t.Fatal(err)
		}
		if got := l.tally.sum(); got.LookedUp != 20 || got.StaleAnswers+got.Garbled != 0 || l.tally.suspected(time.Now()) != 0 {
			t.Errorf("got %+v", got)
		}
		for _, u := range l.users.each(l.cfg.Users) {
			for _, set := range []bool{true, false} {
				out, _ := l.request(t.Context(), t.Context(), u, due{at: time.Now(), set: set})
				if out.err != nil || out.attempts.made != 1 || !out.owned {
					t.Errorf("%s: %+v", u.name(), out)
				}
			}
		}
		checkRecords(t, &seen, 40)
	})
}

// checkRecords checks that there is a record of each operation, with ordered times.
func checkRecords(t *testing.T, seen *records, want int) {
	t.Helper()
	o := oracle.New(100)
	for _, r := range seen.all {
		if r.Check.Before == 0 || r.Check.Before > r.Check.After || r.Check.After > r.Held.Before || r.Held.Before > r.Held.After || r.Generation == 0 {
			t.Errorf("record %+v", r)
		}
		o.Observe(r)
	}
	if v := o.Judge(); int(v.Checked) != want || v.First != "" {
		t.Errorf("verdict of the oracle: %+v", v)
	}
}

// TestPresenceOverHTTP sends single requests to two servers.
func TestPresenceOverHTTP(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		var seen records
		nodes := map[string]*leaseholdtest.Node{"a": c.Node("a"), "b": c.Node("b")}
		for _, n := range nodes {
			serveOn(t, n, &seen)
		}
		c.Settle()
		owner, _ := c.Owner(leasehold.KeyOf("ann"))
		has, other := nodes[owner].Addr(), nodes["a"].Addr()
		if owner == "a" {
			other = nodes["b"].Addr()
		}
		client := c.Node("caller").Client()
		for _, test := range []struct {
			addr, method, path, body string
			code                     int
			want                     string
		}{
			{has, "GET", "/presence/ann", "", 200, `{}`},
			{has, "PUT", "/presence/ann", `{"number":3,"text":"away"}`, 200, `{"number":3,"text":"away"}`},
			{has, "PUT", "/presence/ann", `{"number":2,"text":"late"}`, 200, `{"number":3,"text":"away"}`},
			{has, "GET", "/presence/ann", "", 200, `{"number":3,"text":"away"}`},
			{other, "GET", "/presence/ann", "", 421, ""},
			{other, "PUT", "/presence/ann", `{"number":4,"text":"here"}`, 421, ""},
			{has, "PUT", "/presence/ann", `{"number":`, 400, ""},
			{has, "PUT", "/presence/ann", `{"text":"` + strings.Repeat("x", maxBody) + `"}`, 413, ""},
			{has, "POST", "/presence", `[{"user":"ann"},{"user":"ann","number":4,"text":"x"}]`, 200, `[{"number":3,"text":"away"},{"number":4,"text":"x"}]`},
			{other, "POST", "/presence", `[{"user":"ann"}]`, 200, `[{"refused":true}]`},
			{has, "POST", "/presence", `[` + strings.Repeat(`{},`, maxBatch) + `{}]`, 400, ""},
		} {
			request, err := http.NewRequest(test.method, "http://"+test.addr+test.path, strings.NewReader(test.body))
			if err != nil {
				t.Fatal(err)
			}
			response, err := client.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			var got json.RawMessage
			err = json.NewDecoder(response.Body).Decode(&got)
			if response.StatusCode != test.code || err != nil || test.want != "" && !bytes.Equal(got, []byte(test.want)) {
				t.Errorf("%s %s %.40s: %d %s, %v; want %d %s", test.method, test.path, test.body, response.StatusCode, got, err, test.code, test.want)
			}
			_ = response.Body.Close()
		}
		checkRecords(t, &seen, 4) // of those that the owner has carried out, batches aside
	})
}
