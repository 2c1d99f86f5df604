package feed

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/examples/livemesh/jsonhttp"
)

const (
	maxEvent = 16 << 10         // bytes of a request with an event
	bodyTime = 10 * time.Second // timeout of reading a request, which counts as concurrent meanwhile
)

// Handler serves the API. A request for a feed that is being transferred to this server waits
// until the transfer is complete: an earlier post would be overwritten.
func (s *Service) Handler() http.Handler {
	mux := jsonhttp.NewMux(s.feeds.Owner())
	mux.Handle("POST /feeds/{name}/items", s.addItems)
	mux.Handle("POST /feeds/{name}/events", jsonhttp.Body(maxEvent, `an event, for example {"text": "is now online"},`, s.addEvent))
	mux.Handle("DELETE /feeds/{name}", func(r *jsonhttp.Request) (any, error) {
		return nil, s.feeds.Delete(r.Context(), r.Name)
	})
	mux.Serve("GET /feeds/{name}", s.get)
	return s.admit(mux)
}

// admit refuses requests above the limit of concurrent ones (PRS 3.3), and limits the time to
// read a request.
func (s *Service) admit(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case s.working <- struct{}{}:
			defer func() { <-s.working }()
		default:
			w.Header().Set("Retry-After", "1")
			jsonhttp.Fail(w, leasehold.Errorf("admit", leasehold.ErrLimit, r.URL.Path, "nothing was done: %d requests are in progress here, which is the limit; retry later", s.cfg.MaxWorking))
			return
		}
		in := http.NewResponseController(w)
		if err := in.SetReadDeadline(time.Now().Add(bodyTime)); err == nil { // not supported by all writers
			defer in.SetReadDeadline(time.Time{}) //nolint:errcheck // it was set above
		}
		next.ServeHTTP(w, r)
	})
}

// get responds with a feed, or with 304.
func (s *Service) get(w http.ResponseWriter, r *jsonhttp.Request) error {
	if err := validUser(r.Name); err != nil {
		return err
	}
	as, err := formatOf(s.formats, r.Request)
	if err != nil {
		return err
	}
	have, version, err := s.feeds.GetVersion(r.Name)
	if err != nil {
		return err
	}
	scheme := "http"
	if r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https" {
		scheme = "https"
	}
	address := scheme + "://" + r.Host + jsonhttp.Path("feeds", r.Name) + "?format=" + as.name
	data, err := as.write(newDocument(r.Name, address, Coalesce(have.Activities, window)))
	if err != nil {
		return leasehold.Errorf("write feed", leasehold.ErrInternal, r.Name, "%w", err)
	}
	h := w.Header()
	h.Set("Cache-Control", "no-cache")
	h.Set("Vary", "Accept")
	h.Set("ETag", `"`+as.name+"-"+version.String()+`"`)
	h.Set("Content-Type", as.media[0]+"; charset=utf-8")
	h.Set("X-Content-Type-Options", "nosniff")
	http.ServeContent(w, r.Request, "", time.Time{}, bytes.NewReader(data))
	return nil
}

func formatOf(all []format, r *http.Request) (format, error) {
	if name := r.URL.Query().Get("format"); name != "" {
		i := slices.IndexFunc(all, func(f format) bool { return f.name == name })
		if i < 0 {
			return format{}, leasehold.Errorf("get feed", leasehold.ErrInvalid, r.PathValue("name"), "unknown format %q: want atom, rss or json", name)
		}
		return all[i], nil
	}
	best, weight := all[0], 0.0
	for part := range strings.SplitSeq(strings.Join(r.Header.Values("Accept"), ","), ",") {
		media, parameters, err := mime.ParseMediaType(part)
		i := slices.IndexFunc(all, func(f format) bool { return slices.Contains(f.media, media) })
		if err != nil || i < 0 {
			continue // unknown types get the default
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

// A Client is a client of the service. Readers do not need it: a feed has an address.
type Client struct{ jsonhttp.Client }

// Add adds the items of a feed in RSS, Atom or JSON Feed. It is idempotent.
func (c *Client) Add(ctx context.Context, user string, document []byte) (Receipt, error) {
	return c.post(ctx, jsonhttp.Path("feeds", user, "items"), document)
}

// Report adds an event. It is idempotent if the event has an ID.
func (c *Client) Report(ctx context.Context, user string, e Event) (Receipt, error) {
	e.ID = cmp.Or(e.ID, rand.Text())
	return c.post(ctx, jsonhttp.Path("feeds", user, "events"), e)
}

// post sends an idempotent request.
func (c *Client) post(ctx context.Context, path string, in any) (Receipt, error) {
	repeatable := c.Client
	repeatable.Repeatable = true
	return jsonhttp.Call[Receipt](ctx, repeatable, http.MethodPost, path, in)
}

// Get returns the feed of a user. A missing feed has no items.
func (c *Client) Get(ctx context.Context, user string) (Document, error) {
	return jsonhttp.Call[Document](ctx, c.Client, http.MethodGet, jsonhttp.Path("feeds", user)+"?format=json", nil)
}

// Delete removes the feed of a user. Another server may still have it.
func (c *Client) Delete(ctx context.Context, user string) error {
	return c.Do(ctx, http.MethodDelete, jsonhttp.Path("feeds", user), nil, nil)
}
