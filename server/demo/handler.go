package demo

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/testkit/oracle"
	"github.com/leasehold-dev/leasehold/leasehttp"
	"github.com/leasehold-dev/leasehold/leasemap"
)

// A status is what a user has set. The number rises with each: a delayed request does not
// overwrite a later status.
type status struct {
	User    string `json:"user,omitempty"`
	Number  uint64 `json:"number,omitempty"` // 0: none is known
	Text    string `json:"text,omitempty"`
	Refused bool   `json:"refused,omitempty"` // in a batch: this server does not own the user
}

const (
	maxText  = 2000
	maxBody  = 6*maxText + 1000 // a JSON string takes up to six bytes for one
	maxBatch = 512
)

// A handler serves the presence service:
//
//	GET  /presence/{user}   the status of a user
//	PUT  /presence/{user}   sets a status, unless a later one is stored; responds with the stored one
//	POST /presence          a batch: sets each status, or reads it if its number is 0
//
// The first two report their lease checks to the oracle. Batches fill the servers and look
// at all keys, and are not reported.
type handler struct {
	statuses *leasemap.Map[status]
	report   func(...oracle.Record) error
}

func newHandler(statuses *leasemap.Map[status], report func(...oracle.Record) error) http.Handler {
	h := &handler{statuses, report}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /presence/{user}", func(w http.ResponseWriter, r *http.Request) {
		respond(w, func() (any, error) { return h.serve(r, status{}) })
	})
	mux.HandleFunc("PUT /presence/{user}", func(w http.ResponseWriter, r *http.Request) {
		respond(w, func() (any, error) {
			s, err := decode[status](w, r, maxBody)
			if err != nil {
				return nil, err
			}
			return h.serve(r, s)
		})
	})
	mux.HandleFunc("POST /presence", func(w http.ResponseWriter, r *http.Request) {
		respond(w, func() (any, error) { return h.batch(w, r) })
	})
	return mux
}

// serve sets or reads a status. A request that arrives just before its key waits for it.
func (h *handler) serve(r *http.Request, s status) (status, error) {
	s.User = r.PathValue("user")
	_ = h.statuses.Owner().Await(r.Context(), leasehold.KeyOf(s.User))
	seen := oracle.Record{Key: leasehold.KeyOf(s.User), Session: h.statuses.Owner().Session()}
	begin := oracle.Now()
	stored, err := h.operate(r.Context(), s, func(e *leasemap.Entry[status]) {
		seen.Generation, seen.Check = e.Lease.Generation, oracle.Span{Before: begin, After: oracle.Now()}
	})
	if err == nil {
		seen.Held = oracle.Span{Before: seen.Check.After, After: oracle.Now()}
	}
	if seen.Generation != 0 {
		if failed := h.report(seen); failed != nil {
			err = failed
		}
	}
	return stored, err
}

// operate sets a status, or reads it if its number is 0, and returns the stored one.
// Checked is called once the lease has been checked.
func (h *handler) operate(ctx context.Context, s status, checked func(*leasemap.Entry[status])) (stored status, err error) {
	_, err = h.statuses.Do(ctx, s.User, func(e *leasemap.Entry[status]) error {
		checked(e)
		if s.Number > e.Value.Number {
			e.Value = status{Number: s.Number, Text: s.Text} // the user is the name in the map
		} else {
			e.Keep()
		}
		stored = e.Value
		return nil
	})
	if err == nil {
		h.statuses.Owner().Report(leasehold.KeyOf(s.User), 1)
	}
	return stored, err
}

func (h *handler) batch(w http.ResponseWriter, r *http.Request) ([]status, error) {
	all, err := decode[[]status](w, r, maxBatch*maxBody)
	if err == nil && len(all) > maxBatch {
		err = leasehold.Errorf("batch", leasehold.ErrInvalid, "", "%d statuses, want at most %d", len(all), maxBatch)
	}
	if err != nil {
		return nil, err
	}
	for i, s := range all {
		stored, failed := h.operate(r.Context(), s, func(*leasemap.Entry[status]) {})
		stored.Refused = failed != nil
		all[i] = stored
	}
	return all, nil
}

func decode[V any](w http.ResponseWriter, r *http.Request, most int64) (v V, err error) {
	if err = json.NewDecoder(http.MaxBytesReader(w, r.Body, most)).Decode(&v); err != nil {
		err = leasehold.Errorf("read request", leasehold.ErrInvalid, "", "%w", err)
	}
	return v, err
}

func respond(w http.ResponseWriter, answer func() (any, error)) {
	document, err := answer()
	if leasehttp.WriteError(w, err) {
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(document) // a caller that has gone needs no answer
}
