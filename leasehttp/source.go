package leasehttp

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/leasehold-dev/leasehold"
)

// A Source says where in a request the name is that the request is about; the
// request's key is [leasehold.KeyOf] of it. Callers, gateways and servers of one
// namespace must use the same.
//
// A name that is there twice with different values is refused: whoever routes
// and whoever serves could each take another one. One that is empty counts as
// missing.
//
// A Source is a value, made by the functions that return one, and may be used by
// many goroutines at once. The zero Source is none, and is refused.
type Source struct {
	text string // as ParseSource reads it
	find func(*http.Request) (name string, why absence)
}

type absence string

const (
	found     absence = ""
	missing   absence = "missing"
	ambiguous absence = "there more than once, with different values"
	malformed absence = "written in a way that not all programs read alike"
)

// maxSegment bounds how far into a path a key may be.
const maxSegment = 64

// Header takes the value of a header. "Host" is the host that the request is for.
// It panics if no request that is forwarded can have a header of that name: see
// [ParseSource].
func Header(name string) Source { return must(newHeader(name)) }

// PathSegment takes a segment of the path, unescaped; the first has number 1. In
// /users/alice/inbox number 2 is alice. A path in which one of the segments up to
// it is empty has none. One in which "." or ".." is anywhere between slashes, escaped
// or not, is refused: such paths mean different things to different programs. It panics
// if n is not from 1 to 64.
func PathSegment(n int) Source { return must(newPathSegment(n)) }

// Query takes a parameter of the URL's query. It panics if the name is empty.
func Query(name string) Source { return must(newQuery(name)) }

// Cookie takes the value of a cookie. One whose value has bytes that no cookie may
// have is refused, since programs differ in what they make of it. It panics if the name is not one that a
// cookie can have.
func Cookie(name string) Source { return must(newCookie(name)) }

// First takes the first name that is found by one of the sources, in this order.
// A request in which one of them is there twice with different values, or in a way
// that not all programs read alike, is refused, whatever comes after it. It panics if
// there are none, or if one of them is the zero Source.
func First(sources ...Source) Source { return must(newFirst(sources)) }

// Func takes what a function of the application's finds. It reports false if
// there is no name. The text is what errors call the source. The function is
// called from many goroutines at once, and must only read.
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

// String writes the source as [ParseSource] reads it.
func (s Source) String() string { return s.text }

// Name returns the name that a request is about. Its error is of kind
// [leasehold.ErrInvalid], and says what is missing.
func (s Source) Name(r *http.Request) (string, error) {
	name, why := s.find(r)
	if why != found {
		return "", leasehold.Errorf("route", leasehold.ErrInvalid, s.text, "the key of the request is %s", why)
	}
	return name, nil
}

// Key returns the key of a request: that of its name.
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

// ParseSource reads a source as text, or several with commas between, of which
// the first that is in a request is taken:
//
//	header:X-User   the value of a header
//	path:2          a segment of the path, the first having number 1
//	query:user      a parameter of the query
//	cookie:sid      the value of a cookie
//
// Headers that a proxy does not pass on, because they are about a connection or
// because proxies write them, are refused, and so are those of ours. Errors are of
// kind [leasehold.ErrInvalid] and say what is wrong.
func ParseSource(text string) (Source, error) {
	var sources []Source
	for part := range strings.SplitSeq(text, ",") {
		s, err := parseOne(strings.TrimSpace(part))
		if err != nil {
			return Source{}, err
		}
		if sources = append(sources, s); len(sources) > maxSources {
			break // newFirst says how many are allowed
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
	return Source{}, invalidSource(text, "there is no source %q: %s", clip(kind), forms)
}

func invalidSource(text, format string, args ...any) error {
	return leasehold.Errorf("key source", leasehold.ErrInvalid, clip(text), format, args...)
}

func clip(s string) string {
	const most = 60
	if len(s) > most {
		s = s[:most] + "..."
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}
