package feed_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/leasehold-dev/leasehold/examples/livemesh/feed"
)

func noon() time.Time { return time.Date(2008, 11, 3, 12, 0, 0, 0, time.UTC) }

// makeActivities returns activities of one person with titles, one a minute.
func makeActivities(actor string, titles ...string) (all []feed.Activity) {
	for i, title := range titles {
		all = append(all, feed.Activity{ID: fmt.Sprint(i), Actor: actor, Title: title, At: noon().Add(time.Duration(i) * time.Minute)})
	}
	return all
}

func ExampleCoalesce() {
	at := time.Date(2008, 11, 3, 12, 0, 0, 0, time.UTC)
	entries := feed.Coalesce([]feed.Activity{
		{ID: "1", Actor: "Alice", Title: "Alice updated her profile", At: at},
		{ID: "2", Actor: "Bob", Title: "Holiday pictures", At: at.Add(time.Minute)},
		{ID: "3", Actor: "Alice", Title: "Alice added Bob as a friend", At: at.Add(2 * time.Minute)},
	}, time.Hour)
	for _, e := range entries {
		fmt.Println(e.Title)
	}
	// Output:
	// Alice updated her profile and added Bob as a friend
	// Holiday pictures
}

func TestTitles(t *testing.T) {
	many := make([]string, 0, feed.MaxTitleActions+2)
	for i := range feed.MaxTitleActions + 2 {
		many = append(many, fmt.Sprint("Alice wrote ", i))
	}
	for what, test := range map[string]struct {
		actor  string
		titles []string
		want   []string // the latest first
	}{
		"one":                       {"Alice", []string{"Alice updated her profile."}, []string{"Alice updated her profile."}},
		"two":                       {"Alice", []string{"Alice updated her profile.", "Alice added Bob as a friend."}, []string{"Alice updated her profile and added Bob as a friend"}},
		"three":                     {"Alice", []string{"Alice a", "Alice b", "Alice c"}, []string{"Alice a, b and c"}},
		"posted":                    {"Alice", []string{"Alice is online", "My holiday"}, []string{"Alice is online and posted “My holiday”"}},
		"her first name":            {"Alice Smith", []string{"Alice is online", "alice smith went away"}, []string{"Alice Smith is online and went away"}},
		"a colon":                   {"Alice", []string{"Alice: went away", "Alice came back"}, []string{"Alice went away and came back"}},
		"no author":                 {"", []string{"Alice is online", "Alice went away..."}, []string{"Alice is online and went away..."}},
		"no author, a long name":    {"", []string{"Alice Smith is online", "Alice Jones is online"}, []string{"Alice Jones is online", "Alice Smith is online"}},
		"no author, no name":        {"", []string{"The cat sat", "The dog ran", "it rains", "News"}, []string{"News", "it rains", "The dog ran", "The cat sat"}},
		"an author with a “The”":    {"The Beatles", []string{"The Beatles split up", "The end"}, []string{"The Beatles split up and posted “The end”"}},
		"the same again":            {"Alice", []string{"Alice is online", "Alice went away", "Alice is online"}, []string{"Alice went away and is online"}},
		"the same and nothing else": {"Alice", []string{"Alice is online", "Alice is online"}, []string{"Alice is online"}},
		"nothing at all":            {"Alice", []string{"Alice .", "Alice slept"}, []string{"Alice . and slept"}},
		"only the name":             {"Alice", []string{"Alice", "Alice is online"}, []string{"Alice posted “Alice” and is online"}},
		"many": {"Alice", many, []string{
			"Alice wrote 2, wrote 3, wrote 4, wrote 5, wrote 6, wrote 7, wrote 8, wrote 9 and did 2 more things",
		}},
	} {
		t.Run(what, func(t *testing.T) {
			var got []string
			for _, e := range feed.Coalesce(makeActivities(test.actor, test.titles...), time.Hour) {
				got = append(got, e.Title)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestWindows: entries are separate by person and window. A person may be identified by the
// author or by the title.
func TestWindows(t *testing.T) {
	at := func(minutes int, actor, title string) feed.Activity {
		return feed.Activity{ID: fmt.Sprint(actor, title, minutes), Actor: actor, Title: title, At: noon().Add(time.Duration(minutes) * time.Minute)}
	}
	entries := feed.Coalesce([]feed.Activity{
		at(0, "Alice", "Alice woke up"), at(59, "", "Alice had lunch"), at(60, "Alice", "Alice went out"), at(30, "Bob", "Bob slept"),
	}, time.Hour)
	var got []string
	for _, e := range entries {
		got = append(got, e.Title)
	}
	if diff := cmp.Diff([]string{"Alice went out", "Alice woke up and had lunch", "Bob slept"}, got); diff != "" {
		t.Error(diff)
	}
}

// TestEntryKeepsItsID: an entry keeps its id when activities of its window are added.
func TestEntryKeepsItsID(t *testing.T) {
	all := makeActivities("Alice", "Alice a", "Alice b", "Alice c")
	want := feed.Coalesce(all[1:2], time.Hour)[0].ID
	if got := feed.Coalesce(all, time.Hour); len(got) != 1 || got[0].ID != want {
		t.Errorf("%+v, want id %s", got, want)
	}
}

// anyActivities draws from few people, windows and titles, so that many coincide.
func anyActivities(t *rapid.T) []feed.Activity {
	return rapid.SliceOfNDistinct(rapid.Custom(func(t *rapid.T) feed.Activity {
		return feed.Activity{
			ID:    fmt.Sprint(rapid.IntRange(0, 1000).Draw(t, "id")),
			Actor: rapid.SampledFrom([]string{"", "Alice", "Bob", "Alice Smith"}).Draw(t, "actor"),
			Title: rapid.SampledFrom([]string{"Alice ", "Bob ", "Alice Smith ", "The ", ""}).Draw(t, "name") +
				rapid.SampledFrom([]string{"slept", "had lunch", "went out", "Slept"}).Draw(t, "did"),
			At: noon().Add(time.Duration(rapid.IntRange(0, 300).Draw(t, "minute")) * time.Minute),
		}
	}), 0, 40, func(a feed.Activity) string { return a.ID }).Draw(t, "activities")
}

// TestCoalesceKeepsAll: no activity is lost or duplicated; those of an entry are of one window;
// entries are sorted; and the result does not depend on the order of activities.
func TestCoalesceKeepsAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := anyActivities(t)
		entries := feed.Coalesce(all, time.Hour)
		var ids, want []string
		for i, e := range entries {
			for _, a := range e.Activities {
				ids = append(ids, a.ID)
				if !a.At.Truncate(time.Hour).Equal(e.Updated().Truncate(time.Hour)) {
					t.Errorf("%v and %v are one entry", a.At, e.Updated())
				}
			}
			if i > 0 && e.Updated().After(entries[i-1].Updated()) {
				t.Errorf("%v comes after %v", e.Updated(), entries[i-1].Updated())
			}
			stated(t, &e)
		}
		for _, a := range all {
			want = append(want, a.ID)
		}
		slices.Sort(ids)
		slices.Sort(want)
		if diff := cmp.Diff(want, ids); diff != "" {
			t.Errorf("activities were lost or duplicated: %s", diff)
		}
		if diff := cmp.Diff(entries, feed.Coalesce(rapid.Permutation(all).Draw(t, "order"), time.Hour)); diff != "" {
			t.Errorf("the result depends on the order: %s", diff)
		}
	})
}

// checkTitle checks that a title contains each action once.
func stated(t *rapid.T, e *feed.Entry) {
	things := strings.Split(strings.ReplaceAll(strings.TrimPrefix(e.Title, e.Actor+" "), " and ", ", "), ", ")
	if len(things) > feed.MaxTitleActions {
		return // the title has only their number
	}
	slices.Sort(things)
	if len(slices.Compact(slices.Clone(things))) < len(things) {
		t.Errorf("%q contains an action twice", e.Title)
	}
	for _, a := range e.Activities {
		words := strings.Fields(a.Title)
		last := words[len(words)-1] // identifies the action
		if !slices.ContainsFunc(things, func(thing string) bool { return strings.Contains(thing, last) }) {
			t.Errorf("%q does not contain %q", e.Title, a.Title)
		}
	}
}
