package feed

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// MaxTitleActions is the maximum number of actions in the title of an entry.
const MaxTitleActions = 8

// An Entry is the actions of one person within a window.
type Entry struct {
	ID         string // stable while activities are added and dropped
	Actor      string // "" if unknown
	Title      string
	Activities []Activity // at least one, the oldest first
}

// Updated returns the time of the last activity.
func (e *Entry) Updated() time.Time { return e.Activities[len(e.Activities)-1].At }

// Link returns the link of the latest activity that has one.
func (e *Entry) Link() string {
	for _, a := range slices.Backward(e.Activities) {
		if a.Link != "" {
			return a.Link
		}
	}
	return ""
}

// Coalesce groups activities into entries, the latest first. Each activity is in one entry.
// The result does not depend on the order of the activities.
func Coalesce(activities []Activity, window time.Duration) []Entry {
	sorted := slices.SortedFunc(slices.Values(activities), compare)
	var entries []Entry
	at := make(map[string]int) // index of an entry by id
	for _, a := range sorted {
		actor, _ := a.split()
		id := a.ID
		if actor != "" {
			id = identify(strings.ToLower(actor), strconv.FormatInt(a.At.Truncate(window).Unix(), 10))
		}
		i, ok := at[id]
		if !ok {
			i = len(entries)
			at[id] = i
			entries = append(entries, Entry{ID: id, Actor: actor})
		}
		entries[i].Activities = append(entries[i].Activities, a)
	}
	for i := range entries {
		entries[i].Title = entries[i].title()
	}
	slices.SortFunc(entries, func(a, b Entry) int {
		return cmp.Or(b.Updated().Compare(a.Updated()), cmp.Compare(a.ID, b.ID))
	})
	return entries
}

// title returns a sentence with all actions. A single action keeps its own title.
func (e *Entry) title() string {
	var things []string // the latest last
	for _, a := range e.Activities {
		_, action := a.split()
		things = slices.DeleteFunc(things, func(other string) bool { return other == action })
		things = append(things, action)
	}
	if len(things) == 1 {
		return e.Activities[len(e.Activities)-1].Title
	}
	if more := len(things) - MaxTitleActions; more > 0 {
		things = append(things[more:], fmt.Sprintf("did %d more things", more))
	}
	last := len(things) - 1
	return e.Actor + " " + strings.Join(things[:last], ", ") + " and " + things[last]
}

// split divides an activity into the person and the action. Without a person, the action is
// the title.
func (a *Activity) split() (actor, action string) {
	words := strings.Fields(a.Title)
	if a.Actor == "" {
		n := capitals(words)
		if n == 0 || n == len(words) || isArticle(words[0]) {
			return "", a.Title
		}
		return withoutColon(strings.Join(words[:n], " ")), phrase(words[n:])
	}
	n := inCommon(words, strings.Fields(a.Actor))
	if n == 0 || n == len(words) {
		return a.Actor, "posted “" + a.Title + "”"
	}
	return a.Actor, phrase(words[n:])
}

// inCommon returns the number of words that a title and a name have in common at the start.
func inCommon(title, name []string) int {
	n := 0
	for n < min(len(title), len(name)) && strings.EqualFold(withoutColon(title[n]), name[n]) {
		n++
	}
	if n == 1 && len(name) > 1 && isArticle(name[0]) { // The Beatles; "The cat sat"
		return 0
	}
	return n
}

// capitals returns the number of words at the start of a title with a capital letter.
func capitals(title []string) int {
	n := slices.IndexFunc(title, func(word string) bool {
		first, _ := utf8.DecodeRuneInString(word)
		return !unicode.IsUpper(first)
	})
	if n < 0 {
		return len(title)
	}
	return n
}

func isArticle(word string) bool {
	return slices.Contains([]string{"a", "an", "the", "this", "that", "these", "those"}, strings.ToLower(word))
}

func withoutColon(name string) string { return strings.TrimRight(name, ":,") }

// phrase returns a part of a sentence, without the full stop.
func phrase(words []string) string {
	text := strings.Join(words, " ")
	if short, ok := strings.CutSuffix(text, "."); ok && short != "" && !strings.HasSuffix(short, ".") {
		return short
	}
	return text
}
