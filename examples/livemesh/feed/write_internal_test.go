package feed

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/mmcdole/gofeed"
	"pgregory.net/rapid"
)

// An ours is the parsed form of an entry.
type ours struct {
	ID, Title, Actor, Link, Content string
	Published                       time.Time
}

// TestRoundTrip: any activities give valid feeds in every format, which parse to the same values.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		texts := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"<script>alert(1)</script>", "Tom & Jerry", "&lt;b&gt;", "]]>", "1 < 2", "\x00\x07", "\xff"}))
		all := rapid.SliceOfNDistinct(rapid.Custom(func(t *rapid.T) Activity {
			return Activity{
				ID:    identify(rapid.String().Draw(t, "id")),
				Actor: rapid.SampledFrom([]string{"", "x", "X & Y", "<b>", "&lt;b&gt;", "Zoë"}).Draw(t, "actor"),
				Title: line("x "+texts.Draw(t, "title"), MaxTitle),
				Link:  rapid.SampledFrom([]string{"", `https://example.com/?a="1"&b=<2>`}).Draw(t, "link"),
				At:    now().Add(time.Duration(rapid.IntRange(0, 10000).Draw(t, "second")) * time.Second),
			}
		}), 0, 5, func(a Activity) string { return a.ID }).Draw(t, "activities")
		entries := Coalesce(all, time.Hour)
		for _, f := range formats() {
			data, err := f.write(newDocument("Ann & <Bob>", "https://example.com/feeds/ann?format=x", entries))
			if err != nil {
				t.Fatal(err)
			}
			check(t, f.name, entries, data)
		}
	})
}

func check(t *rapid.T, format string, entries []Entry, data []byte) {
	read, err := gofeed.NewParser().ParseString(string(data))
	if err != nil {
		t.Fatalf("%s: %v\n%s", format, err, data)
	}
	title := read.Title
	if format == "rss" { // titles may be HTML
		title = plain(title)
	}
	if title != "Activities for Ann & <Bob>" || len(read.Items) != len(entries) {
		t.Errorf("%s: %q with %d entries", format, title, len(read.Items))
	}
	var got, want []ours
	for _, item := range read.Items {
		o := ours{ID: item.GUID, Title: item.Title, Actor: name(item), Link: item.Link, Content: item.Content + item.Description, Published: *item.PublishedParsed}
		if format == "rss" {
			o.Title, o.Actor = plain(o.Title), plain(o.Actor)
		}
		got = append(got, o)
	}
	for _, e := range entries {
		o := ours{ID: ids + "Ann%20&%20%3CBob%3E/" + e.ID, Title: e.Title, Actor: e.Actor, Link: e.Link(), Content: e.content(), Published: e.Activities[0].At}
		if format == "rss" {
			o.Published = e.Updated() // RSS has only one date
		}
		want = append(want, o)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: %s\n%s", format, diff, data)
	}
}

func name(of *gofeed.Item) string {
	if len(of.Authors) == 0 {
		return ""
	}
	return of.Authors[0].Name
}

// TestEmpty: an empty feed is valid.
func TestEmpty(t *testing.T) {
	for _, f := range formats() {
		data, err := f.write(newDocument("ann", "https://example.com/", nil))
		if err != nil {
			t.Fatal(err)
		}
		if got, _, err := parse(data, now()); err != nil || len(got) != 0 {
			t.Errorf("%s: %v, %v: %s", f.name, got, err, data)
		}
	}
}
