package feed

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"
)

// Bounds on an activity, in bytes. See also Config.Room.
const (
	MaxName  = 100  // of an actor; longer ones are truncated
	MaxTitle = 500  // longer ones are truncated
	maxLink  = 1000 // longer ones are dropped
)

// An Activity is an action of a person: an item of a feed, or an event.
type Activity struct {
	ID    string    `json:"id"`              // identifies duplicates
	Actor string    `json:"actor,omitempty"` // the person, if known
	Title string    `json:"title"`           // as text
	Link  string    `json:"link,omitempty"`  // http or https
	At    time.Time `json:"at"`
}

// compare is a total order of activities, independent of the order of arrival.
func compare(a, b Activity) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.ID, b.ID)) }

// merge adds activities to a sorted list, without duplicates, and keeps the latest. It changes
// neither argument. The result does not depend on the order of the new ones.
func merge(have, more []Activity, room int) []Activity {
	known := make(map[string]bool, len(have)+len(more))
	merged := slices.DeleteFunc(slices.Concat(have, more), func(a Activity) bool {
		duplicate := known[a.ID]
		known[a.ID] = true
		return duplicate
	})
	slices.SortFunc(merged, compare)
	return merged[max(0, len(merged)-room):]
}

// identify returns an id of a fixed size for the identifying parts of an activity.
func identify(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:16])
}

// line returns a text in one line, without control characters, truncated to a number of bytes.
func line(text string, most int) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && !unicode.IsSpace(r) {
			return -1
		}
		return r
	}, text)
	text = strings.Join(strings.Fields(text), " ")
	return strings.ToValidUTF8(text[:min(len(text), most)], "")
}

// link returns an http or https address, or "". Other schemes, such as javascript:, are
// dropped.
func link(address string) string {
	u, err := url.Parse(strings.TrimSpace(address))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || len(address) > maxLink {
		return ""
	}
	return u.String()
}

// An Event is an activity that another service reports, for example that a user is online.
type Event struct {
	// Actor is the person. Default: the user of the feed.
	Actor string `json:"actor,omitempty"`
	// Text is the predicate of the sentence: "is now online".
	Text string `json:"text"`
	// ID identifies duplicates, if the event may be sent twice. Default: actor, text and
	// time.
	ID string `json:"id,omitempty"`
}

// activity returns the activity of an event. Its title is empty if the event has no text.
func (e *Event) activity(user string, now time.Time) Activity {
	a := Activity{ID: identify("event", e.ID), Actor: line(cmp.Or(e.Actor, user), MaxName), At: now.UTC()}
	if text := line(e.Text, MaxTitle-MaxName-1); text != "" {
		a.Title = a.Actor + " " + text
	}
	if e.ID == "" {
		a.ID = identify("event", a.Title, now.Format(time.RFC3339Nano))
	}
	return a
}
