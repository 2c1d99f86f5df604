package dashboard

import (
	"context"
	"net/http"
	"strings"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// An explanationJSON says where a key is, since when, and why.
type explanationJSON struct {
	Namespace  string      `json:"namespace"`
	Name       string      `json:"name"` // what was hashed; "" if the key was given as such
	Key        string      `json:"key"`
	LSN        string      `json:"lsn"`
	Start      string      `json:"start"`
	Limit      string      `json:"limit"`
	Owner      string      `json:"owner"`
	Addr       string      `json:"addr"`
	Generation string      `json:"generation"`
	Lost       string      `json:"lost"`      // the change at which state was last lost; 0: never
	Policy     string      `json:"policy"`    // of the namespace
	Why        string      `json:"why"`       // in words
	History    []eventJSON `json:"history"`   // newest first
	Forgotten  bool        `json:"forgotten"` // there was more before, or may have been
}

// mostHistory is how many changes of a key are shown.
const mostHistory = 50

// maxKeyLen bounds the names that are searched for.
const maxKeyLen = 4096

// parseKey reads a key as people write it: a name, which is hashed as the libraries
// hash names, or with 0x before it the key itself, in hexadecimal.
func parseKey(text string, asName bool) (name string, key leasehold.Key, err error) {
	digits, hex := strings.CutPrefix(strings.ToLower(text), "0x")
	switch {
	case text == "" || len(text) > maxKeyLen:
		return "", 0, leasehold.Errorf("find key", leasehold.ErrInvalid, clip(text), "want 1 to %d bytes, have %d", maxKeyLen, len(text))
	case !hex || asName:
		return text, leasehold.KeyOf(text), nil
	case digits == "" || len(digits) > 16:
		return "", 0, leasehold.Errorf("find key", leasehold.ErrInvalid, clip(text), "want 1 to 16 hexadecimal digits after 0x, have %d", len(digits))
	}
	key, err = leasehold.ParseKey(strings.Repeat("0", 16-len(digits)) + digits)
	return "", key, err
}

// explain says where a key is.
func (d *Dashboard) explain(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), askPatience)
	defer cancel()
	name, key, err := parseKey(r.FormValue("key"), r.FormValue("name") != "")
	if err == nil {
		var e *explanationJSON
		if e, err = d.explanation(ctx, r.FormValue("namespace"), name, key); err == nil {
			answer(w, http.StatusOK, e)
			return
		}
	}
	refuse(w, err)
}

func (d *Dashboard) explanation(ctx context.Context, namespace, name string, key leasehold.Key) (*explanationJSON, error) {
	admin := d.cfg.Admin
	found, err := admin.LookupKey(ctx, &leaseholdv1.LookupKeyRequest{Version: wire.Version, Namespace: namespace, Key: uint64(key)})
	if err != nil {
		return nil, wire.ToError(err)
	}
	past, err := admin.ListHistory(ctx, &leaseholdv1.ListHistoryRequest{Version: wire.Version, Namespace: namespace, Key: uint64(key), Most: mostHistory})
	if err != nil {
		return nil, wire.ToError(err)
	}
	at := found.GetRange()
	e := &explanationJSON{
		Namespace: namespace, Name: name, Key: key.String(), LSN: decimal(found.GetLsn()),
		Start: keyText(at.GetLease().GetStart()), Limit: keyText(at.GetLease().GetLimit()), Generation: decimal(at.GetLease().GetGeneration()),
		Owner: at.GetOwner(), Addr: at.GetAddr(), Lost: decimal(at.GetLost()),
		History: []eventJSON{}, Forgotten: past.GetTruncated() || past.GetMore(),
	}
	for _, c := range past.GetEntries() {
		if c.GetLsn() <= found.GetLsn() { // what has happened since we asked who has it is another story
			e.History = append(e.History, changeJSON(c))
		}
	}
	if all, err := admin.ListNamespaces(ctx, &leaseholdv1.ListNamespacesRequest{Version: wire.Version}); err == nil {
		for _, n := range all.GetNamespaces() {
			if n.GetName() == namespace {
				e.Policy = n.GetPolicy()
			}
		}
	}
	e.Why = why(e)
	return e, nil
}

// why puts into words what the history of a key says about where it is now.
func why(e *explanationJSON) string {
	policy := "the policy of the namespace"
	if e.Policy != "" {
		policy = "the policy " + e.Policy
	}
	past, joint := e.History, ""
	for len(past) > 0 && past[0].Kind == "moved" && past[0].From == past[0].Owner {
		past, joint = past[1:], " Leases that lay side by side were made one since."
	}
	newest, before := eventJSON{}, eventJSON{}
	if len(past) > 0 {
		newest = past[0]
	}
	if len(past) > 1 {
		before = past[1]
	}
	switch {
	case e.Owner == "" && newest.Kind == "vacated":
		return "Nobody has it: the lease of " + newest.Owner + " has ended (" + newest.Cause + "), and " + policy + " has not given it to anyone since."
	case e.Owner == "":
		return "Nobody has it: no owner takes part, or none has yet."
	case newest.Owner != e.Owner:
		return e.Owner + " has it; how it came to that is no longer remembered." + joint
	case newest.Kind == "moved":
		return e.Owner + " has it, with its state, from " + newest.From + ": " + movedWhy(newest, policy) + joint
	case newest.Kind == "granted" && before.Kind == "vacated":
		return e.Owner + " has it because " + policy + " gave it to this owner when the lease of " + before.Owner + " had ended (" + before.Cause + "); the state held under that was lost." + planned(newest) + joint
	case newest.Kind == "granted":
		return e.Owner + " has it because " + policy + " gave it to this owner; nobody had it before that is remembered." + planned(newest) + joint
	}
	return e.Owner + " has it; how it came to that is no longer remembered." + joint
}

// movedWhy says why a range was moved.
func movedWhy(moved eventJSON, policy string) string {
	switch moved.Reason {
	case "":
		return policy + " or an operator wanted it moved, or " + moved.From + " wanted to leave; which of them was not recorded."
	case reasonText(leaseholdv1.Reason_REASON_ORDER):
		return "it was moved " + moved.Reason + "."
	}
	return "it was moved " + moved.Reason + ", and " + policy + " chose " + moved.Owner + "."
}

// planned says why a plan gave a range to an owner; "" if that is not known.
func planned(granted eventJSON) string {
	if granted.Reason == "" {
		return ""
	}
	return " The plan that says so was made " + granted.Reason + "."
}
