package demo

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/witness"
	"github.com/leasehold-dev/leasehold/owner"
)

const someKey leasehold.Key = 7

// fakeLeases holds every key under one generation, none if that is 0.
type fakeLeases struct {
	generation leasehold.Generation
	unheld     bool // leases end before Held
}

func (f *fakeLeases) Check(key leasehold.Key) (owner.Lease, bool) {
	return owner.Lease{Lease: leasehold.Lease{Range: leasehold.All, Generation: f.generation}, Key: key}, f.generation != 0
}

func (f *fakeLeases) Held(l owner.Lease) bool { return !f.unheld && l.Generation == f.generation }

func startPresence() (*presence, *fakeLeases, *[]witness.Record) {
	leases := &fakeLeases{generation: 1}
	var records []witness.Record
	p := newPresence(leases, leasehold.Session{1}, func(r ...witness.Record) error {
		records = append(records, r...)
		return nil
	})
	return p, leases, &records
}

func TestPresenceRemembers(t *testing.T) {
	p, _, records := startPresence()
	mustSet(t, p, 5, "away")
	mustSet(t, p, 4, "late") // has no effect
	if s, err := p.get(someKey); err != nil || s.number != 5 || s.text != "away" {
		t.Errorf("got %+v, %v", s, err)
	}
	if len(*records) != 3 {
		t.Fatalf("%d records, want 3", len(*records))
	}
	for _, r := range *records {
		if r.Key != someKey || r.Generation != 1 || r.Session != (leasehold.Session{1}) ||
			r.Check.Before > r.Check.After || r.Check.After > r.Held.Before || r.Held.Before > r.Held.After || r.Check.Before == 0 {
			t.Errorf("record %+v", r)
		}
	}
}

func mustSet(t *testing.T, p *presence, number uint64, text string) {
	t.Helper()
	if _, err := p.set(someKey, number, text); err != nil {
		t.Fatal(err)
	}
}

// TestPresenceForgetsEarlierTenures is obligation 2.
func TestPresenceForgetsEarlierTenures(t *testing.T) {
	p, leases, records := startPresence()
	mustSet(t, p, 5, "away")
	leases.generation = 2
	if s, err := p.get(someKey); err != nil || s.number != 0 || s.text != "" {
		t.Errorf("got %+v, %v", s, err)
	}
	leases.generation = 1 // a request that is late
	if _, err := p.get(someKey); !errors.Is(err, leasehold.NotOwner) {
		t.Errorf("got %v", err)
	}
	// That a lower generation was held later is for the oracle to know.
	o := witness.NewOracle(1)
	for _, r := range *records {
		o.Observe(r)
	}
	if v := o.Judge(); v.Checked != 3 || v.Reversals != 1 {
		t.Errorf("the oracle saw %+v", v)
	}
}

// TestPresenceRefuses is obligations 1 and 4.
func TestPresenceRefuses(t *testing.T) {
	p, leases, records := startPresence()
	leases.unheld = true
	if _, err := p.set(someKey, 1, "away"); !errors.Is(err, leasehold.NotOwner) {
		t.Errorf("not held: got %v", err)
	}
	if r := (*records)[0]; r.Held != (witness.Span{}) || r.Check == (witness.Span{}) {
		t.Errorf("only the check succeeded, and the record is %+v", r)
	}
	leases.generation = 0
	if _, err := p.set(someKey, 1, "away"); !errors.Is(err, leasehold.NotOwner) {
		t.Errorf("no lease: got %v", err)
	}
	p.suspended = func(leasehold.Key) bool { return true }
	if _, err := p.set(someKey, 1, "away"); !errors.Is(err, leasehold.Suspended) || codeOf(err) != http.StatusServiceUnavailable {
		t.Errorf("suspended: got %v", err)
	}
	if len(*records) != 1 {
		t.Errorf("a check that failed was recorded: %+v", (*records)[1:])
	}
}

// TestPresenceIsLookedAt: what is looked at is what get says, whatever the lease.
func TestPresenceIsLookedAt(t *testing.T) {
	for _, test := range []struct {
		name       string
		generation leasehold.Generation
		unheld     bool
	}{
		{"as it was set", 2, false},
		{"a later tenure", 3, false},
		{"an earlier tenure", 1, false},
		{"no lease", 0, false},
		{"not held", 2, true},
	} {
		p, leases, records := startPresence()
		leases.generation = 2
		mustSet(t, p, 5, "away")
		told := len(*records)
		leases.generation, leases.unheld = test.generation, test.unheld
		number, owned := p.look(someKey)
		if len(*records) != told {
			t.Errorf("%s: the witness was told", test.name)
		}
		s, err := p.get(someKey)
		if number != s.number || owned != (err == nil) {
			t.Errorf("%s: looked at %d, %t; got %d, %v", test.name, number, owned, s.number, err)
		}
	}
}

func TestPresenceClears(t *testing.T) {
	p, leases, _ := startPresence()
	mustSet(t, p, 5, "away")
	p.clear([]leasehold.Lease{{Range: leasehold.Range{Start: someKey + 1}, Generation: 1}})
	leases.generation = 2
	if _, err := p.set(someKey+1, 1, "here"); err != nil {
		t.Fatal(err)
	}
	p.clear([]leasehold.Lease{{Range: leasehold.All, Generation: 1}})
	if _, has := p.statuses.of(someKey).known[someKey]; has || p.statuses.count.Load() != 1 {
		t.Errorf("%d are left", p.statuses.count.Load())
	}
}

func TestPresenceOverHTTP(t *testing.T) {
	p, leases, _ := startPresence()
	handler := p.handler()
	for _, test := range []struct {
		method, path, body string
		generation         leasehold.Generation
		code               int
		want               statusDocument
	}{
		{"GET", "/presence/ann", "", 1, 200, statusDocument{User: "ann"}},
		{"PUT", "/presence/ann", `{"status":"away","number":3}`, 1, 200, statusDocument{User: "ann", Status: "away", Number: 3}},
		{"GET", "/presence/ann", "", 1, 200, statusDocument{User: "ann", Status: "away", Number: 3}},
		{"GET", "/presence/bob", "", 1, 200, statusDocument{User: "bob"}},
		{"GET", "/presence/ann", "", 0, 421, statusDocument{User: "ann"}},
		{"PUT", "/presence/ann", `{"status":"away","number":4}`, 0, 421, statusDocument{User: "ann"}},
		{"PUT", "/presence/ann", `{"status":"away"}`, 1, 400, statusDocument{}},
		{"PUT", "/presence/ann", `{"status":"` + strings.Repeat("x", maxBodySize) + `","number":4}`, 1, 400, statusDocument{}},
		{"GET", "/presence/" + strings.Repeat("x", maxUserLen+1), "", 1, 400, statusDocument{}},
	} {
		leases.generation = test.generation
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(test.method, test.path, strings.NewReader(test.body)))
		var got statusDocument
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
			t.Fatal(err)
		}
		if wrong := test.code != http.StatusOK; wrong != (got.Error != "") {
			t.Errorf("%s %.30s: error %q", test.method, test.path, got.Error)
		}
		got.Error = ""
		if w.Code != test.code || got != test.want {
			t.Errorf("%s %.30s: %d %+v, want %d %+v", test.method, test.path, w.Code, got, test.code, test.want)
		}
	}
}
