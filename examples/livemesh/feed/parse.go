package feed

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"errors"
	"fmt"
	"html"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/mmcdole/gofeed"
	"golang.org/x/net/html/charset"
)

// parse parses a feed. Items without a text or link are dropped.
func parse(document []byte, now time.Time) (activities []Activity, err error) {
	// The parser may panic on untrusted input.
	defer func() {
		if recover() != nil {
			activities, err = nil, errors.New("required elements are missing")
		}
	}()
	// Some real feeds contain control characters, which XML forbids.
	document = slices.DeleteFunc(document, func(b byte) bool { return b < ' ' && b != '\t' && b != '\n' && b != '\r' })
	if err := checkStructure(document); err != nil {
		return nil, err
	}
	parser := gofeed.NewParser()
	parser.RSSTranslator = &gofeed.DefaultRSSTranslator{DisableContentImageScan: true}
	read, err := parser.Parse(bytes.NewReader(document))
	if err != nil {
		return nil, err
	}
	if read.FeedType == "json" && !strings.Contains(read.FeedVersion, "jsonfeed.org/version/") {
		return nil, errors.New("want a JSON Feed version that begins with https://jsonfeed.org/version/")
	}
	for _, item := range read.Items {
		if a := activityOf(item, read, now); a.Title != "" {
			activities = append(activities, a)
		}
	}
	return activities, nil
}

// activityOf returns the activity of an item. Its title is empty if the item has no text.
func activityOf(item *gofeed.Item, of *gofeed.Feed, now time.Time) Activity {
	a := Activity{Actor: author(append(item.Authors, of.Authors...)), Link: link(item.Link), At: now.UTC()}
	for _, text := range []string{item.Title, item.Description, item.Content, item.Link} {
		a.Title = cmp.Or(a.Title, line(plain(text), MaxTitle))
	}
	stated := cmp.Or(item.PublishedParsed, item.UpdatedParsed)
	if stated != nil && stated.Unix() >= 0 && stated.Before(now) {
		a.At = stated.UTC()
	}
	id := cmp.Or(item.GUID, item.Link, a.Actor+a.Title+item.Published)
	if !strings.Contains(id, ":") { // a URL is unique
		id = of.Link + " " + id
	}
	a.ID = identify(id)
	return a
}

// author returns the first author with a name.
func author(of []*gofeed.Person) (name string) {
	for _, p := range of {
		if p != nil && name == "" {
			name = line(plain(cmp.Or(p.Name, p.Email)), MaxName)
		}
	}
	return name
}

var tags = regexp.MustCompile(`<[^>]*>`)

// plain returns the text of HTML. Titles are HTML in many feeds, so tags are removed from
// all of them.
func plain(text string) string { return html.UnescapeString(tags.ReplaceAllString(text, "")) }

// Bounds far above real feeds. The parser follows elements by recursion, copies their
// namespaces at every level, and concatenates the texts within an element, so that a short
// feed could cost much time and memory.
const (
	maxDepth      = 32
	maxTokens     = 20_000
	maxAttributes = 32
)

// checkStructure bounds the cost of parsing XML. It reads the same tokens as the parser. Neither
// expands entities that a document declares. JSON needs no check.
func checkStructure(document []byte) error {
	if start := bytes.TrimLeft(document, "\xef\xbb\xbf \t\r\n"); len(start) == 0 || start[0] != '<' {
		return nil
	}
	tokens := xml.NewDecoder(bytes.NewReader(document))
	tokens.Strict, tokens.CharsetReader = false, charset.NewReaderLabel
	depth := 0
	for range maxTokens {
		token, err := tokens.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		switch token := token.(type) {
		case xml.StartElement:
			if depth++; depth > maxDepth || len(token.Attr) > maxAttributes {
				return fmt.Errorf("elements are nested more than %d deep, or have more than %d attributes", maxDepth, maxAttributes)
			}
		case xml.EndElement:
			depth--
		}
	}
	return fmt.Errorf("it has more than %d parts", maxTokens)
}
