package feed

import (
	"cmp"
	"html"
	"net/url"
	"slices"
	"strings"
	"time"
)

const (
	// window is the length of a coalescing window. Windows begin at the full hour and not at
	// an activity, so that the result does not depend on the order of arrival.
	window = time.Hour
	// MaxTitleActions is the maximum number of actions in the title of an entry.
	MaxTitleActions = 8
	// ids is the prefix of the ids of entries (RFC 4151).
	ids = "tag:livemesh.example,2008:feeds/"
)

// A Document is a feed in JSON Feed 1.1.
type Document struct {
	Version string `json:"version"`
	Title   string `json:"title"`
	Items   []Item `json:"items"`
}

// An Item is an entry of a Document: the actions of one person within a window, or one activity
// without a known person.
type Item struct {
	ID        string    `json:"id"` // stable while activities are added and dropped
	URL       string    `json:"url,omitempty"`
	Title     string    `json:"title"`        // text, with each action once
	Content   string    `json:"content_html"` // all activities
	Published time.Time `json:"date_published"`
	Modified  time.Time `json:"date_modified"`
	Authors   []Author  `json:"authors,omitempty"`
}

// An Author is the author of an item.
type Author struct {
	Name string `json:"name"`
}

// newDocument returns the feed of a user, from sorted activities.
func newDocument(user string, activities []Activity) *Document {
	d := &Document{Version: "https://jsonfeed.org/version/1.1", Title: "Activities for " + user, Items: []Item{}}
	for id, group := range coalesce(activities) {
		item := newItem(group)
		item.ID = ids + url.PathEscape(user) + "/" + id
		d.Items = append(d.Items, item)
	}
	slices.SortFunc(d.Items, func(a, b Item) int {
		return cmp.Or(b.Modified.Compare(a.Modified), cmp.Compare(a.ID, b.ID))
	})
	return d
}

// coalesce groups sorted activities by person and window. Each activity is in one group.
func coalesce(activities []Activity) map[string][]Activity {
	groups := make(map[string][]Activity)
	for _, a := range activities {
		id := a.ID
		if a.Actor != "" {
			id = identify(strings.ToLower(a.Actor), a.At.Truncate(window).String())
		}
		groups[id] = append(groups[id], a)
	}
	return groups
}

// newItem returns the entry of a group, without its id.
func newItem(group []Activity) Item {
	first, last := group[0], group[len(group)-1]
	item := Item{Title: title(group), Published: first.At, Modified: last.At}
	if first.Actor != "" {
		item.Authors = []Author{{first.Actor}}
	}
	for _, a := range group {
		text := html.EscapeString(a.Title)
		if a.Link != "" {
			item.URL = a.Link
			text = `<a href="` + html.EscapeString(a.Link) + `">` + text + "</a>"
		}
		item.Content += "<li>" + text + "</li>"
	}
	item.Content = "<ul>" + item.Content + "</ul>"
	return item
}

// title returns a sentence with the latest actions. A single activity keeps its own title.
func title(group []Activity) string {
	var actions []string // the latest last
	for _, a := range group {
		action := a.action()
		actions = slices.DeleteFunc(actions, func(other string) bool { return other == action })
		actions = append(actions, action)
	}
	last := len(actions) - 1
	if last == 0 {
		return group[0].Title
	}
	earlier := actions[max(0, len(actions)-MaxTitleActions):last]
	return group[0].Actor + " " + strings.Join(earlier, ", ") + " and " + actions[last]
}

// action returns the rest of a title that begins with the actor's name. With another title, the
// action is that the actor posted it.
func (a *Activity) action() string {
	if rest, ok := strings.CutPrefix(a.Title, a.Actor+" "); ok {
		return strings.TrimSuffix(rest, ".")
	}
	return "posted “" + a.Title + "”"
}
