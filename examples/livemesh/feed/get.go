package feed

import (
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/examples/livemesh/jsonhttp"
)

// get answers with a feed, unless the reader has it already.
func (s *Service) get(w http.ResponseWriter, r *http.Request) error {
	user := r.PathValue("name")
	if err := validUser(user); err != nil {
		return err
	}
	as, err := formatOf(r)
	if err != nil {
		return err
	}
	have, version, err := s.feeds.Get(user)
	if err != nil {
		return err
	}
	h := w.Header()
	h.Set("Cache-Control", "no-cache")
	h.Set("Vary", "Accept")
	tag := `"` + as.name + "-" + version.String() + `"`
	h.Set("ETag", tag)
	if hasTag(r, tag) {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	data, err := as.write(&page{user, selfOf(r, user, as), Coalesce(have.Activities, s.cfg.Window)})
	if err != nil {
		return leasehold.Errorf("write feed", leasehold.Internal, user, "%w", err)
	}
	h.Set("Content-Type", as.media[0]+"; charset=utf-8")
	h.Set("Content-Length", strconv.Itoa(len(data)))
	h.Set("X-Content-Type-Options", "nosniff")
	_, _ = w.Write(data) // it fails only if the reader has gone
	return nil
}

// formatOf is how a reader wants the feed.
func formatOf(r *http.Request) (format, error) {
	all := formats()
	if name := r.URL.Query().Get("format"); name != "" {
		i := slices.IndexFunc(all, func(f format) bool { return f.name == name })
		if i < 0 {
			return format{}, leasehold.Errorf("get feed", leasehold.Invalid, r.PathValue("name"), "there is no format %q: want atom, rss or json", name)
		}
		return all[i], nil
	}
	best, weight := all[0], 0.0
	for part := range strings.SplitSeq(strings.Join(r.Header.Values("Accept"), ","), ",") {
		media, parameters, err := mime.ParseMediaType(part)
		i := slices.IndexFunc(all, func(f format) bool { return slices.Contains(f.media, media) })
		if err != nil || i < 0 {
			continue // a reader that wants something else gets what most can read
		}
		q, err := strconv.ParseFloat(parameters["q"], 64)
		if err != nil {
			q = 1
		}
		if q > weight {
			best, weight = all[i], q
		}
	}
	return best, nil
}

// hasTag reports whether a reader has what has this ETag.
func hasTag(r *http.Request, tag string) bool {
	for one := range strings.SplitSeq(strings.Join(r.Header.Values("If-None-Match"), ","), ",") {
		if one = strings.TrimPrefix(strings.TrimSpace(one), "W/"); one == tag {
			return true
		}
	}
	return false
}

// selfOf is the address of a feed, as the reader knows it.
func selfOf(r *http.Request, user string, as format) string {
	scheme := "http"
	if r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https" {
		scheme = "https"
	}
	return jsonhttp.Path(scheme+"://"+r.Host, "feeds", user) + "?format=" + as.name
}
