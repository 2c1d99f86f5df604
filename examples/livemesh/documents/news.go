package documents

import (
	"cmp"
	"context"
	"encoding/json"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/leasemap"
)

// News says what a change has made of a document.
type News struct {
	Document string `json:"document"`
	// Version is that of all sections that were set. Those that were removed would have
	// it.
	Version string                     `json:"version"`
	Set     map[string]json.RawMessage `json:"set,omitempty"`
	Removed []string                   `json:"removed,omitempty"`
	// Deleted says that there is no document any more, and none of its sections.
	Deleted bool `json:"deleted,omitempty"`
	// Long says that Set and Removed would be too long for a message: read the document.
	Long bool `json:"long,omitempty"`
}

// maxNews is how many bytes news may take. That leaves room in a message.
const maxNews = 32 << 10

// announce tells those who want to know of a change.
func (s *Service) announce(ctx context.Context, news News) error {
	if s.cfg.Announce == nil {
		return nil
	}
	data, err := json.Marshal(news)
	if err != nil {
		return leasehold.Errorf("change document", leasehold.ErrInternal, news.Document, "%w", err)
	}
	if len(data) > maxNews {
		news.Set, news.Removed, news.Long = nil, nil, true
	}
	if err := s.cfg.Announce(ctx, news); err != nil {
		return leasehold.Errorf("change document", leasehold.ErrIndeterminate, news.Document, "it is changed, but not all who want to know have been told; change it again: %w", err)
	}
	return nil
}

// Newer reports whether a version of a section is newer than another; "" is that of a
// section that never was. What is no version is newer than nothing.
func Newer(a, b string) bool {
	var v, w leasemap.Version
	if v.UnmarshalText([]byte(a)) != nil || w.UnmarshalText([]byte(b)) != nil {
		return false
	}
	return cmp.Or(cmp.Compare(v.Generation, w.Generation), cmp.Compare(v.Number, w.Number)) > 0
}
