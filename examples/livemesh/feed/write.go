package feed

import (
	"bytes"
	"embed"
	"encoding/json"
	"html"
	"net/url"
	"strings"
	"text/template"
	"time"
)

// ids is the prefix of the ids of feeds and entries (RFC 4151).
const ids = "tag:livemesh.example,2008:feeds/"

// A Document is a feed in JSON Feed 1.1. The other formats are written from it.
type Document struct {
	Version string `json:"version"`
	Title   string `json:"title"`
	FeedURL string `json:"feed_url,omitempty"`
	Items   []Item `json:"items"`

	ID      string    `json:"-"`
	User    string    `json:"-"`
	Updated time.Time `json:"-"` // of the latest item; 1970 without items
}

// An Item is an entry of a Document.
type Item struct {
	ID        string    `json:"id"`
	URL       string    `json:"url,omitempty"`
	Title     string    `json:"title"` // text
	Content   string    `json:"content_html"`
	Published time.Time `json:"date_published"`
	Modified  time.Time `json:"date_modified"`
	Authors   []Author  `json:"authors,omitempty"`
}

// An Author is the author of an item.
type Author struct {
	Name string `json:"name"`
}

// newDocument returns the feed of a user with an address.
func newDocument(user, address string, entries []Entry) *Document {
	d := &Document{
		Version: "https://jsonfeed.org/version/1.1", Title: "Activities for " + user, FeedURL: address, Items: []Item{},
		ID: ids + url.PathEscape(user), User: user, Updated: time.Unix(0, 0).UTC(),
	}
	for _, e := range entries {
		item := Item{
			ID: d.ID + "/" + e.ID, URL: e.Link(), Title: e.Title, Content: e.content(),
			Published: e.Activities[0].At, Modified: e.Updated(),
		}
		if e.Actor != "" {
			item.Authors = []Author{{e.Actor}}
		}
		d.Items = append(d.Items, item)
	}
	if len(entries) > 0 {
		d.Updated = entries[0].Updated()
	}
	return d
}

// content returns HTML with all activities of an entry and their links.
func (e *Entry) content() string {
	var b strings.Builder
	for _, a := range e.Activities {
		text := html.EscapeString(a.Title)
		if a.Link != "" {
			text = `<a href="` + html.EscapeString(a.Link) + `">` + text + "</a>"
		}
		b.WriteString("<li>" + text + "</li>")
	}
	return "<ul>" + b.String() + "</ul>"
}

type format struct {
	name  string
	media []string // the first is used in responses
	write func(*Document) ([]byte, error)
}

//go:embed templates
var templates embed.FS

// formats returns all formats, the default first. Atom is RFC 4287, with titles as text. RSS is
// RSS 2.0 with the author in Dublin Core, because RSS authors are mail addresses.
func formats() []format {
	return []format{
		{"atom", []string{"application/atom+xml"}, fromTemplate("atom.xml")},
		{"rss", []string{"application/rss+xml"}, fromTemplate("rss.xml")},
		{"json", []string{"application/feed+json", "application/json"}, func(d *Document) ([]byte, error) { return json.MarshalIndent(d, "", " ") }},
	}
}

func fromTemplate(name string) func(*Document) ([]byte, error) {
	t := template.Must(template.New(name).Funcs(template.FuncMap{"noHTML": noHTML}).ParseFS(templates, "templates/"+name))
	return func(d *Document) ([]byte, error) {
		var b bytes.Buffer
		err := t.Execute(&b, d)
		return b.Bytes(), err
	}
}

// noHTML returns a text that reads the same as text and as HTML: RSS does not define which of
// them titles are.
func noHTML(text string) string {
	if plain(text) == text {
		return text
	}
	return html.EscapeString(text)
}
