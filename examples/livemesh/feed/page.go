package feed

import (
	"html"
	"net/url"
	"strings"
	"time"
)

// A page is a feed as it is written.
type page struct {
	user    string
	self    string // its address
	entries []Entry
}

// ids are where the ids of feeds and entries begin (RFC 4151).
const ids = "tag:livemesh.example,2008:feeds/"

func (p *page) title() string { return "Activities for " + p.user }

func (p *page) id() string { return ids + url.PathEscape(p.user) }

func (p *page) entryID(e *Entry) string { return p.id() + "/" + e.ID }

// updated is when the last activity was, and long ago if there is none.
func (p *page) updated() time.Time {
	if len(p.entries) == 0 {
		return time.Unix(0, 0).UTC()
	}
	return p.entries[0].Updated()
}

// content is HTML that has all activities of an entry, each with its link.
func (e *Entry) content() string {
	var b strings.Builder
	b.WriteString("<ul>")
	for _, a := range e.Activities {
		b.WriteString("<li>")
		text := html.EscapeString(a.Title)
		if a.Link != "" {
			text = `<a href="` + html.EscapeString(a.Link) + `">` + text + "</a>"
		}
		b.WriteString(text + "</li>")
	}
	b.WriteString("</ul>")
	return b.String()
}

// notHTML is a text that is the same when it is taken for HTML.
func notHTML(text string) string {
	if plain(text) == text {
		return text
	}
	return html.EscapeString(text)
}
