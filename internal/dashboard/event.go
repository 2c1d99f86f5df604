package dashboard

import (
	"strconv"

	"github.com/leasehold-dev/leasehold"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// mostEvents is how many events a hub remembers for those who come later.
const mostEvents = 500

// An eventJSON is something that has happened. Numbers of 64 bits are text: those of
// JavaScript have 53.
type eventJSON struct {
	At   int64  `json:"at"`   // milliseconds since 1970, on the wall clock of the manager that saw it
	Kind string `json:"kind"` // granted, vacated, moved, note, leader, or gap: some events were missed

	// Of a change of the lease table.
	LSN        string `json:"lsn,omitempty"`
	Start      string `json:"start,omitempty"`
	Limit      string `json:"limit,omitempty"` // 0000000000000000: the end of the key space
	Generation string `json:"generation,omitempty"`
	Owner      string `json:"owner,omitempty"`  // who has it then; of vacated, who had it. Of a note, whom it is about
	From       string `json:"from,omitempty"`   // of moved: who had it
	Cause      string `json:"cause,omitempty"`  // of vacated
	Reason     string `json:"reason,omitempty"` // of the others: why, as the end of a sentence; empty if that is not known

	What string `json:"what,omitempty"` // of a note, in a word
	Text string `json:"text,omitempty"` // of a note or a gap, in words

	Leader string `json:"leader,omitempty"` // of leader; empty: nobody leads
	Term   string `json:"term,omitempty"`
}

func decimal(n uint64) string { return strconv.FormatUint(n, 10) }

func keyText(key uint64) string { return leasehold.Key(key).String() }

// kindText is a kind of change as the page calls it.
func kindText(kind leaseholdv1.ChangeKind) string {
	switch kind {
	case leaseholdv1.ChangeKind_CHANGE_KIND_GRANTED:
		return "granted"
	case leaseholdv1.ChangeKind_CHANGE_KIND_VACATED:
		return "vacated"
	case leaseholdv1.ChangeKind_CHANGE_KIND_MOVED:
		return "moved"
	case leaseholdv1.ChangeKind_CHANGE_KIND_UNSPECIFIED:
	}
	return "unknown"
}

func changeJSON(c *leaseholdv1.HistoryEntry) eventJSON {
	e := eventJSON{
		At: c.GetAt().AsTime().UnixMilli(), Kind: kindText(c.GetKind()), LSN: decimal(c.GetLsn()),
		Start: keyText(c.GetLease().GetStart()), Limit: keyText(c.GetLease().GetLimit()),
		Generation: decimal(c.GetLease().GetGeneration()), Owner: c.GetHolder().GetOwner(), From: c.GetFrom().GetOwner(),
		Reason: reasonText(c.GetReason()),
	}
	if c.GetKind() == leaseholdv1.ChangeKind_CHANGE_KIND_VACATED {
		e.Cause = leasehold.Cause(c.GetCause()).String()
	}
	return e
}

// eventOf puts what is watched into the form of the page.
func eventOf(w *leaseholdv1.WatchResponse) (eventJSON, bool) {
	at := w.GetAt().AsTime().UnixMilli()
	switch event := w.GetEvent().(type) {
	case *leaseholdv1.WatchResponse_Change:
		return changeJSON(event.Change), true
	case *leaseholdv1.WatchResponse_Note:
		return eventJSON{At: at, Kind: "note", Owner: event.Note.GetOwner(), What: event.Note.GetWhat(), Text: event.Note.GetText()}, true
	case *leaseholdv1.WatchResponse_Leader:
		return eventJSON{At: at, Kind: "leader", Leader: event.Leader.GetLeader(), Term: decimal(event.Leader.GetTerm())}, true
	}
	return eventJSON{}, false // a newer manager's
}
