package feed

import (
	"encoding/json"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// FuzzParse: any input is parsed in bounded time, and its activities are valid: bounded, in one
// line, with http links and times in the past. Feeds that are written from them can be parsed.
func FuzzParse(f *testing.F) {
	for _, name := range []string{"rss091.xml", "rss10.xml", "rss20.xml", "atom10.xml", "feed.json", "latin1.xml"} {
		document, err := os.ReadFile("testdata/" + name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(document)
	}
	for _, text := range []string{
		`<rss version="2.0"><channel><item><title>a&lt;script>b&lt;/script></title><link>javascript:alert(1)</link></item></channel></rss>`,
		`<!DOCTYPE x [<!ENTITY a "&b;&b;"><!ENTITY b "&c;&c;">]><rss><channel><title>&a;</title></channel></rss>`,
		`<feed xmlns="http://www.w3.org/2005/Atom"><entry><title type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml">x</div></title></entry></feed>`,
		strings.Repeat("<a>", 70), `{"version":"https://jsonfeed.org/version/1.1","items":[null,{}]}`, `<rss><channel><item/></channel>`,
		`<?xml version="1.0" encoding="utf-16"?><rss/>`, `<rdf:RDF xmlns:rdf="x"/>`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, document []byte) {
		if len(document) > 64<<10 {
			return // long inputs are in TestNoFeed
		}
		began := time.Now()
		all, err := parse(document, now())
		if took := time.Since(began); took > 5*time.Second {
			t.Fatalf("%d bytes took %v", len(document), took)
		}
		if err != nil {
			return
		}
		for _, a := range all {
			u, err := url.Parse(a.Link)
			switch {
			case a.Title == "" || len(a.Title) > MaxTitle || len(a.Actor) > MaxName || len(a.ID) != 32:
				t.Fatalf("%+v", a)
			case !utf8.ValidString(a.Title+a.Actor) || strings.ContainsAny(a.Title+a.Actor, "\r\n\x00\x1b"):
				t.Fatalf("%q, %q", a.Title, a.Actor)
			case a.Link != "" && (err != nil || u.Scheme != "http" && u.Scheme != "https"):
				t.Fatalf("link %q", a.Link)
			case a.At.After(now()) || a.At.Unix() < 0:
				t.Fatalf("at %v", a.At)
			}
		}
		slices.SortFunc(all, compare)
		wrote := newDocument("user", all)
		written, err := json.Marshal(wrote)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := parse(written, now()); err != nil || len(again) != len(wrote.Items) {
			t.Fatalf("%d entries are %d again, %v:\n%s", len(wrote.Items), len(again), err, written)
		}
	})
}
