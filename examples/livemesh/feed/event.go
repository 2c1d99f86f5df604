package feed

import (
	"cmp"
	"time"

	"github.com/leasehold-dev/leasehold"
)

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
