package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/cespare/xxhash/v2"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/testkit/oracle"
	"github.com/leasehold-dev/leasehold/leasehttp"
	"github.com/leasehold-dev/leasehold/leasemap"
)

// A status is what a user has set. The number rises with each: a delayed request does not
// overwrite a later status.
type status struct {
	User   string `json:"user,omitempty"`
	Number uint64 `json:"number,omitempty"` // 0: none is known
	Text   string `json:"text,omitempty"`
}

// A reply is the result for one status of a batch. Sum is the hash of its text.
type reply struct {
	Number  uint64 `json:"number,omitempty"`
	Sum     uint64 `json:"sum,omitempty"`
	Refused bool   `json:"refused,omitempty"` // this server does not own the user
}

func sumOf(text string) uint64 { return xxhash.Sum64String(text) }

const (
	maxText  = 2000
	maxBody  = 6*maxText + 1000 // a JSON string takes up to six bytes for one
	maxBatch = 512
)

// A handler serves the presence service:
//
//	GET  /presence/{user}   the status of a user
//	PUT  /presence/{user}   sets a status, unless a later one is stored; responds with the stored one
//	POST /presence          a batch: sets each status, or reads it if its number is 0; answers with a reply for each
//
// The first two report their lease checks to the oracle. Batches fill the servers and look
// at all keys, and are not reported.
type handler struct {
	statuses *leasemap.Map[status]
	session  leasehold.Session
	report   func(...oracle.Record) error
}

func newHandler(statuses *leasemap.Map[status], report func(...oracle.Record) error) http.Handler {
	h := &handler{statuses, statuses.Owner().Session(), report}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /presence/{user}", func(w http.ResponseWriter, r *http.Request) {
		h.serve(w, r, status{User: r.PathValue("user")})
	})
	mux.HandleFunc("PUT /presence/{user}", h.put)
	mux.HandleFunc("POST /presence", h.batch)
	return mux
}

func (h *handler) put(w http.ResponseWriter, r *http.Request) {
	var s status
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(&s); err != nil {
		leasehttp.WriteError(w, &leasehold.Error{Op: "put", Kind: leasehold.ErrInvalid, Err: err})
		return
	}
	s.User = r.PathValue("user")
	h.serve(w, r, s)
}

// serve sets or reads a status. A request that arrives just before its key waits for it.
func (h *handler) serve(w http.ResponseWriter, r *http.Request, s status) {
	_ = h.statuses.Owner().Await(r.Context(), leasehold.KeyOf(s.User))
	seen := oracle.Record{Key: leasehold.KeyOf(s.User), Session: h.session}
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
	if !leasehttp.WriteError(w, err) {
		respond(w, stored)
	}
}

// operate sets a status, or reads it if its number is 0, and returns the stored one.
// Checked is called once the lease has been checked.
func (h *handler) operate(ctx context.Context, s status, checked func(*leasemap.Entry[status])) (status, error) {
	var stored status
	_, err := h.statuses.Do(ctx, s.User, func(e *leasemap.Entry[status]) error {
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

// operateUnreported is operate without the oracle. A read is cheap.
func (h *handler) operateUnreported(ctx context.Context, s status) (status, error) {
	if s.Number != 0 {
		return h.operate(ctx, s, func(*leasemap.Entry[status]) {})
	}
	stored, _, err := h.statuses.Get(s.User)
	if err == nil {
		h.statuses.Owner().Report(leasehold.KeyOf(s.User), 1)
	}
	return stored, err
}

func (h *handler) batch(w http.ResponseWriter, r *http.Request) {
	var all []status
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBatch*maxBody)).Decode(&all)
	if err == nil && len(all) > maxBatch {
		err = fmt.Errorf("%d statuses, want at most %d", len(all), maxBatch)
	}
	if err != nil {
		leasehttp.WriteError(w, &leasehold.Error{Op: "batch", Kind: leasehold.ErrInvalid, Err: err})
		return
	}
	replies := make([]reply, len(all))
	for i, s := range all {
		stored, err := h.operateUnreported(r.Context(), s)
		switch leasehold.KindOf(err) {
		case leasehold.ErrNotOwner, leasehold.ErrSuspended, leasehold.ErrUnavailable, leasehold.ErrIndeterminate:
			replies[i].Refused = true
			continue
		}
		if leasehttp.WriteError(w, err) {
			return
		}
		replies[i] = reply{Number: stored.Number, Sum: sumOf(stored.Text)}
	}
	respond(w, replies)
}

func respond(w http.ResponseWriter, document any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(document) // a caller that has gone needs no answer
}
