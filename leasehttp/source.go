package leasehttp

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/leasehold-dev/leasehold"
)

// A Source is the part of a request that has its name; the request's key is
// [leasehold.KeyOf] of the name. Callers, gateways and servers of one namespace must use
// the same.
//
// A name that is repeated with different values is an error: gateway and server could use
// different ones. An empty name counts as missing.
//
// A Source is an immutable value, safe for concurrent use. The zero Source is invalid.
type Source struct {
	text string // in the syntax of ParseSource
	find func(*http.Request) (name string, why absence)
}

type absence string

const (
	found     absence = ""
	missing   absence = "missing"
	ambiguous absence = "repeated with different values"
	malformed absence = "written in a way that programs interpret differently"
)

const maxSegment = 64

// Header returns the source of a header's value. "Host" is the host of the request. It panics
// if proxies do not forward the header: see [ParseSource].
func Header(name string) Source { return must(newHeader(name)) }

// PathSegment returns the source of a path segment, unescaped; the first has number 1. In
// /users/alice/inbox number 2 is alice. If a segment up to it is empty, the name is missing.
// A path with a segment "." or "..", escaped or not, is an error, because programs interpret
// such paths differently. It panics if n is not from 1 to 64.
func PathSegment(n int) Source { return must(newPathSegment(n)) }

// Query returns the source of a parameter of the URL's query. It panics if the name is empty.
func Query(name string) Source { return must(newQuery(name)) }

// Cookie returns the source of a cookie's value. A value with invalid bytes is an error,
// because programs interpret it differently. It panics if the name is invalid.
func Cookie(name string) Source { return must(newCookie(name)) }

// First returns a source that tries several in order and uses the first name that is not
// missing. An ambiguous or malformed name is an error and ends the search. It panics without
// sources, or if one of them is the zero Source.
func First(sources ...Source) Source { return must(newFirst(sources)) }

// Func returns a source with a function of the application. find returns false if there is
// no name. The text names the source in errors. find is called concurrently and must not
// modify the request.
func Func(text string, find func(*http.Request) (name string, ok bool)) Source {
	return Source{text: text, find: func(r *http.Request) (string, absence) {
		name, ok := find(r)
		if !ok {
			return "", missing
		}
		return nonEmpty(name)
	}}
}

func must(s Source, err error) Source {
	if err != nil {
		panic(err)
	}
	return s
}

// String returns the source in the syntax of [ParseSource].
func (s Source) String() string { return s.text }

// Name returns the name in a request. The kind of its error is [leasehold.ErrInvalid].
func (s Source) Name(r *http.Request) (string, error) {
	name, why := s.find(r)
	if why != found {
		return "", leasehold.Errorf("route", leasehold.ErrInvalid, s.text, "the key of the request is %s", why)
	}
	return name, nil
}

// Key returns the key of a request: [leasehold.KeyOf] of its name.
func (s Source) Key(r *http.Request) (leasehold.Key, error) {
	name, err := s.Name(r)
	if err != nil {
		return 0, err
	}
	return leasehold.KeyOf(name), nil
}

func (s Source) valid() bool { return s.find != nil }

const maxSources = 16

const forms = "want header:NAME, path:NUMBER, query:NAME or cookie:NAME"

// ParseSource parses a source, or several that are separated by commas: see [First].
//
//	header:X-User   the value of a header
//	path:2          a segment of the path, the first having number 1
//	query:user      a parameter of the query
//	cookie:sid      the value of a cookie
//
// Headers that proxies do not forward, or replace, and headers that begin with "Leasehold-"
// are errors. The kind of errors is [leasehold.ErrInvalid].
func ParseSource(text string) (Source, error) {
	var sources []Source
	for part := range strings.SplitSeq(text, ",") {
		s, err := parseOne(strings.TrimSpace(part))
		if err != nil {
			return Source{}, err
		}
		if sources = append(sources, s); len(sources) > maxSources {
			break // newFirst returns the error
		}
	}
	return newFirst(sources)
}

func parseOne(text string) (Source, error) {
	kind, name, ok := strings.Cut(text, ":")
	if !ok {
		return Source{}, invalidSource(text, "%s", forms)
	}
	switch kind {
	case "header":
		return newHeader(name)
	case "query":
		return newQuery(name)
	case "cookie":
		return newCookie(name)
	case "path":
		n, err := strconv.Atoi(name)
		if err != nil {
			return Source{}, invalidSource(text, "want the number of a segment, from 1 to %d", maxSegment)
		}
		return newPathSegment(n)
	}
	return Source{}, invalidSource(text, "unknown source %q: %s", clip(kind), forms)
}

func invalidSource(text, format string, args ...any) error {
	return leasehold.Errorf("key source", leasehold.ErrInvalid, clip(text), format, args...)
}

func clip(s string) string {
	const limit = 60
	if len(s) > limit {
		s = s[:limit] + "..."
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}
