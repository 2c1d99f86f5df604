package documents

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/examples/livemesh/jsonhttp"
	"github.com/leasehold-dev/leasehold/leasemap"
	"github.com/leasehold-dev/leasehold/owner"
)

// A Section is a part of a document.
type Section struct {
	Version string          `json:"version"`
	Data    json.RawMessage `json:"data"`
}

// A Document is its sections by name.
type Document struct {
	Sections map[string]Section `json:"sections"`
}

// A Change changes several sections of a document, all or none.
type Change struct {
	// If has the required versions of sections: "" requires that the section does not exist.
	If     map[string]string          `json:"if,omitempty"`
	Set    map[string]json.RawMessage `json:"set,omitempty"`
	Remove []string                   `json:"remove,omitempty"`
}

// Bounds on a document.
const (
	MaxSections = 64
	MaxBytes    = 1 << 20   // of all sections together
	TTL         = time.Hour // without a change or refresh
)

// maxRequest bounds a request in bytes: the largest document and its encoding.
const maxRequest = MaxBytes + 64<<10

// News reports that a document has changed.
type News struct {
	Document string `json:"document"`
}

// Announce sends the news of a change to its subscribers. The change is acknowledged when
// Announce returns nil.
type Announce func(ctx context.Context, news News) error

// A Service is one server of documents. It is safe for concurrent use.
type Service struct {
	announceTo Announce // nil: no announcements
	documents  *leasemap.Map[Document]
}

// Join joins the namespace as an owner. Announce may be nil.
func Join(ctx context.Context, as owner.Config, announce Announce) (*Service, error) {
	m, err := leasemap.Join(ctx, as, leasemap.Config[Document]{TTL: TTL})
	if err != nil {
		return nil, err
	}
	return &Service{announce, m}, nil
}

// Close transfers all documents to other servers, and serves them until then.
func (s *Service) Close(ctx context.Context) error { return s.documents.Close(ctx) }

// Handler serves the API.
func (s *Service) Handler() http.Handler {
	mux := jsonhttp.NewMux(s.documents.Owner(), maxRequest)
	jsonhttp.Handle(mux, "GET /documents/{name}", s.get)
	jsonhttp.Handle(mux, "PATCH /documents/{name}", s.change)
	jsonhttp.Handle(mux, "DELETE /documents/{name}", s.delete)
	jsonhttp.Handle(mux, "POST /documents/{name}/refresh", s.refresh)
	return mux
}

func (s *Service) get(r *jsonhttp.Request, _ jsonhttp.None) (Document, error) {
	d, exists, err := s.documents.Get(r.Name)
	if err == nil && !exists {
		err = missing("get document", r.Name)
	}
	return d, err
}

func missing(op, name string) error {
	return leasehold.Errorf(op, leasehold.ErrNotFound, name, "the document does not exist: it was never written, has expired or was lost")
}

// change changes or creates a document, and returns it. A document without sections is
// deleted.
func (s *Service) change(r *jsonhttp.Request, c Change) (changed Document, err error) {
	if err := c.validate(r.Name); err != nil {
		return Document{}, err
	}
	_, err = s.documents.Do(r.Context(), r.Name, func(e *leasemap.Entry[Document]) error {
		if err := e.Value.meets(r.Name, c.If); err != nil {
			return err
		}
		e.Value = e.Value.with(&c, e.Next.String())
		if len(e.Value.Sections) == 0 {
			e.Delete()
		}
		changed = e.Value
		return changed.validate(r.Name)
	})
	if err != nil {
		return Document{}, err
	}
	return changed, s.announce(r)
}

// meets returns an error unless all sections have the required versions.
func (d *Document) meets(name string, versions map[string]string) error {
	for section, want := range versions {
		if have := d.Sections[section].Version; have != want {
			return leasehold.Errorf("change document", leasehold.ErrStale, name, "section %q has version %q, not %q", section, have, want)
		}
	}
	return nil
}

// with returns a changed copy: readers may use the current sections.
func (d *Document) with(c *Change, version string) Document {
	next := make(map[string]Section, len(d.Sections)+len(c.Set))
	maps.Copy(next, d.Sections)
	for section, data := range c.Set {
		next[section] = Section{version, data}
	}
	for _, section := range c.Remove {
		delete(next, section)
	}
	return Document{next}
}

func (s *Service) refresh(r *jsonhttp.Request, _ jsonhttp.None) (none jsonhttp.None, err error) {
	exists, err := s.documents.Touch(r.Context(), r.Name)
	if err == nil && !exists {
		err = missing("refresh document", r.Name)
	}
	return none, err
}

// delete removes a document. The deletion is announced even if the document does not exist:
// an earlier request may have deleted it and failed to announce that.
func (s *Service) delete(r *jsonhttp.Request, _ jsonhttp.None) (none jsonhttp.None, err error) {
	if err := s.documents.Delete(r.Context(), r.Name); err != nil {
		return none, err
	}
	return none, s.announce(r)
}

func (s *Service) announce(r *jsonhttp.Request) error {
	if s.announceTo == nil {
		return nil
	}
	if err := s.announceTo(r.Context(), News{r.Name}); err != nil {
		return leasehold.Errorf("change document", leasehold.ErrIndeterminate, r.Name, "the document was changed, but not all subscribers have received the news; change it again: %w", err)
	}
	return nil
}

func (c *Change) validate(name string) error {
	const op = "change document"
	if len(c.Set)+len(c.Remove) == 0 {
		return leasehold.Errorf(op, leasehold.ErrInvalid, name, "want a section to set or remove")
	}
	for _, section := range c.Remove {
		if _, both := c.Set[section]; both {
			return leasehold.Errorf(op, leasehold.ErrInvalid, name, "section %q is to be set and to be removed", section)
		}
	}
	sections := slices.AppendSeq(slices.Clone(c.Remove), maps.Keys(c.Set))
	for _, section := range slices.AppendSeq(sections, maps.Keys(c.If)) {
		if err := jsonhttp.ValidName(op, "a section", section); err != nil {
			return err
		}
	}
	return nil
}

func (d *Document) validate(name string) error {
	size := 0
	for section, s := range d.Sections {
		size += len(section) + len(s.Data)
	}
	if len(d.Sections) > MaxSections || size > MaxBytes {
		return leasehold.Errorf("change document", leasehold.ErrInvalid, name, "the document would have %d sections and %d bytes, and %d and %d are allowed",
			len(d.Sections), size, MaxSections, MaxBytes)
	}
	return nil
}
