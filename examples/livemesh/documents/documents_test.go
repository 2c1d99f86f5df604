package documents_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/examples/livemesh/documents"
	"github.com/leasehold-dev/leasehold/leaseholdtest"
)

// alone runs a test with one server.
func alone(t *testing.T, test func(t *testing.T, c *leaseholdtest.Cluster, asks *documents.Client)) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		serve(t, c.Node("a"))
		c.Settle()
		test(t, c, client(t, c.Node("caller")))
	})
}

func set(sections ...string) documents.Change {
	c := documents.Change{Set: make(map[string]json.RawMessage)}
	for i := 0; i < len(sections); i += 2 {
		c.Set[sections[i]] = json.RawMessage(sections[i+1])
	}
	return c
}

func TestSections(t *testing.T) {
	alone(t, func(t *testing.T, _ *leaseholdtest.Cluster, asks *documents.Client) {
		ctx := t.Context()
		if _, err := asks.Get(ctx, "home pc"); !errors.Is(err, leasehold.NotFound) {
			t.Errorf("a document that is not there: %v", err)
		}
		d, err := asks.Change(ctx, "home pc", set("address", `"10.0.0.1"`, "name", `{"of": "home"}`))
		if err != nil || len(d.Sections) != 2 {
			t.Fatalf("%v, %v", d, err)
		}
		first := d.Sections["address"].Version
		d, err = asks.Change(ctx, "home pc", set("address", `"10.0.0.2"`))
		if err != nil || string(d.Sections["address"].Data) != `"10.0.0.2"` || d.Sections["address"].Version == first {
			t.Errorf("%v, %v", d, err)
		}
		stale := set("address", `"10.0.0.3"`, "name", `"x"`)
		stale.If = map[string]string{"address": first}
		if _, err := asks.Change(ctx, "home pc", stale); !errors.Is(err, leasehold.Stale) {
			t.Errorf("a change of another version: %v", err)
		}
		again, err := asks.Get(ctx, "home pc")
		if err != nil || string(again.Sections["name"].Data) != `{"of":"home"}` && string(again.Sections["name"].Data) != `{"of": "home"}` {
			t.Errorf("a change that was refused has changed something: %v, %v", again, err)
		}
		if _, err := asks.Change(ctx, "home pc", documents.Change{Remove: []string{"address", "name"}}); err != nil {
			t.Error(err)
		}
		if _, err := asks.Get(ctx, "home pc"); !errors.Is(err, leasehold.NotFound) {
			t.Errorf("a document without sections: %v", err)
		}
	})
}

func TestExpires(t *testing.T) {
	alone(t, func(t *testing.T, c *leaseholdtest.Cluster, asks *documents.Client) {
		ctx := t.Context()
		for _, name := range []string{"refreshed", "forgotten"} {
			if _, err := asks.Change(ctx, name, set("a", "1")); err != nil {
				t.Fatal(err)
			}
		}
		c.Advance(40 * time.Minute)
		if err := asks.Refresh(ctx, "refreshed"); err != nil {
			t.Error(err)
		}
		c.Advance(40 * time.Minute)
		if _, err := asks.Get(ctx, "refreshed"); err != nil {
			t.Error(err)
		}
		if err := asks.Refresh(ctx, "forgotten"); !errors.Is(err, leasehold.NotFound) {
			t.Errorf("refreshing what has expired: %v", err)
		}
		if err := asks.Delete(ctx, "refreshed"); err != nil {
			t.Error(err)
		}
		if _, err := asks.Get(ctx, "refreshed"); !errors.Is(err, leasehold.NotFound) {
			t.Error(err)
		}
	})
}

// Every kind of bad input has a status of its own, and changes nothing.
func TestStatuses(t *testing.T) {
	alone(t, func(t *testing.T, _ *leaseholdtest.Cluster, asks *documents.Client) {
		if _, err := asks.Change(t.Context(), "d", set("s", "1")); err != nil {
			t.Fatal(err)
		}
		many := make([]string, 0, 2*documents.MaxSections+2)
		for i := range documents.MaxSections + 1 {
			many = append(many, fmt.Sprint("s", i), "1")
		}
		tooMany, err := json.Marshal(set(many...))
		if err != nil {
			t.Fatal(err)
		}
		long := `"` + strings.Repeat("x", documents.MaxBytes) + `"`
		for _, test := range []struct {
			what, method, path, body string
			header                   string
			status                   int
		}{
			{"no document", "GET", "/documents/none", "", "", 404},
			{"no section", "GET", "/documents/d/sections/none", "", "", 404},
			{"a section", "GET", "/documents/d/sections/s", "", "", 200},
			{"not JSON", "PUT", "/documents/d/sections/s", "{", "", 400},
			{"not a change", "PATCH", "/documents/d", "[]", "", 400},
			{"nothing to change", "PATCH", "/documents/d", "{}", "", 400},
			{"another version", "PUT", "/documents/d/sections/s", "2", `If-Match: "9.9"`, 412},
			{"it is there", "PUT", "/documents/d/sections/s", "2", `If-None-Match: *`, 412},
			{"too long", "PUT", "/documents/d/sections/s", long, "", 413},
			{"far too long", "PUT", "/documents/d/sections/s", long + strings.Repeat(" ", 1<<16), "", 413},
			{"too many sections", "PATCH", "/documents/d", string(tooMany), "", 413},
			{"a long name", "PUT", "/documents/" + strings.Repeat("n", documents.MaxName+1) + "/sections/s", "1", "", 400},
			{"unchanged", "GET", "/documents/d/sections/s", "", "", 200},
			{"a new section", "PUT", "/documents/d/sections/t", "1", `If-None-Match: *`, 200},
			{"removed", "DELETE", "/documents/d/sections/s", "", "", 204},
		} {
			r, err := http.NewRequestWithContext(t.Context(), test.method, asks.URL+test.path, strings.NewReader(test.body))
			if err != nil {
				t.Fatal(err)
			}
			if name, value, ok := strings.Cut(test.header, ": "); ok {
				r.Header.Set(name, value)
			}
			answer, err := asks.HTTP.Do(r)
			if err != nil {
				t.Errorf("%s: %v", test.what, err)
				continue
			}
			body, _ := io.ReadAll(answer.Body)
			_ = answer.Body.Close()
			if answer.StatusCode != test.status {
				t.Errorf("%s: %s, want %d: %s", test.what, answer.Status, test.status, body)
			}
			if test.what == "unchanged" && !strings.Contains(string(body), `"data":1`) {
				t.Errorf("it has changed: %s", body)
			}
		}
	})
}
