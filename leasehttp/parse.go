package leasehttp

import (
	"strconv"
	"strings"

	"github.com/leasehold-dev/leasehold"
)

// maxSources bounds how many places are searched for one key.
const maxSources = 16

// forms are what ParseSource reads.
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

// clip keeps what somebody typed from filling a log.
func clip(s string) string {
	const most = 60
	if len(s) > most {
		s = s[:most] + "..."
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}
