package feed_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/examples/livemesh/feed"
	"github.com/leasehold-dev/leasehold/examples/livemesh/meshtest"
	"github.com/leasehold-dev/leasehold/leaseholdtest"
)

// serve runs a server of feeds on a node.
func serve(t *testing.T, n *leaseholdtest.Node, cfg feed.Config) func(context.Context) error {
	t.Helper()
	s, err := feed.Join(t.Context(), n.MovingConfig(), cfg)
	return meshtest.Serve(t, n, s, err)
}

func client(t *testing.T, c *leaseholdtest.Cluster, n *leaseholdtest.Node) *feed.Client {
	t.Helper()
	return &feed.Client{Client: meshtest.Client(t, c, n)}
}

// alone runs a test with one server.
func alone(t *testing.T, cfg feed.Config, test func(t *testing.T, c *leaseholdtest.Cluster, api *feed.Client)) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		serve(t, c.Node("a"), cfg)
		c.Settle()
		test(t, c, client(t, c, c.Node("caller")))
	})
}

// rss returns a feed with an item for each title.
func rss(titles ...string) []byte {
	var b strings.Builder
	b.WriteString(`<rss version="2.0"><channel><title>t</title><link>https://example.com/</link>`)
	for _, title := range titles {
		fmt.Fprintf(&b, "<item><title>%s</title><guid>%s</guid></item>", title, title)
	}
	b.WriteString(`</channel></rss>`)
	return []byte(b.String())
}

// want checks the titles that a reader receives.
func want(t *testing.T, api *feed.Client, user string, titles ...string) {
	t.Helper()
	d, err := api.Get(t.Context(), user)
	if err != nil {
		t.Fatal(err)
	}
	got := make([]string, 0, len(d.Items))
	for _, item := range d.Items {
		got = append(got, item.Title)
	}
	if diff := cmp.Diff(append([]string{}, titles...), got); diff != "" {
		t.Error(diff)
	}
}

func TestPost(t *testing.T) {
	alone(t, feed.Config{}, func(t *testing.T, _ *leaseholdtest.Cluster, api *feed.Client) {
		ctx := t.Context()
		want(t, api, "carol")
		document := rss("Alice updated her profile", "Alice added Bob as a friend")
		for _, wanted := range []feed.Receipt{{Added: 2}, {Known: 2}} { // the second post is a duplicate
			if got, err := api.Add(ctx, "carol", document); err != nil || got != wanted {
				t.Errorf("%+v, %v", got, err)
			}
		}
		event := feed.Event{Actor: "Alice", Text: "is now online", ID: "alice-1"}
		for _, wanted := range []feed.Receipt{{Added: 1}, {Known: 1}} {
			if got, err := api.Report(ctx, "carol", event); err != nil || got != wanted {
				t.Errorf("%+v, %v", got, err)
			}
		}
		want(t, api, "carol", "Alice added Bob as a friend, updated her profile and is now online")
		if _, err := api.Report(ctx, "dave", feed.Event{Text: "is now online"}); err != nil {
			t.Error(err)
		}
		want(t, api, "dave", "dave is now online")
		if err := api.Delete(ctx, "carol"); err != nil {
			t.Error(err)
		}
		want(t, api, "carol")
	})
}

// TestRoom: a full feed drops the oldest activities.
func TestRoom(t *testing.T) {
	alone(t, feed.Config{Room: 3}, func(t *testing.T, c *leaseholdtest.Cluster, api *feed.Client) {
		for i := range 5 {
			if _, err := api.Report(t.Context(), "carol", feed.Event{Actor: "Alice", Text: fmt.Sprint("wrote ", i)}); err != nil {
				t.Fatal(err)
			}
			c.Advance(time.Second)
		}
		long := time.Unix(1, 0)
		if got, err := api.Report(t.Context(), "carol", feed.Event{Text: "was born", At: &long}); err != nil || got.Ignored != 1 {
			t.Errorf("%+v, %v", got, err)
		}
		want(t, api, "carol", "Alice wrote 2, wrote 3 and wrote 4")
	})
}

// TestExpires: a feed expires after the TTL without a post; duplicates count as posts.
func TestExpires(t *testing.T) {
	alone(t, feed.Config{}, func(t *testing.T, c *leaseholdtest.Cluster, api *feed.Client) {
		for range 2 {
			if _, err := api.Add(t.Context(), "carol", rss("Alice slept")); err != nil {
				t.Fatal(err)
			}
			c.Advance(16 * time.Hour)
		}
		want(t, api, "carol", "Alice slept")
		c.Advance(16 * time.Hour)
		want(t, api, "carol")
	})
}

