package agent

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/leasehold-dev/leasehold/leaseholdtest"
	"github.com/leasehold-dev/leasehold/server/daemon"
)

// An openAPI is the document of the API, as decoded by encoding/json.
type openAPI struct {
	Paths      map[string]map[string]operation
	Components struct{ Schemas map[string]object }
}

type operation struct {
	Parameters  []struct{ Name, In string }
	RequestBody struct{ Content contents }
	Responses   map[string]struct{ Content contents }
}

type contents map[string]struct{ Schema object }

// mismatch returns why a value does not match a schema, or "". Every property of the value must be in the schema, even
// if the schema permits others. It panics on keywords of schemas that it does not know.
func (d *openAPI) mismatch(schema object, value any) string {
	for keyword, want := range schema {
		wrong := ""
		switch keyword {
		case "$ref":
			wrong = d.mismatch(d.Components.Schemas[strings.TrimPrefix(want.(string), "#/components/schemas/")], value)
		case "type":
			kinds := map[string]any{"object": map[string]any{}, "array": []any{}, "string": "", "boolean": false, "number": 0.0, "integer": 0.0}
			n, isNumber := value.(float64)
			if reflect.TypeOf(value) != reflect.TypeOf(kinds[want.(string)]) || isNumber && want == "integer" && n != float64(int64(n)) {
				wrong = fmt.Sprintf("%v is no %v", value, want)
			}
			if all, ok := value.(map[string]any); ok {
				known, _ := schema["properties"].(map[string]any)
				for name, v := range all {
					if property, ok := known[name].(map[string]any); !ok {
						wrong = "unknown property " + name
					} else if why := d.mismatch(property, v); why != "" {
						wrong = name + ": " + why
					}
				}
			}
		case "required":
			for _, name := range want.([]any) {
				if all, _ := value.(map[string]any); all[name.(string)] == nil {
					wrong = fmt.Sprintf("%v lacks %v", value, name)
				}
			}
		case "items":
			all, _ := value.([]any)
			for _, item := range all {
				wrong += d.mismatch(want.(map[string]any), item)
			}
		case "oneOf", "anyOf":
			matches, whys := 0, ""
			for _, s := range want.([]any) {
				if why := d.mismatch(s.(map[string]any), value); why == "" {
					matches++
				} else {
					whys += why + "; "
				}
			}
			if matches == 0 || matches > 1 && keyword == "oneOf" {
				wrong = fmt.Sprintf("%d of %s match: %s", matches, keyword, whys)
			}
		case "enum":
			if !slices.Contains(want.([]any), value) {
				wrong = fmt.Sprintf("%v is not in %v", value, want)
			}
		case "pattern":
			if text, _ := value.(string); !regexp.MustCompile(want.(string)).MatchString(text) {
				wrong = fmt.Sprintf("%v does not match %v", value, want)
			}
		case "properties", "additionalProperties", "description": // see type
		default:
			panic("unknown keyword " + keyword)
		}
		if wrong != "" {
			return wrong
		}
	}
	return ""
}

// do sends a request, and returns the status, the content type and the body. A stream is read up to its first line.
func (p *program) do(method, path string, body any) (int, string, []byte) {
	p.t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		p.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(p.t.Context())
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, p.base+path, bytes.NewReader(text))
	if err != nil {
		p.t.Fatal(err)
	}
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/json")
	} else {
		r.Body, r.ContentLength = nil, 0
	}
	w, err := p.http.Do(r)
	if err != nil {
		p.t.Fatal(err)
	}
	defer w.Body.Close() //nolint:errcheck // it was only read
	kind, _, _ := strings.Cut(w.Header.Get("Content-Type"), ";")
	if kind == "application/x-ndjson" {
		line, _ := bufio.NewReader(w.Body).ReadBytes('\n')
		return w.StatusCode, kind, line
	}
	all, err := io.ReadAll(w.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return w.StatusCode, kind, all
}

// matches reports a response that the document does not have.
func (d *openAPI) matches(t *testing.T, name string, op operation, status int, kind string, body []byte) {
	t.Helper()
	response, ok := op.Responses[fmt.Sprint(status)]
	if !ok && status >= http.StatusBadRequest {
		response, ok = op.Responses["default"], true
	}
	content, found := response.Content[kind]
	if !ok || !found {
		t.Errorf("%s: status %d with %s is not in the document: %s", name, status, kind, body)
		return
	}
	var value any = string(body)
	if kind != "text/plain" {
		if err := json.Unmarshal(body, &value); err != nil {
			t.Errorf("%s: %v: %s", name, err, body)
			return
		}
	}
	if why := d.mismatch(content.Schema, value); why != "" {
		t.Errorf("%s: the response does not match the document: %s", name, why)
	}
}

