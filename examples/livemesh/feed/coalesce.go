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

// MaxSaid is how many things the title of an entry says that somebody did.
const MaxSaid = 8

// An Entry is what one person did within a window.
type Entry struct {
	ID         string // stays while activities come and go
	Actor      string // "" if nobody knows
	Title      string
	Activities []Activity // the oldest first; there is one at least
}

// Updated is when the last of its activities was.
func (e *Entry) Updated() time.Time { return e.Activities[len(e.Activities)-1].At }

// Link is that of the latest activity that has one.
func (e *Entry) Link() string {
	for _, a := range slices.Backward(e.Activities) {
		if a.Link != "" {
			return a.Link
		}
	}
	return ""
}

// Coalesce makes entries of activities, the latest first. Each activity is in one entry. The
// result does not depend on the order of the activities.
func Coalesce(activities []Activity, window time.Duration) []Entry {
	sorted := slices.SortedFunc(slices.Values(activities), compare)
	var entries []Entry
	at := make(map[string]int) // where an entry is, by its id
	for _, a := range sorted {
		actor, _ := a.says()
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

// title says what somebody did. If that is one thing, the title is its own.
func (e *Entry) title() string {
	var things []string // the latest last
	for _, a := range e.Activities {
		_, did := a.says()
		things = slices.DeleteFunc(things, func(said string) bool { return said == did })
		things = append(things, did)
	}
	if len(things) == 1 {
		return e.Activities[len(e.Activities)-1].Title
	}
	if more := len(things) - MaxSaid; more > 0 {
		things = append(things[more:], fmt.Sprintf("did %d more things", more))
	}
	last := len(things) - 1
	return e.Actor + " " + strings.Join(things[:last], ", ") + " and " + things[last]
}

// says divides an activity into who did something and what that is. Without the former, the
// latter is the title.
func (a *Activity) says() (actor, did string) {
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

// inCommon is how many words at the beginning of a title are the name, or its beginning.
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

// capitals is how many words at the beginning of a title have a capital letter.
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

// phrase is a part of a sentence that goes on.
func phrase(words []string) string {
	text := strings.Join(words, " ")
	if short, ok := strings.CutSuffix(text, "."); ok && short != "" && !strings.HasSuffix(short, ".") {
		return short
	}
	return text
}
