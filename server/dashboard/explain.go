package dashboard

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/admin"
	"github.com/leasehold-dev/leasehold/server/jsonapi"
)

// An explanation is the owner of a key and the history of its range. The page formats it.
type explanation struct {
	Name    string        `json:"name"` // the hashed name; "" if the key was given directly
	Policy  string        `json:"policy"`
	Found   admin.Found   `json:"found"`
	History admin.History `json:"history"` // up to the LSN of Found
}

const (
	mostHistory = 50   // changes of a key that are shown
	maxKeyLen   = 4096 // bytes of a name
)

// parseKey parses a key: a name, which is hashed as the libraries hash names, or a hexadecimal key with
// the prefix 0x.
func parseKey(text string, asName bool) (name string, key leasehold.Key, err error) {
	digits, hex := strings.CutPrefix(strings.ToLower(text), "0x")
	switch {
	case text == "" || len(text) > maxKeyLen:
		return "", 0, leasehold.Errorf("find key", leasehold.ErrInvalid, jsonapi.Clip(text), "want 1 to %d bytes, have %d", maxKeyLen, len(text))
	case !hex || asName:
		return text, leasehold.KeyOf(text), nil
	case digits == "" || len(digits) > 16:
		return "", 0, leasehold.Errorf("find key", leasehold.ErrInvalid, jsonapi.Clip(text), "want 1 to 16 hexadecimal digits after 0x, have %d", len(digits))
	}
	key, err = leasehold.ParseKey(strings.Repeat("0", 16-len(digits)) + digits)
	return "", key, err
}

func (d *Dashboard) explain(w http.ResponseWriter, r *http.Request) {
	name, key, err := parseKey(r.FormValue("key"), r.FormValue("name") != "")
	if err != nil {
		refuse(w, err)
		return
	}
	e, err := d.explanation(r.Context(), r.FormValue("namespace"), key)
	if err != nil {
		refuse(w, err)
		return
	}
	e.Name = name
	jsonapi.Write(w, http.StatusOK, e)
}

func (d *Dashboard) explanation(ctx context.Context, namespace string, key leasehold.Key) (e explanation, err error) {
	if e.Found, err = d.client.Find(ctx, namespace, key); err != nil {
		return e, err
	}
	if e.History, err = d.client.History(ctx, namespace, key, mostHistory, time.Time{}); err != nil {
		return e, err
	}
	// The history may contain changes after the lookup of the key.
	first, _ := slices.BinarySearchFunc(e.History.Entries, e.Found.LSN, func(c admin.Change, newest leasehold.LSN) int {
		return cmp.Compare(newest, c.LSN)
	})
	e.History.Entries = e.History.Entries[first:]
	if config, err := d.client.Namespace(ctx, namespace); err == nil { // otherwise the policy is unknown
		e.Policy = config.Policy
	}
	return e, nil
}
