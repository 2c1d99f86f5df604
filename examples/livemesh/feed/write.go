package feed

import (
	"encoding/json"
	"encoding/xml"
	"time"
)

// A format is how a feed is written.
type format struct {
	name  string
	media []string // the first is how it is sent
	write func(*page) ([]byte, error)
}

// formats returns all, the usual one first.
func formats() []format {
	return []format{
		{"atom", []string{"application/atom+xml"}, writeAtom},
		{"rss", []string{"application/rss+xml"}, writeRSS},
		{"json", []string{"application/feed+json", "application/json"}, writeJSON},
	}
}

// Atom is RFC 4287. Titles are text.
type atomFeed struct {
	XMLName xml.Name    `xml:"http://www.w3.org/2005/Atom feed"`
	ID      string      `xml:"id"`
	Title   string      `xml:"title"`
	Updated string      `xml:"updated"`
	Author  atomPerson  `xml:"author"`
	Links   []atomLink  `xml:"link"`
	Entries []atomEntry `xml:"entry"`
}

type atomPerson struct {
	Name string `xml:"name"`
}

type atomLink struct {
	Rel  string `xml:"rel,attr"`
	Href string `xml:"href,attr"`
}

type atomEntry struct {
	ID        string      `xml:"id"`
	Title     string      `xml:"title"`
	Published string      `xml:"published"`
	Updated   string      `xml:"updated"`
	Author    *atomPerson `xml:"author"`
	Links     []atomLink  `xml:"link"`
	Content   atomContent `xml:"content"`
}

type atomContent struct {
	Type string `xml:"type,attr"`
	Text string `xml:",chardata"`
}

func writeAtom(p *page) ([]byte, error) {
	f := atomFeed{
		ID: p.id(), Title: p.title(), Updated: p.updated().Format(time.RFC3339),
		Author: atomPerson{p.user}, Links: []atomLink{{"self", p.self}},
	}
	for _, e := range p.entries {
		entry := atomEntry{
			ID: p.entryID(&e), Title: e.Title,
			Published: e.Activities[0].At.Format(time.RFC3339), Updated: e.Updated().Format(time.RFC3339),
			Content: atomContent{"html", e.content()},
		}
		if e.Actor != "" {
			entry.Author = &atomPerson{e.Actor}
		}
		if to := e.Link(); to != "" {
			entry.Links = []atomLink{{"alternate", to}}
		}
		f.Entries = append(f.Entries, entry)
	}
	return writeXML(f)
}

// RSS is RSS 2.0, with the author as Dublin Core has it, because RSS has only addresses of
// mail. It does not say whether titles are text or HTML; they are written so that both are
// the same.
type rssFeed struct {
	XMLName xml.Name   `xml:"rss"`
	Version string     `xml:"version,attr"`
	DC      string     `xml:"xmlns:dc,attr"`
	Channel rssChannel `xml:"channel"`
}

type rssChannel struct {
	Title       string    `xml:"title"`
	Link        string    `xml:"link"`
	Description string    `xml:"description"`
	Built       string    `xml:"lastBuildDate"`
	Items       []rssItem `xml:"item"`
}

type rssItem struct {
	Title       string  `xml:"title"`
	Link        string  `xml:"link,omitempty"`
	Description string  `xml:"description"`
	Author      string  `xml:"dc:creator,omitempty"`
	GUID        rssGUID `xml:"guid"`
	Published   string  `xml:"pubDate"`
}

type rssGUID struct {
	IsPermaLink bool   `xml:"isPermaLink,attr"`
	ID          string `xml:",chardata"`
}

func writeRSS(p *page) ([]byte, error) {
	f := rssFeed{Version: "2.0", DC: "http://purl.org/dc/elements/1.1/", Channel: rssChannel{
		Title: notHTML(p.title()), Link: p.self, Description: notHTML("What people did, for " + p.user),
		Built: p.updated().Format(time.RFC1123Z),
	}}
	for _, e := range p.entries {
		f.Channel.Items = append(f.Channel.Items, rssItem{
			Title: notHTML(e.Title), Link: e.Link(), Description: e.content(), Author: notHTML(e.Actor),
			GUID: rssGUID{ID: p.entryID(&e)}, Published: e.Updated().Format(time.RFC1123Z),
		})
	}
	return writeXML(f)
}

func writeXML(document any) ([]byte, error) {
	data, err := xml.MarshalIndent(document, "", " ")
	return append([]byte(xml.Header), data...), err
}

// A Document is a feed as JSON Feed 1.1 has it.
type Document struct {
	Version string `json:"version"`
	Title   string `json:"title"`
	FeedURL string `json:"feed_url,omitempty"`
	Items   []Item `json:"items"`
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

// An Author is who did it.
type Author struct {
	Name string `json:"name"`
}

func writeJSON(p *page) ([]byte, error) {
	d := Document{Version: "https://jsonfeed.org/version/1.1", Title: p.title(), FeedURL: p.self, Items: []Item{}}
	for _, e := range p.entries {
		item := Item{
			ID: p.entryID(&e), URL: e.Link(), Title: e.Title, Content: e.content(),
			Published: e.Activities[0].At, Modified: e.Updated(),
		}
		if e.Actor != "" {
			item.Authors = []Author{{e.Actor}}
		}
		d.Items = append(d.Items, item)
	}
	return json.MarshalIndent(d, "", " ")
}