// requests are valid requests, in their order: each operation with all fields and parameters that it has.
func requests() []struct {
	operation, query string
	body             object
} {
	return []struct {
		operation, query string
		body             object
	}{
		{"GET /healthz", "", nil},
		{"GET /metrics", "", nil},
		{"POST /v1/owners", "", object{"namespace": "test", "addr": "a:8080", "name": "a", "weight": 1.0, "load": "reported", "process": false, "ttl_ms": 60000.0, "timeout_ms": 5000.0}},
		{"POST /v1/owners/{id}/await", "", object{"name": "alice", "timeout_ms": 5000.0}},
		{"POST /v1/owners/{id}/leases", "", object{}},
		{"POST /v1/owners/{id}/check", "", object{"name": "alice"}},
		{"POST /v1/owners/{id}/check", "", object{"key": "73a3ea485f2e6049"}},
		{"POST /v1/owners/{id}/held", "", object{"name": "alice", "generation": "1"}},
		{"POST /v1/owners/{id}/report", "", object{"costs": []any{map[string]any{"name": "alice", "cost": 12.5}}}},
		{"GET /v1/owners/{id}/events", "", nil},
		{"GET /v1/namespaces/{namespace}/find", "?name=alice&refresh=true", nil},
		{"GET /v1/namespaces/{namespace}/find", "?key=73a3ea485f2e6049", nil},
		{"GET /v1/namespaces/{namespace}/losses", "?since=1", nil},
		{"GET /v1/status", "", nil},
		{"DELETE /v1/owners/{id}", "", nil},
	}
}

// TestOpenAPI: the agent serves exactly the operations of the document, and takes and returns exactly the bodies in it.
func TestOpenAPI(t *testing.T) {
	text, err := os.ReadFile("../../docs/reference/agent.openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	var d openAPI
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	unused := make(map[string]bool) // operations, and their parameters and fields
	for path, methods := range d.Paths {
		for method, op := range methods {
			name := strings.ToUpper(method) + " " + path
			unused[name] = true
			for _, p := range op.Parameters {
				unused[name+" "+p.Name] = p.In == "query"
			}
		}
	}
	scrape := func(cfg *Config) { cfg.Scrape = daemon.Scrapes(daemon.NewRegistry(), slog.New(slog.DiscardHandler)) }
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		startAgent(t, c, "a", scrape)
		p := newProgram(t, c, "a")
		for _, r := range requests() {
			method, pattern, _ := strings.Cut(r.operation, " ")
			op, ok := d.Paths[pattern][strings.ToLower(method)]
			if !ok {
				t.Errorf("%s is not in the document", r.operation)
				continue
			}
			delete(unused, r.operation)
			path := strings.NewReplacer("{id}", p.id, "{namespace}", string(c.Namespace())).Replace(pattern)
			for _, parameter := range op.Parameters {
				if parameter.In == "path" || strings.Contains(r.query, parameter.Name+"=") {
					delete(unused, r.operation+" "+parameter.Name)
				}
			}
			if r.query != "" {
				status, kind, body := p.do(method, path+r.query+"&unknown=1", nil)
				if d.matches(t, r.operation, op, status, kind, body); status != http.StatusBadRequest {
					t.Errorf("%s with an unknown parameter: status %d", r.operation, status)
				}
			}
			if r.body != nil {
				d.refuses(t, p, r.operation, path, op, r.body)
			}
			status, kind, body := p.do(method, path+r.query, r.body)
			if d.matches(t, r.operation, op, status, kind, body); status >= http.StatusBadRequest {
				t.Errorf("%s: status %d: %s", r.operation, status, body)
			}
			if pattern == "/v1/owners" {
				var joined joinAnswer
				if err := json.Unmarshal(body, &joined); err != nil {
					t.Fatal(err)
				}
				p.id = joined.ID
			}
		}
		for name, missing := range unused {
			if missing {
				t.Errorf("the document has %s, which no request of this test uses", name)
			}
		}
	})
	for _, r := range Routes() {
		if _, ok := d.Paths[r.Path][strings.ToLower(r.Method)]; !ok {
			t.Errorf("%s %s is not in the document", r.Method, r.Path)
		}
	}
}

// refuses checks that the agent and the document agree about bodies that are slightly wrong, and that the document has a
// valid one.
func (d *openAPI) refuses(t *testing.T, p *program, name, path string, op operation, valid object) {
	t.Helper()
	schema := op.RequestBody.Content["application/json"].Schema
	if why := d.mismatch(schema, map[string]any(valid)); why != "" {
		t.Errorf("%s: %v does not match the document: %s", name, valid, why)
	}
	wrong := []object{{"unknown": 1.0}}
	for field := range valid {
		wrong = append(wrong, object{field: nil}, object{field: true})
	}
	for _, change := range wrong {
		body := maps.Clone(valid)
		for field, value := range change {
			if body[field] = value; value == nil {
				delete(body, field)
			}
		}
		if d.mismatch(schema, map[string]any(body)) == "" {
			continue // an optional field
		}
		status, kind, answer := p.do(http.MethodPost, path, body)
		if d.matches(t, name, op, status, kind, answer); status != http.StatusBadRequest {
			t.Errorf("%s: the document forbids %v, and the agent answers with status %d: %s", name, body, status, answer)
		}
	}
	for field := range d.properties(schema) {
		if _, ok := valid[field]; !ok && field != "key" && field != "name" {
			t.Errorf("%s: this test has no request with %s", name, field)
		}
	}
}

func (d *openAPI) properties(schema object) map[string]any {
	if name, ok := schema["$ref"].(string); ok {
		schema = d.Components.Schemas[strings.TrimPrefix(name, "#/components/schemas/")]
	}
	all, _ := schema["properties"].(map[string]any)
	return all
}
