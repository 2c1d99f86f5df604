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
	"unicode/utf8"

	"github.com/leasehold-dev/leasehold"
)

// Bounds on an activity, in bytes. See also maxRoom.
const (
	MaxName  = 100  // of a user or an actor
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

// A Receipt is the result of posting activities.
type Receipt struct {
	Added int `json:"added"`
	Known int `json:"known"` // duplicates
	// Ignored counts items without a title, and those older than all that fit.
	Ignored int `json:"ignored"`
}

// merge adds activities to a sorted list, and keeps the latest. It changes neither argument.
// The result does not depend on the order of the new ones.
func merge(have, more []Activity, room int) ([]Activity, Receipt) {
	var receipt Receipt
	there := make(map[string]bool, len(have)+len(more)) // false for new ones
	for _, a := range have {
		there[a.ID] = true
	}
	merged := slices.Clone(have)
	for _, a := range more {
		if _, known := there[a.ID]; known {
			receipt.Known++
			continue
		}
		there[a.ID] = false
		merged = append(merged, a)
	}
	slices.SortFunc(merged, compare)
	merged = merged[max(0, len(merged)-room):]
	for _, a := range merged {
		if !there[a.ID] {
			receipt.Added++
		}
	}
	receipt.Ignored = len(more) - receipt.Known - receipt.Added
	return merged, receipt
}

// identify returns an id of a fixed size for the identifying parts of an activity.
func identify(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:16])
}

// when returns the time of an activity: the stated one, or the time of arrival if it is
// missing, before 1970 or in the future.
func when(stated *time.Time, now time.Time) time.Time {
	if stated == nil || stated.Unix() < 0 || stated.After(now) {
		return now.UTC()
	}
	return stated.UTC()
}

// line returns a text in one line, truncated to a number of bytes.
func line(text string, most int) string {
	text = strings.Join(strings.Fields(printable(text)), " ")
	if len(text) <= most {
		return text
	}
	const dots = "…"
	end := most - len(dots)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + dots
}

// printable returns a text without characters that XML cannot represent.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && !unicode.IsSpace(r) || r == 0xFFFE || r == 0xFFFF {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
}

// link returns an http or https address, or "". Other schemes, such as javascript:, are
// dropped.
func link(address string) string {
	address = strings.TrimSpace(address)
	u, err := url.Parse(address)
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
	// Link is an optional address with more information.
	Link string `json:"link,omitempty"`
	// ID identifies duplicates, if the event may be sent twice. Default: actor, text and
	// time.
	ID string `json:"id,omitempty"`
	// At is when it happened. Default: now.
	At *time.Time `json:"at,omitempty"`
}

func (e *Event) activity(user string, now time.Time) (Activity, error) {
	bad := func(format string, args ...any) (Activity, error) {
		return Activity{}, leasehold.Errorf("report event", leasehold.ErrInvalid, user, format, args...)
	}
	if len(e.Actor) > MaxName || len(e.Text) > MaxTitle {
		return bad("want an actor of at most %d bytes, and a text of at most %d", MaxName, MaxTitle)
	}
	actor, text := line(cmp.Or(e.Actor, user), MaxName), line(e.Text, MaxTitle)
	switch {
	case actor == "" || text == "":
		return bad(`want a text, such as "is now online", and an actor with a name`)
	case e.Link != "" && link(e.Link) == "":
		return bad("want a link to http or https, of up to %d bytes", maxLink)
	}
	at := when(e.At, now)
	id := identify("event", e.ID)
	if e.ID == "" {
		id = identify("event", actor, text, at.Format(time.RFC3339Nano))
	}
	return Activity{ID: id, Actor: actor, Title: actor + " " + text, Link: link(e.Link), At: at}, nil
}
