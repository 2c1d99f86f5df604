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

// Bounds on what is kept of an activity, in bytes. See also maxRoom.
const (
	MaxName  = 100  // of a user, or of who does something
	MaxTitle = 500  // longer ones are cut
	maxLink  = 1000 // longer ones are left out
)

// An Activity is something that somebody did: an item of a feed, or an event.
type Activity struct {
	ID    string    `json:"id"`              // by which it is known again
	Actor string    `json:"actor,omitempty"` // who, if it was said
	Title string    `json:"title"`           // as text
	Link  string    `json:"link,omitempty"`  // http or https
	At    time.Time `json:"at"`
}

// compare orders activities, the same way whenever they have arrived.
func compare(a, b Activity) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.ID, b.ID)) }

// A Receipt says what became of activities that were posted.
type Receipt struct {
	Added int `json:"added"`
	Known int `json:"known"` // they are there already
	// Ignored are items that say nothing, or are older than all for which there is room.
	Ignored int `json:"ignored"`
}

// merge adds activities to those that are there, which are sorted, and keeps the latest. It
// changes neither, and depends on the order of neither.
func merge(have, more []Activity, room int) ([]Activity, Receipt) {
	var receipt Receipt
	there := make(map[string]bool, len(have)+len(more)) // false for those that are new
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

// identify makes an id of a fixed size from what an activity is known by.
func identify(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:16])
}

// when is the time of an activity that is said to have happened at a time: one that is
// missing, makes no sense or is still to come is that of its arrival.
func when(said *time.Time, now time.Time) time.Time {
	if said == nil || said.Unix() < 0 || said.After(now) {
		return now.UTC()
	}
	return said.UTC()
}

// line is a text in one line, of a number of bytes at most.
func line(text string, most int) string {
	text = strings.Join(strings.Fields(legible(text)), " ")
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

// legible is a text without what XML cannot say.
func legible(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && !unicode.IsSpace(r) || r == 0xFFFE || r == 0xFFFF {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
}

// link is an address that a reader may be sent to, and "" if there is none. Others, such as
// javascript:, are not passed on.
func link(address string) string {
	address = strings.TrimSpace(address)
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || len(address) > maxLink {
		return ""
	}
	return u.String()
}

// An Event is what another service has to say, such as that somebody is online.
type Event struct {
	// Actor is who did something. Default: the user whose feed it is.
	Actor string `json:"actor,omitempty"`
	// Text is what they did, as the rest of the sentence: "is now online".
	Text string `json:"text"`
	// Link is where to read more, if anywhere.
	Link string `json:"link,omitempty"`
	// ID is by which it is known again, if it may be sent twice. Default: what it says,
	// and when.
	ID string `json:"id,omitempty"`
	// At is when it happened. Default: now.
	At *time.Time `json:"at,omitempty"`
}

func (e *Event) activity(user string, now time.Time) (Activity, error) {
	bad := func(format string, args ...any) (Activity, error) {
		return Activity{}, leasehold.Errorf("report event", leasehold.ErrInvalid, user, format, args...)
	}
	if len(e.Actor) > MaxName || len(e.Text) > MaxTitle {
		return bad("an actor has %d bytes at most, and a text %d", MaxName, MaxTitle)
	}
	actor, text := line(cmp.Or(e.Actor, user), MaxName), line(e.Text, MaxTitle)
	switch {
	case actor == "" || text == "":
		return bad(`want a text, such as "is now online", and an actor who has a name`)
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