// TestNotModified: If-None-Match gives 304 until the feed changes. Each format has another ETag.
func TestNotModified(t *testing.T) {
	alone(t, feed.Config{}, func(t *testing.T, _ *leaseholdtest.Cluster, api *feed.Client) {
		get := func(query, tag string) (int, string) {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, api.URL+"/feeds/carol"+query, http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("If-None-Match", tag)
			answer, err := api.HTTP.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer answer.Body.Close() //nolint:errcheck // the body is not needed
			return answer.StatusCode, answer.Header.Get("ETag")
		}
		tags := make(map[string]bool)
		for i := range 3 {
			for _, query := range []string{"", "?format=rss", "?format=json"} {
				status, tag := get(query, "")
				if status != http.StatusOK || tags[tag] {
					t.Errorf("%s: %d with %s", query, status, tag)
				}
				tags[tag] = true
				if status, again := get(query, `"other", W/`+tag); status != http.StatusNotModified || again != tag {
					t.Errorf("%s: %d with %s", query, status, again)
				}
			}
			if _, err := api.Add(t.Context(), "carol", rss("Alice slept", fmt.Sprint("Bob ran ", i))); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestStatuses: every kind of invalid input has its status, and changes nothing.
func TestStatuses(t *testing.T) {
	atom, err := os.ReadFile("testdata/atom10.xml")
	if err != nil {
		t.Fatal(err)
	}
	many := make([]string, feed.MaxItems+1)
	for i := range many {
		many[i] = fmt.Sprint("Alice wrote ", i)
	}
	alone(t, feed.Config{}, func(t *testing.T, _ *leaseholdtest.Cluster, api *feed.Client) {
		long := strings.Repeat("x", feed.MaxBytes+1)
		meshtest.Check(t, api.HTTP, api.URL, []meshtest.Case{
			{What: "no feed", Method: "POST", Path: "/feeds/carol/items", Body: "hello", Status: 422, Has: "this is no feed"},
			{What: "nothing", Method: "POST", Path: "/feeds/carol/items", Status: 422},
			{What: "deep", Method: "POST", Path: "/feeds/carol/items", Body: "<rss>" + strings.Repeat("<a>", 1000), Status: 422, Has: "nested"},
			{What: "too long", Method: "POST", Path: "/feeds/carol/items", Body: long, Status: 413},
			{What: "too many items", Method: "POST", Path: "/feeds/carol/items", Body: string(rss(many...)), Status: 413, Has: "1001 items"},
			{What: "a long name", Method: "POST", Path: "/feeds/" + long[:feed.MaxName+1] + "/items", Body: string(rss("x")), Status: 400},
			{What: "a name that is no text", Method: "GET", Path: "/feeds/%01", Status: 400},
			{What: "not JSON", Method: "POST", Path: "/feeds/carol/events", Body: "{", Status: 400},
			{What: "a misspelled event", Method: "POST", Path: "/feeds/carol/events", Body: `{"text": "x", "time": "yesterday"}`, Status: 400, Has: "time"},
			{What: "no text", Method: "POST", Path: "/feeds/carol/events", Body: `{"actor": "Alice"}`, Status: 400},
			{What: "a long text", Method: "POST", Path: "/feeds/carol/events", Body: `{"text": "` + long[:feed.MaxTitle+1] + `"}`, Status: 400},
			{What: "a bad link", Method: "POST", Path: "/feeds/carol/events", Body: `{"text": "x", "link": "javascript:x"}`, Status: 400},
			{What: "a long event", Method: "POST", Path: "/feeds/carol/events", Body: long, Status: 413},
			{What: "an unknown format", Method: "GET", Path: "/feeds/carol?format=pdf", Status: 400, Has: "atom, rss or json"},
			{What: "no such method", Method: "PUT", Path: "/feeds/carol", Status: 405, Has: `"kind":"invalid"`},
			{What: "nothing was added", Method: "GET", Path: "/feeds/carol?format=json", Status: 200, Has: `"items": []`},
			{What: "a feed", Method: "POST", Path: "/feeds/carol/items", Body: string(atom), Status: 200, Has: `"added":2`},
			{What: "Atom", Method: "GET", Path: "/feeds/carol", Status: 200, Has: "http://www.w3.org/2005/Atom"},
			{What: "what a browser wants", Method: "GET", Path: "/feeds/carol", Header: "Accept: text/html, */*;q=0.8", Status: 200, Has: "http://www.w3.org/2005/Atom"},
			{What: "RSS", Method: "GET", Path: "/feeds/carol", Header: "Accept: application/rss+xml, application/atom+xml;q=0.5", Status: 200, Has: `<rss version="2.0"`},
			{What: "JSON", Method: "GET", Path: "/feeds/carol", Header: "Accept: application/feed+json", Status: 200, Has: "jsonfeed.org"},
			{What: "HTML is text", Method: "POST", Path: "/feeds/eve/events", Body: `{"text": "says <script>"}`, Status: 200},
			{What: "and stays so", Method: "GET", Path: "/feeds/eve?format=rss", Status: 200, Has: "<title>eve says &amp;lt;script&amp;gt;</title>"},
			{What: "deleted", Method: "DELETE", Path: "/feeds/eve", Status: 204},
		})
	})
}

func TestConfig(t *testing.T) {
	for what, cfg := range map[string]feed.Config{
		"Room": {Room: 301}, "MaxWorking": {MaxWorking: -1},
	} {
		alone(t, feed.Config{}, func(t *testing.T, c *leaseholdtest.Cluster, _ *feed.Client) {
			if _, err := feed.Join(t.Context(), c.Node("b").MovingConfig(), cfg); !errors.Is(err, leasehold.ErrInvalid) || !strings.Contains(err.Error(), what) {
				t.Errorf("%s: %v", what, err)
			}
		})
	}
}
