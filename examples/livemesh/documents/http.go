package documents

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/examples/livemesh/jsonhttp"
	"github.com/leasehold-dev/leasehold/leasehttp"
)

// maxRequest is how long a request may be: the largest document, and what is around it.
const maxRequest = MaxBytes + 64<<10

// Key is where in a request the name of its document is.
func Key() leasehttp.Source { return leasehttp.PathSegment(2) }

// Handler serves the API.
func (s *Service) Handler() http.Handler {
	mux := http.NewServeMux()
	handle := func(pattern string, answer func(w http.ResponseWriter, r *http.Request) (any, error)) {
		mux.Handle(pattern, jsonhttp.Answer(func(w http.ResponseWriter, r *http.Request) (any, error) {
			s.Owner().Await(r.Context(), leasehold.KeyOf(r.PathValue("name"))) // if it is about to arrive
			return answer(w, r)
		}))
	}
	handle("GET /documents/{name}", func(_ http.ResponseWriter, r *http.Request) (any, error) {
		return s.Get(r.PathValue("name"))
	})
	handle("PATCH /documents/{name}", s.patch)
	handle("DELETE /documents/{name}", func(_ http.ResponseWriter, r *http.Request) (any, error) {
		if _, err := condition(r, ""); err != nil {
			return nil, err
		}
		return nil, s.Delete(r.Context(), r.PathValue("name"))
	})
	handle("POST /documents/{name}/refresh", func(_ http.ResponseWriter, r *http.Request) (any, error) {
		return nil, s.Refresh(r.Context(), r.PathValue("name"))
	})
	handle("GET /documents/{name}/sections/{section}", s.getSection)
	handle("PUT /documents/{name}/sections/{section}", s.putSection)
	handle("DELETE /documents/{name}/sections/{section}", s.deleteSection)
	return jsonhttp.Routes(mux)
}

func (s *Service) patch(_ http.ResponseWriter, r *http.Request) (any, error) {
	if _, err := condition(r, ""); err != nil {
		return nil, err
	}
	data, err := jsonhttp.Read(r, maxRequest)
	if err != nil {
		return nil, err
	}
	var c Change
	if err := jsonhttp.Decode(data, &c); err != nil {
		return nil, leasehold.Errorf("change document", leasehold.Invalid, r.PathValue("name"), "want a change as JSON, with set, remove and if: %w", err)
	}
	return s.Change(r.Context(), r.PathValue("name"), c)
}

func (s *Service) getSection(w http.ResponseWriter, r *http.Request) (any, error) {
	d, err := s.Get(r.PathValue("name"))
	if err != nil {
		return nil, err
	}
	return d.section(w, r)
}

func (d *Document) section(w http.ResponseWriter, r *http.Request) (any, error) {
	name := r.PathValue("section")
	section, ok := d.Sections[name]
	if !ok {
		return nil, leasehold.Errorf("get section", leasehold.NotFound, name, "document %q has no such section", r.PathValue("name"))
	}
	w.Header().Set("ETag", `"`+section.Version+`"`)
	return section, nil
}

func (s *Service) putSection(w http.ResponseWriter, r *http.Request) (any, error) {
	data, err := jsonhttp.Read(r, maxRequest)
	if err != nil {
		return nil, err
	}
	section := r.PathValue("section")
	only, err := condition(r, section)
	if err != nil {
		return nil, err
	}
	d, err := s.Change(r.Context(), r.PathValue("name"), Change{If: only, Set: map[string]json.RawMessage{section: data}})
	if err != nil {
		return nil, err
	}
	return d.section(w, r)
}

func (s *Service) deleteSection(_ http.ResponseWriter, r *http.Request) (any, error) {
	section := r.PathValue("section")
	only, err := condition(r, section)
	if err != nil {
		return nil, err
	}
	_, err = s.Change(r.Context(), r.PathValue("name"), Change{If: only, Remove: []string{section}})
	return nil, err
}

// condition is what a request's headers ask of the section that it changes. What we do not
// know is refused: a change that its caller takes for conditional must not happen without.
func condition(r *http.Request, section string) (map[string]string, error) {
	match, none := r.Header.Values("If-Match"), r.Header.Values("If-None-Match")
	switch {
	case len(match)+len(none) == 0:
		return nil, nil
	case len(match) == 0 && len(none) == 1 && none[0] == "*" && section != "":
		return map[string]string{section: ""}, nil
	case len(match) == 1 && len(none) == 0 && section != "" && match[0] == "*":
		return map[string]string{section: "*"}, nil
	case len(match) == 1 && len(none) == 0 && section != "":
		version, opened := strings.CutPrefix(match[0], `"`)
		version, closed := strings.CutSuffix(version, `"`)
		if opened && closed && version != "" && !strings.Contains(version, `"`) {
			return map[string]string{section: version}, nil
		}
	}
	return nil, leasehold.Errorf("change document", leasehold.Invalid, r.PathValue("name"),
		"a change of one section may have If-Match with one version in quotes or *, or If-None-Match: *; one of more sections has its conditions in \"if\"")
}
