package leasehttp

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"
)

func newHeader(name string) (Source, error) {
	if !httpguts.ValidHeaderFieldName(name) {
		return Source{}, invalidSource("header:"+name, "want the name of a header, such as X-User")
	}
	name = http.CanonicalHeaderKey(name)
	switch {
	case name == "Host":
		return Source{"header:Host", findHost}, nil
	case reserved(name):
		return Source{}, invalidSource("header:"+name, "headers that begin with %s are reserved and not forwarded", headerPrefix)
	case slices.Contains(perConnection, name):
		return Source{}, invalidSource("header:"+name, "proxies do not forward this header: it is for one connection")
	}
	return Source{"header:" + name, func(r *http.Request) (string, absence) { return single(r.Header[name]) }}, nil
}

// perConnection are the hop-by-hop headers (RFC 9110, section 7.6.1), and those that proxies
// replace.
var perConnection = []string{
	"Connection", "Content-Length", "Forwarded", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization",
	"Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "X-Forwarded-For", "X-Forwarded-Host",
	"X-Forwarded-Proto",
}

func findHost(r *http.Request) (string, absence) {
	if r.Host == "" && r.URL != nil {
		return nonEmpty(r.URL.Host)
	}
	return nonEmpty(r.Host)
}

func newPathSegment(n int) (Source, error) {
	text := "path:" + strconv.Itoa(n)
	if n < 1 || n > maxSegment {
		return Source{}, invalidSource(text, "want the number of a segment, from 1 to %d", maxSegment)
	}
	return Source{text, func(r *http.Request) (string, absence) { return segment(r.URL, n) }}, nil
}

// segment returns the n-th segment of a path. An escaped slash does not end a segment.
func segment(u *url.URL, n int) (string, absence) {
	switch {
	case u == nil:
		return "", missing
	case hasDots(u.Path):
		return "", malformed
	}
	if u.RawPath == "" { // it has no escaped slash
		return nthSegment(u.Path, n)
	}
	escaped, why := nthSegment(u.EscapedPath(), n)
	if why != found {
		return "", why
	}
	name, err := url.PathUnescape(escaped)
	if err != nil {
		return "", missing
	}
	return nonEmpty(name)
}

// hasDots reports whether an unescaped path has a segment "." or "..". Many programs resolve
// these first.
func hasDots(path string) bool {
	if !strings.Contains(path, "/.") {
		return false
	}
	for part := range strings.SplitSeq(path, "/") {
		if part == "." || part == ".." {
			return true
		}
	}
	return false
}

func nthSegment(path string, n int) (string, absence) {
	rest, rooted := strings.CutPrefix(path, "/")
	if !rooted {
		return "", missing
	}
	for i := 1; ; i++ {
		part, after, more := strings.Cut(rest, "/")
		if part == "" {
			return "", missing
		}
		if i == n {
			return part, found
		}
		if !more {
			return "", missing
		}
		rest = after
	}
}

func newQuery(name string) (Source, error) {
	if name == "" {
		return Source{}, invalidSource("query:", "want the name of a parameter, such as user")
	}
	return Source{"query:" + name, func(r *http.Request) (string, absence) {
		if r.URL == nil {
			return "", missing
		}
		return parameter(r.URL.RawQuery, name)
	}}, nil
}

// parameter returns the value that url.ParseQuery finds, without allocating a map. Pairs that
// ParseQuery rejects are not forwarded, and are ignored here.
func parameter(query, name string) (string, absence) {
	var value string
	why := missing
	for query != "" {
		var pair string
		pair, query, _ = strings.Cut(query, "&")
		if strings.Contains(pair, ";") {
			continue
		}
		escapedKey, escapedValue, _ := strings.Cut(pair, "=")
		key, err := url.QueryUnescape(escapedKey)
		if err != nil || key != name {
			continue
		}
		next, err := url.QueryUnescape(escapedValue)
		switch {
		case err != nil:
			continue
		case why == found && next != value:
			return "", ambiguous
		}
		value, why = next, found
	}
	if why != found {
		return "", why
	}
	return nonEmpty(value)
}

func newCookie(name string) (Source, error) {
	if !httpguts.ValidHeaderFieldName(name) { // cookie names have the same syntax
		return Source{}, invalidSource("cookie:"+name, "want the name of a cookie, such as session")
	}
	return Source{"cookie:" + name, func(r *http.Request) (string, absence) {
		var values []string
		for _, c := range r.CookiesNamed(name) {
			values = append(values, c.Value)
		}
		if countCookies(r.Header["Cookie"], name) != len(values) {
			return "", malformed
		}
		return single(values)
	}}, nil
}

// countCookies counts the cookies of a name, including those whose invalid values package
// net/http drops, but other programs accept.
func countCookies(lines []string, name string) int {
	n := 0
	for _, line := range lines {
		for pair := range strings.SplitSeq(line, ";") {
			if named, _, _ := strings.Cut(pair, "="); strings.TrimSpace(named) == name {
				n++
			}
		}
	}
	return n
}

func newFirst(sources []Source) (Source, error) {
	if len(sources) == 0 || len(sources) > maxSources {
		return Source{}, invalidSource("", "want 1 to %d sources, have %d", maxSources, len(sources))
	}
	texts := make([]string, len(sources))
	for i, s := range sources {
		if !s.valid() {
			return Source{}, invalidSource("", "source %d of %d is empty", i+1, len(sources))
		}
		texts[i] = s.text
	}
	if len(sources) == 1 {
		return sources[0], nil
	}
	sources = slices.Clone(sources)
	return Source{strings.Join(texts, ","), func(r *http.Request) (string, absence) {
		for _, s := range sources {
			if name, why := s.find(r); why != missing {
				return name, why
			}
		}
		return "", missing
	}}, nil
}

func single(values []string) (string, absence) {
	if len(values) == 0 {
		return "", missing
	}
	for _, v := range values[1:] {
		if v != values[0] {
			return "", ambiguous
		}
	}
	return nonEmpty(values[0])
}

func nonEmpty(name string) (string, absence) {
	if name == "" {
		return "", missing
	}
	return name, found
}
