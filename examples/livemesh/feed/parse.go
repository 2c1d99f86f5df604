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

// Bounds on what is posted.
const (
	MaxBytes = 1 << 20 // of a feed
	MaxItems = 1000    // of a feed
)

// parse reads a feed. It also returns how many of its items say nothing.
func parse(document []byte, now time.Time) (activities []Activity, silent int, err error) {
	// The library is somebody else's, and the feed anybody's.
	defer func() {
		if recover() != nil {
			activities, silent, err = nil, 0, errors.New("it lacks parts that every feed has")
		}
	}()
	document, err = sane(document)
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
		return nil, 0, fmt.Errorf("JSON Feed has a version that begins with https://jsonfeed.org/version/, and this one has %q", line(read.FeedVersion, MaxName))
	}
	for _, item := range read.Items {
		if a, ok := activityOf(item, read, now); ok {
			activities = append(activities, a)
		} else {
			silent++
		}
	}
	return activities, silent, nil
}

// activityOf makes an activity of an item, if that says anything.
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
	said := cmp.Or(item.PublishedParsed, item.UpdatedParsed)
	a.At = when(said, now)
	switch {
	case strings.Contains(item.GUID, ":"): // an address, which is unique
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

// author is the first who has a name.
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

// plain is the text of HTML. Titles are HTML in many feeds, whatever they should be; what
// looks like a tag is taken for one.
func plain(text string) string {
	if !strings.ContainsAny(text, "<&") {
		return text
	}
	var b strings.Builder
	tokens := html.NewTokenizer(strings.NewReader(text))
	hidden := false // within a script, which is one text
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

// What real feeds stay far below. A parser of feeds follows elements by recursion, copies
// their namespaces at every level, and appends the texts within an element to each other, so
// that a short feed could cost much time and memory.
const (
	maxDepth      = 64
	maxTokens     = 40_000
	maxAttributes = 64           // of an element, and declarations of namespaces that hold within it
	maxTexts      = 2 * MaxItems // directly within an element
)

// sane returns a document that can be parsed at a cost that its length bounds. That of JSON
// can be anyway.
//
// It reads tokens as the parser will. Entities that a document declares are expanded by
// neither.
func sane(document []byte) ([]byte, error) {
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

// An element is one that has begun and not ended.
type element struct {
	namespaces int // that were declared by it, and by those around it
	texts      int // directly within it, so far
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

// isControl reports whether a byte is one that XML does not allow. There are feeds that have
// some.
func isControl(b byte) bool { return b < ' ' && b != '\t' && b != '\n' && b != '\r' }
