package feed_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

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
		fmt.Fprintf(&b, "<item><title>%s</title><author>Alice</author><guid>%s</guid></item>", title, title)
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
		event := feed.Event{Actor: "Alice", Text: "is now online", ID: "alice-1"}
		for range 2 { // the second time they are duplicates
			if err := errors.Join(api.Add(ctx, "carol", document), api.Report(ctx, "carol", event)); err != nil {
				t.Error(err)
			}
		}
		want(t, api, "carol", "Alice updated her profile, added Bob as a friend and is now online")
		if err := api.Report(ctx, "dave", feed.Event{Text: "is now online"}); err != nil {
			t.Error(err)
		}
		want(t, api, "dave", "dave is now online")
	})
}

// TestRoom: a full feed drops the oldest activities.
func TestRoom(t *testing.T) {
	alone(t, feed.Config{Room: 3}, func(t *testing.T, c *leaseholdtest.Cluster, api *feed.Client) {
		for i := range 5 {
			if err := api.Report(t.Context(), "carol", feed.Event{Actor: "Alice", Text: fmt.Sprint("wrote ", i)}); err != nil {
				t.Fatal(err)
			}
			c.Advance(time.Second)
		}
		old := []byte(`<rss version="2.0"><channel><item><title>x</title><pubDate>Mon, 05 Jan 1970 10:00:00 GMT</pubDate></item></channel></rss>`)
		if err := api.Add(t.Context(), "carol", old); err != nil {
			t.Error(err)
		}
		want(t, api, "carol", "Alice wrote 2, wrote 3 and wrote 4")
	})
}

// TestExpires: a feed expires after the TTL without a post; duplicates count as posts.
func TestExpires(t *testing.T) {
	alone(t, feed.Config{}, func(t *testing.T, c *leaseholdtest.Cluster, api *feed.Client) {
		for range 2 {
			if err := api.Add(t.Context(), "carol", rss("Alice slept")); err != nil {
				t.Fatal(err)
			}
			c.Advance(16 * time.Hour)
		}
		want(t, api, "carol", "Alice slept")
		c.Advance(16 * time.Hour)
		want(t, api, "carol")
	})
}

// TestStatuses: every kind of invalid input has its status, and changes nothing.
func TestStatuses(t *testing.T) {
	atom, err := os.ReadFile("testdata/atom10.xml")
	if err != nil {
		t.Fatal(err)
	}
	alone(t, feed.Config{}, func(t *testing.T, _ *leaseholdtest.Cluster, api *feed.Client) {
		long := strings.Repeat("x", feed.MaxBytes+1)
		meshtest.Check(t, api.HTTP, api.URL, []meshtest.Case{
			{What: "no feed", Method: "PUT", Path: "/feeds/carol/items", Body: "hello", Status: 400, Has: "this is no feed"},
			{What: "nothing", Method: "PUT", Path: "/feeds/carol/items", Status: 400},
			{What: "deep", Method: "PUT", Path: "/feeds/carol/items", Body: "<rss>" + strings.Repeat("<a>", 1000), Status: 400, Has: "nested"},
			{What: "too long", Method: "PUT", Path: "/feeds/carol/items", Body: long, Status: 413},
			{What: "not JSON", Method: "PUT", Path: "/feeds/carol/events", Body: "{", Status: 400},
			{What: "a misspelled event", Method: "PUT", Path: "/feeds/carol/events", Body: `{"text": "x", "time": "yesterday"}`, Status: 400, Has: "time"},
			{What: "no text", Method: "PUT", Path: "/feeds/carol/events", Body: `{"actor": "Alice"}`, Status: 400},
			{What: "a long event", Method: "PUT", Path: "/feeds/carol/events", Body: long, Status: 413},
			{What: "no such method", Method: "PUT", Path: "/feeds/carol", Status: 405},
			{What: "nothing was added", Method: "GET", Path: "/feeds/carol", Status: 200, Has: `"items":[]`},
			{What: "a feed", Method: "PUT", Path: "/feeds/carol/items", Body: string(atom), Status: 204},
			{What: "JSON Feed", Method: "GET", Path: "/feeds/carol", Status: 200, Has: "jsonfeed.org"},
			{What: "HTML is text", Method: "PUT", Path: "/feeds/eve/events", Body: `{"text": "says <script>"}`, Status: 204},
			{What: "and stays so", Method: "GET", Path: "/feeds/eve", Status: 200, Has: "<li>eve says &lt;script&gt;</li>"},
		})
	})
}
