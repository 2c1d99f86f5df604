package documents

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
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
	// If has the required versions of sections: "" requires that the section does not
	// exist, "*" that it exists, with any version.
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

func (s *Service) get(r *jsonhttp.Request) (Document, error) {
	d, exists, err := s.documents.Get(r.Name)
	if err == nil && !exists {
		err = leasehold.Errorf("get document", leasehold.ErrNotFound, r.Name, "the document does not exist: it was never written, has expired or was lost")
	}
	return d, err
}

// change changes or creates a document, and returns it. A document without sections is
// deleted.
func (s *Service) change(r *jsonhttp.Request, c Change) (Document, error) {
	name := r.Name
	if err := c.validate(name); err != nil {
		return Document{}, err
	}
	var changed Document
	news := News{Document: name, Set: c.Set, Removed: c.Remove}
	_, err := s.documents.Do(r.Context(), r.Name, func(e *leasemap.Entry[Document]) error {
		for section, want := range c.If {
			if err := e.Value.meets(name, section, want); err != nil {
				return err
			}
		}
		// Readers may use the current sections: they are copied, not changed.
		next := maps.Clone(e.Value.Sections)
		if next == nil {
			next = make(map[string]Section)
		}
		news.Version = e.Next.String()
		for section, data := range c.Set {
			next[section] = Section{news.Version, data}
		}
		for _, section := range c.Remove {
			delete(next, section)
		}
		if len(next) == 0 {
			e.Delete()
		}
		e.Value = Document{next}
		changed = e.Value
		return changed.validate(name)
	})
	if err != nil {
		return Document{}, err
	}
	return changed, s.announce(r.Context(), news)
}

// meets returns an error unless a section meets a condition.
func (d *Document) meets(name, section, want string) error {
	have, there := d.Sections[section]
	stale := func(format string, args ...any) error {
		return leasehold.Errorf("change document", leasehold.ErrStale, name, "section %q "+format, append([]any{section}, args...)...)
	}
	switch {
	case want == "" && there:
		return stale("is there already, with version %q", have.Version)
	case want != "" && !there:
		return stale("is not there")
	case want != "*" && want != have.Version:
		return stale("has version %q, and not %q", have.Version, want)
	}
	return nil
}

func (s *Service) refresh(r *jsonhttp.Request) (any, error) {
	there, err := s.documents.Touch(r.Context(), r.Name)
	if err == nil && !there {
		err = leasehold.Errorf("refresh document", leasehold.ErrNotFound, r.Name, "the document does not exist: write it again")
	}
	return nil, err
}

// delete removes a document. The deletion is announced even if the document does not exist:
// an earlier request may have deleted it and failed to announce that.
func (s *Service) delete(r *jsonhttp.Request) (any, error) {
	if _, err := condition(r, ""); err != nil {
		return nil, err
	}
	news := News{Document: r.Name, Deleted: true}
	_, err := s.documents.Do(r.Context(), r.Name, func(e *leasemap.Entry[Document]) error {
		news.Version = e.Next.String()
		e.Delete()
		return nil
	})
	if err != nil {
		return nil, err
	}
	return nil, s.announce(r.Context(), news)
}

func (c *Change) validate(name string) error {
	const op = "change document"
	if len(c.Set)+len(c.Remove) == 0 {
		return leasehold.Errorf(op, leasehold.ErrInvalid, name, "want a section to set or remove")
	}
	for section, data := range c.Set {
		if slices.Contains(c.Remove, section) {
			return leasehold.Errorf(op, leasehold.ErrInvalid, name, "section %q is to be set and to be removed", section)
		}
		if !json.Valid(data) {
			return leasehold.Errorf(op, leasehold.ErrInvalid, name, "section %q is not JSON", section)
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
		return jsonhttp.TooLarge(name, "the document would have %d sections and %d bytes, and %d and %d are allowed",
			len(d.Sections), size, MaxSections, MaxBytes)
	}
	return nil
}

// News describes a change of a document.
type News struct {
	Document string `json:"document"`
	// Version is the version of all sections that were set. Removed sections would have it.
	Version string                     `json:"version"`
	Set     map[string]json.RawMessage `json:"set,omitempty"`
	Removed []string                   `json:"removed,omitempty"`
	// Deleted reports that the document was deleted, with all its sections.
	Deleted bool `json:"deleted,omitempty"`
	// Long reports that Set and Removed are omitted because they are too long for a
	// message: read the document.
	Long bool `json:"long,omitempty"`
}

// maxNews bounds the size of news, which must fit into a message.
const maxNews = 32 << 10

// announce sends the news of a change, without its content if that is too long.
func (s *Service) announce(ctx context.Context, news News) error {
	if s.announceTo == nil {
		return nil
	}
	data, err := json.Marshal(news)
	if err != nil {
		return leasehold.Errorf("change document", leasehold.ErrInternal, news.Document, "%w", err)
	}
	if len(data) > maxNews {
		news.Set, news.Removed, news.Long = nil, nil, true
	}
	if err := s.announceTo(ctx, news); err != nil {
		return leasehold.Errorf("change document", leasehold.ErrIndeterminate, news.Document, "the document was changed, but not all subscribers have received the change; change it again: %w", err)
	}
	return nil
}

// Newer reports whether a version of a section is newer than another. "" is the version of a
// section that never existed. A malformed version is never newer.
func Newer(a, b string) bool {
	var v, w leasemap.Version
	if v.UnmarshalText([]byte(a)) != nil || w.UnmarshalText([]byte(b)) != nil {
		return false
	}
	return cmp.Or(cmp.Compare(v.Generation, w.Generation), cmp.Compare(v.Number, w.Number)) > 0
}
