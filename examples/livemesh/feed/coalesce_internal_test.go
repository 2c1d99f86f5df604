package feed

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// titles returns the titles of a feed of activities.
func titles(activities []Activity) (all []string) {
	for _, item := range newDocument("user", activities).Items {
		all = append(all, item.Title)
	}
	return all
}

// activities returns activities of one person with titles, one a minute.
func activities(actor string, titles ...string) (all []Activity) {
	for i, title := range titles {
		all = append(all, Activity{ID: fmt.Sprint(i), Actor: actor, Title: title, At: now().Add(time.Duration(i) * time.Minute)})
	}
	return all
}

func TestTitles(t *testing.T) {
	many := make([]string, 0, MaxTitleActions+2)
	for i := range MaxTitleActions + 2 {
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
		"no author":                 {"", []string{"Alice is online", "News"}, []string{"News", "Alice is online"}},
		"the same again":            {"Alice", []string{"Alice is online", "Alice went away", "Alice is online"}, []string{"Alice went away and is online"}},
		"the same and nothing else": {"Alice", []string{"Alice is online", "Alice is online"}, []string{"Alice is online"}},
		"only the name":             {"Alice", []string{"Alice", "Alice is online"}, []string{"Alice posted “Alice” and is online"}},
		"many": {"Alice", many, []string{
			"Alice wrote 2, wrote 3, wrote 4, wrote 5, wrote 6, wrote 7, wrote 8 and wrote 9",
		}},
	} {
		t.Run(what, func(t *testing.T) {
			if diff := cmp.Diff(test.want, titles(activities(test.actor, test.titles...))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestWindows: entries are separate by person and window.
func TestWindows(t *testing.T) {
	at := func(minutes int, actor, title string) Activity {
		return Activity{ID: fmt.Sprint(actor, title, minutes), Actor: actor, Title: title, At: now().Add(time.Duration(minutes) * time.Minute)}
	}
	got := titles([]Activity{
		at(0, "Alice", "Alice woke up"), at(30, "Bob", "Bob slept"), at(59, "alice", "alice had lunch"), at(60, "Alice", "Alice went out"),
	})
	if diff := cmp.Diff([]string{"Alice went out", "Alice woke up and had lunch", "Bob slept"}, got); diff != "" {
		t.Error(diff)
	}
}

// TestEntryKeepsItsID: an entry keeps its id when activities of its window are added.
func TestEntryKeepsItsID(t *testing.T) {
	all := activities("Alice", "Alice a", "Alice b", "Alice c")
	want := newDocument("user", all[1:2]).Items[0].ID
	if got := newDocument("user", all).Items; len(got) != 1 || got[0].ID != want {
		t.Errorf("%+v, want id %s", got, want)
	}
}

// anyActivities draws from few people, windows and titles, so that many coincide.
func anyActivities(t *rapid.T) []Activity {
	return rapid.SliceOfNDistinct(rapid.Custom(func(t *rapid.T) Activity {
		return Activity{
			ID:    fmt.Sprint(rapid.IntRange(0, 1000).Draw(t, "id")),
			Actor: rapid.SampledFrom([]string{"", "Alice", "Bob", "Alice Smith"}).Draw(t, "actor"),
			Title: rapid.SampledFrom([]string{"Alice ", "Bob ", "Alice Smith ", ""}).Draw(t, "name") +
				rapid.SampledFrom([]string{"slept", "had lunch", "went out", "<b>"}).Draw(t, "did"),
			At: now().Add(time.Duration(rapid.IntRange(0, 300).Draw(t, "minute")) * time.Minute),
		}
	}), 0, 40, func(a Activity) string { return a.ID }).Draw(t, "activities")
}

// TestCoalesceKeepsAll: no activity is lost or duplicated; those of an entry are of one person and
// window; and entries are sorted, and contain all activities.
func TestCoalesceKeepsAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := anyActivities(t)
		slices.SortFunc(all, compare)
		groups, listed := 0, 0
		for _, group := range coalesce(all) {
			groups++
			listed += len(group)
			for _, a := range group {
				if a.Actor != group[0].Actor || !a.At.Truncate(window).Equal(group[0].At.Truncate(window)) {
					t.Errorf("%v and %v are one entry", a, group[0])
				}
			}
		}
		d, shown := newDocument("user", all), 0
		for i, item := range d.Items {
			shown += strings.Count(item.Content, "<li>")
			if i > 0 && item.Modified.After(d.Items[i-1].Modified) {
				t.Errorf("%v comes after %v", item.Modified, d.Items[i-1].Modified)
			}
		}
		if len(d.Items) != groups || listed != len(all) || shown != len(all) {
			t.Errorf("%d activities are %d in %d groups, and %d in %d entries", len(all), listed, groups, shown, len(d.Items))
		}
	})
}
