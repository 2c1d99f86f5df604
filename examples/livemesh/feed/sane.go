package feed

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"

	"golang.org/x/net/html/charset"
)

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
