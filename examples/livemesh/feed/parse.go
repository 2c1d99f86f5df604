package feed

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/mmcdole/gofeed"
	"golang.org/x/net/html"
	"golang.org/x/net/html/charset"
)

// Bounds on posted feeds.
const (
	MaxBytes = 1 << 20 // of a feed
	MaxItems = 1000    // of a feed
)

// parse parses a feed. It also returns the number of items without a title.
func parse(document []byte, now time.Time) (activities []Activity, untitled int, err error) {
	// The parser may panic on untrusted input.
	defer func() {
		if recover() != nil {
			activities, untitled, err = nil, 0, errors.New("required elements are missing")
		}
	}()
	document, err = checkStructure(document)
	if err != nil {
		return nil, 0, err
	}
	parser := gofeed.NewParser()
	parser.RSSTranslator = &gofeed.DefaultRSSTranslator{DisableContentImageScan: true}
	read, err := parser.Parse(bytes.NewReader(document))
	if errors.Is(err, gofeed.ErrFeedTypeNotDetected) {
		return nil, 0, errors.New("it is neither RSS nor Atom nor JSON Feed")
	}
	if err != nil {
		return nil, 0, err
	}
	if read.FeedType == "json" && !strings.Contains(read.FeedVersion, "jsonfeed.org/version/") {
		return nil, 0, fmt.Errorf("version %q: want a JSON Feed version that begins with https://jsonfeed.org/version/", line(read.FeedVersion, MaxName))
	}
	for _, item := range read.Items {
		if a, ok := activityOf(item, read, now); ok {
			activities = append(activities, a)
		} else {
			untitled++
		}
	}
	return activities, untitled, nil
}

// activityOf returns the activity of an item, if it has a title.
func activityOf(item *gofeed.Item, of *gofeed.Feed, now time.Time) (Activity, bool) {
	a := Activity{Actor: author(item.Authors), Link: link(item.Link)}
	for _, text := range []string{item.Title, item.Description, item.Content, item.Link} {
		if a.Title = line(plain(text), MaxTitle); a.Title != "" {
			break
		}
	}
	if a.Actor == "" {
		a.Actor = author(of.Authors)
	}
	stated := cmp.Or(item.PublishedParsed, item.UpdatedParsed)
	a.At = when(stated, now)
	switch {
	case strings.Contains(item.GUID, ":"): // a URL is unique
		a.ID = identify(item.GUID)
	case item.GUID != "":
		a.ID = identify(of.Link, item.GUID)
	case item.Link != "":
		a.ID = identify(item.Link)
	default:
		a.ID = identify(a.Actor, a.Title, cmp.Or(item.Published, item.Updated))
	}
	return a, a.Title != ""
}

// author returns the first author with a name.
func author(of []*gofeed.Person) string {
	for _, p := range of {
		if p == nil {
			continue
		}
		if name := line(plain(cmp.Or(p.Name, p.Email)), MaxName); name != "" {
			return name
		}
	}
	return ""
}

// plain returns the text of HTML. Titles are HTML in many feeds, so tags are removed from
// all of them.
func plain(text string) string {
	if !strings.ContainsAny(text, "<&") {
		return text
	}
	var b strings.Builder
	tokens := html.NewTokenizer(strings.NewReader(text))
	hidden := false // within a script or style
	for {
		switch tokens.Next() {
		case html.ErrorToken: // the end
			return b.String()
		case html.TextToken:
			if !hidden {
				b.Write(tokens.Text())
			}
		case html.StartTagToken:
			name, _ := tokens.TagName()
			hidden = string(name) == "script" || string(name) == "style"
		case html.EndTagToken:
			hidden = false
		default:
		}
	}
}

// Bounds far above real feeds. The parser follows elements by recursion, copies their
// namespaces at every level, and concatenates the texts within an element, so that a short
// feed could cost much time and memory.
const (
	maxDepth      = 64
	maxTokens     = 40_000
	maxAttributes = 64           // of an element, and namespace declarations in its scope
	maxTexts      = 2 * MaxItems // directly within an element
)

// checkStructure returns a document whose parsing cost is bounded by its length, without
// control characters. JSON needs no check.
//
// It reads the same tokens as the parser. Neither expands entities that a document declares.
func checkStructure(document []byte) ([]byte, error) {
	if start := bytes.TrimLeft(document, "\xef\xbb\xbf \t\r\n"); len(start) == 0 || start[0] != '<' {
		return document, nil
	}
	document = slices.DeleteFunc(bytes.Clone(document), isControl)
	tokens := xml.NewDecoder(bytes.NewReader(document))
	tokens.Strict, tokens.CharsetReader = false, charset.NewReaderLabel
	open := []element{{}} // the first is the document
	for range maxTokens {
		token, err := tokens.Token()
		if errors.Is(err, io.EOF) {
			return document, nil
		}
		if err != nil {
			return nil, err
		}
		within := &open[len(open)-1]
		switch token := token.(type) {
		case xml.StartElement:
			inner := element{namespaces: within.namespaces + namespaces(token.Attr)}
			if len(open) > maxDepth || inner.namespaces > maxAttributes || len(token.Attr) > maxAttributes {
				return nil, fmt.Errorf("element %s is nested more than %d deep, or has more than %d attributes or namespaces", line(token.Name.Local, MaxName), maxDepth, maxAttributes)
			}
			open = append(open, inner)
		case xml.EndElement:
			open = open[:max(1, len(open)-1)]
		case xml.CharData:
			if within.texts++; within.texts > maxTexts {
				return nil, fmt.Errorf("an element has more than %d parts", maxTexts)
			}
		}
	}
	return nil, fmt.Errorf("it has more than %d parts", maxTokens)
}

// An element is an open element.
type element struct {
	namespaces int // declared by it and its ancestors
	texts      int // direct children so far
}

func namespaces(declared []xml.Attr) int {
	n := 0
	for _, a := range declared {
		if a.Name.Space == "xmlns" || a.Name.Local == "xmlns" {
			n++
		}
	}
	return n
}

// isControl reports whether a byte is a control character that XML forbids. Some real feeds
// contain them.
func isControl(b byte) bool { return b < ' ' && b != '\t' && b != '\n' && b != '\r' }
