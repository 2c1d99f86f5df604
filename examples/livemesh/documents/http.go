package documents

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/examples/livemesh/jsonhttp"
)

// maxRequest bounds a request in bytes: the largest document and its encoding.
const maxRequest = MaxBytes + 64<<10

// Handler serves the API.
func (s *Service) Handler() http.Handler {
	mux := jsonhttp.NewMux(s.documents.Owner())
	mux.Handle("GET /documents/{name}", func(r *jsonhttp.Request) (any, error) { return s.get(r) })
	mux.Handle("PATCH /documents/{name}", jsonhttp.Body(maxRequest, "a change, with set, remove and if,", s.patch))
	mux.Handle("DELETE /documents/{name}", s.delete)
	mux.Handle("POST /documents/{name}/refresh", s.refresh)
	mux.Serve("GET /documents/{name}/sections/{section}", func(w http.ResponseWriter, r *jsonhttp.Request) error {
		d, err := s.get(r)
		return answer(w, r, d, err)
	})
	mux.Serve("PUT /documents/{name}/sections/{section}", s.putSection)
	mux.Handle("DELETE /documents/{name}/sections/{section}", func(r *jsonhttp.Request) (any, error) {
		section := r.PathValue("section")
		only, err := condition(r, section)
		if err == nil {
			_, err = s.change(r, Change{If: only, Remove: []string{section}})
		}
		return nil, err
	})
	return mux
}

func (s *Service) patch(r *jsonhttp.Request, c Change) (any, error) {
	if _, err := condition(r, ""); err != nil {
		return nil, err
	}
	return s.change(r, c)
}

func (s *Service) putSection(w http.ResponseWriter, r *jsonhttp.Request) error {
	data, err := r.Read(maxRequest)
	if err != nil {
		return err
	}
	section := r.PathValue("section")
	only, err := condition(r, section)
	if err != nil {
		return err
	}
	d, err := s.change(r, Change{If: only, Set: map[string]json.RawMessage{section: data}})
	return answer(w, r, d, err)
}

func answer(w http.ResponseWriter, r *jsonhttp.Request, d Document, err error) error {
	if err != nil {
		return err
	}
	section, ok := d.Sections[r.PathValue("section")]
	if !ok {
		return leasehold.Errorf("get section", leasehold.ErrNotFound, r.PathValue("section"), "document %q has no such section", r.Name)
	}
	w.Header().Set("ETag", `"`+section.Version+`"`)
	jsonhttp.Write(w, section)
	return nil
}

// condition returns the condition in a request's headers. Unknown conditions are rejected: a
// change must not be executed without the condition that its caller intended.
func condition(r *jsonhttp.Request, section string) (map[string]string, error) {
	match, none := r.Header.Values("If-Match"), r.Header.Values("If-None-Match")
	switch {
	case len(match)+len(none) == 0:
		return nil, nil
	case len(match)+len(none) > 1 || section == "": // refused below
	case len(none) == 1 && none[0] == "*":
		return map[string]string{section: ""}, nil
	case len(match) == 1 && match[0] == "*":
		return map[string]string{section: "*"}, nil
	case len(match) == 1:
		version := strings.Trim(match[0], `"`)
		if version != "" && match[0] == `"`+version+`"` && !strings.Contains(version, `"`) {
			return map[string]string{section: version}, nil
		}
	}
	return nil, leasehold.Errorf("change document", leasehold.ErrInvalid, r.Name,
		"a change of one section may have If-Match with one version in quotes or *, or If-None-Match: *; one of more sections has its conditions in \"if\"")
}

// A Client is a client of the service.
type Client struct{ jsonhttp.Client }

// Get returns a document. It fails with [leasehold.ErrNotFound] if there is none.
func (c *Client) Get(ctx context.Context, name string) (Document, error) {
	return jsonhttp.Call[Document](ctx, c.Client, http.MethodGet, path(name), nil)
}

// Change changes sections of a document, all or none. It fails with [leasehold.ErrStale] if a
// section does not meet its condition.
func (c *Client) Change(ctx context.Context, name string, change Change) (Document, error) {
	return jsonhttp.Call[Document](ctx, c.Client, http.MethodPatch, path(name), change)
}

// Refresh extends the TTL of a document. If it fails with [leasehold.ErrNotFound], write the
// document again.
func (c *Client) Refresh(ctx context.Context, name string) error {
	return c.Do(ctx, http.MethodPost, path(name)+"/refresh", nil, nil)
}

// Delete removes a document, if there is one.
func (c *Client) Delete(ctx context.Context, name string) error {
	return c.Do(ctx, http.MethodDelete, path(name), nil, nil)
}

func path(name string) string { return jsonhttp.Path("documents", name) }
