package documents_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/examples/livemesh/documents"
	"github.com/leasehold-dev/leasehold/examples/livemesh/jsonhttp"
	"github.com/leasehold-dev/leasehold/examples/livemesh/meshtest"
	"github.com/leasehold-dev/leasehold/leaseholdtest"
)

// alone runs a test with one server.
func alone(t *testing.T, test func(t *testing.T, c *leaseholdtest.Cluster, api *documents.Client)) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		serve(t, c.Node("a"))
		c.Settle()
		test(t, c, client(t, c, c.Node("caller")))
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
	alone(t, func(t *testing.T, _ *leaseholdtest.Cluster, api *documents.Client) {
		ctx := t.Context()
		if _, err := api.Get(ctx, "home pc"); !errors.Is(err, leasehold.ErrNotFound) {
			t.Errorf("a missing document: %v", err)
		}
		d, err := api.Change(ctx, "home pc", set("address", `"10.0.0.1"`, "name", `{"of": "home"}`))
		if err != nil || len(d.Sections) != 2 {
			t.Fatalf("%v, %v", d, err)
		}
		first := d.Sections["address"].Version
		d, err = api.Change(ctx, "home pc", set("address", `"10.0.0.2"`))
		if err != nil || string(d.Sections["address"].Data) != `"10.0.0.2"` || d.Sections["address"].Version == first {
			t.Errorf("%v, %v", d, err)
		}
		stale := set("address", `"10.0.0.3"`, "name", `"x"`)
		stale.If = map[string]string{"address": first}
		if _, err := api.Change(ctx, "home pc", stale); !errors.Is(err, leasehold.ErrStale) {
			t.Errorf("a change of another version: %v", err)
		}
		again, err := api.Get(ctx, "home pc")
		if err != nil || string(again.Sections["name"].Data) != `{"of":"home"}` && string(again.Sections["name"].Data) != `{"of": "home"}` {
			t.Errorf("a refused change has changed the document: %v, %v", again, err)
		}
		if _, err := api.Change(ctx, "home pc", documents.Change{Remove: []string{"address", "name"}}); err != nil {
			t.Error(err)
		}
		if _, err := api.Get(ctx, "home pc"); !errors.Is(err, leasehold.ErrNotFound) {
			t.Errorf("a document without sections: %v", err)
		}
	})
}

func TestExpires(t *testing.T) {
	alone(t, func(t *testing.T, c *leaseholdtest.Cluster, api *documents.Client) {
		ctx := t.Context()
		for _, name := range []string{"refreshed", "forgotten"} {
			if _, err := api.Change(ctx, name, set("a", "1")); err != nil {
				t.Fatal(err)
			}
		}
		c.Advance(40 * time.Minute)
		if err := api.Refresh(ctx, "refreshed"); err != nil {
			t.Error(err)
		}
		c.Advance(40 * time.Minute)
		if _, err := api.Get(ctx, "refreshed"); err != nil {
			t.Error(err)
		}
		if err := api.Refresh(ctx, "forgotten"); !errors.Is(err, leasehold.ErrNotFound) {
			t.Errorf("refreshing an expired one: %v", err)
		}
		if err := api.Delete(ctx, "refreshed"); err != nil {
			t.Error(err)
		}
		if _, err := api.Get(ctx, "refreshed"); !errors.Is(err, leasehold.ErrNotFound) {
			t.Error(err)
		}
	})
}

// TestStatuses: every kind of invalid input has its status, and changes nothing.
func TestStatuses(t *testing.T) {
	alone(t, func(t *testing.T, _ *leaseholdtest.Cluster, api *documents.Client) {
		if _, err := api.Change(t.Context(), "d", set("s", "1")); err != nil {
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
		long := strings.Repeat("x", documents.MaxBytes)
		meshtest.Check(t, api.HTTP, api.URL, []meshtest.Case{
			{What: "no document", Method: "GET", Path: "/documents/none", Status: 404},
			{What: "not JSON", Method: "PATCH", Path: "/documents/d", Body: "{", Status: 400},
			{What: "not a change", Method: "PATCH", Path: "/documents/d", Body: "[]", Status: 400},
			{What: "nothing to change", Method: "PATCH", Path: "/documents/d", Body: "{}", Status: 400},
			{What: "a misspelled change", Method: "PATCH", Path: "/documents/d", Body: `{"set": {"s": 2}, "iff": {"s": "9.9"}}`, Status: 400, Has: "iff"},
			{What: "two changes", Method: "PATCH", Path: "/documents/d", Body: `{"set": {"s": 2}} {}`, Status: 400},
			{What: "set and removed", Method: "PATCH", Path: "/documents/d", Body: `{"set": {"s": 2}, "remove": ["s"]}`, Status: 400, Has: "to be removed"},
			{What: "a section without a name", Method: "PATCH", Path: "/documents/d", Body: `{"set": {"": 2}}`, Status: 400, Has: "a section has a name"},
			{What: "another version", Method: "PATCH", Path: "/documents/d", Body: `{"set": {"s": 2}, "if": {"s": "9.9"}}`, Status: 412},
			{What: "it is there", Method: "PATCH", Path: "/documents/d", Body: `{"set": {"s": 2}, "if": {"s": ""}}`, Status: 412},
			{What: "it is not there", Method: "PATCH", Path: "/documents/d", Body: `{"set": {"t": 2}, "if": {"t": "1.1"}}`, Status: 412},
			{What: "no such path", Method: "GET", Path: "/documents/d/sections", Status: 404},
			{What: "no such method", Method: "POST", Path: "/documents/d", Status: 405},
			{What: "a name that is no text", Method: "GET", Path: "/documents/%ff", Status: 400, Has: "UTF-8"},
			{What: "too long", Method: "PATCH", Path: "/documents/d", Body: `{"set": {"t": "` + long + `"}}`, Status: 400, Has: "are allowed"},
			{What: "far too long", Method: "PATCH", Path: "/documents/d", Body: `{"set": {"t": "` + long + `"}}` + strings.Repeat(" ", 1<<16), Status: 413},
			{What: "too many sections", Method: "PATCH", Path: "/documents/d", Body: string(tooMany), Status: 400, Has: "are allowed"},
			{What: "a long name", Method: "GET", Path: "/documents/" + strings.Repeat("n", jsonhttp.MaxName+1), Status: 400},
			{What: "unchanged", Method: "GET", Path: "/documents/d", Status: 200, Has: `"data":1}}`},
			{What: "a new section", Method: "PATCH", Path: "/documents/d", Body: `{"set": {"t": 2}, "if": {"t": ""}}`, Status: 200, Has: `"data":2`},
		})
	})
}
