package actor

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"sync"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/lab/chaos/leaks"
	"github.com/leasehold-dev/leasehold/owner"
)

// registers are an owner's registers, like figure 4 of the PRS paper.
type registers struct {
	leases owner.Checker // set before the first request

	mu      sync.Mutex
	entries map[string]entry
}

type entry struct {
	value      string
	generation leasehold.Generation
}

// An answer is the reply of an owner to a request.
type answer struct {
	Value      string               `json:"value"`
	Generation leasehold.Generation `json:"generation"`
}

// do runs an operation on a register. The numbers are those of a server's obligations in package leasehold.
// It returns [leasehold.ErrNotOwner] if nothing was done, and [leasehold.ErrIndeterminate] if the outcome is
// unknown.
func (r *registers) do(name string, operation func(*entry)) (answer, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	lease, ok := r.leases.Check(leasehold.KeyOf(name)) // 1
	if !ok {
		return answer{}, leasehold.ErrNotOwner
	}
	e := r.entries[name]
	switch { // 2
	case e.generation > lease.Generation:
		return answer{}, leasehold.ErrNotOwner
	case e.generation < lease.Generation:
		e = entry{generation: lease.Generation}
	}
	operation(&e) // 3
	r.entries[name] = e
	if !r.leases.Held(lease) { // 4
		return answer{}, leasehold.ErrIndeterminate
	}
	return answer{e.value, e.generation}, nil
}

// drop only frees memory: step 2 discards state of earlier leases.
func (r *registers) drop(ended []leasehold.Lease, _ leasehold.Cause) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for name, e := range r.entries {
		for _, l := range ended {
			if l.Range.Contains(leasehold.KeyOf(name)) && e.generation <= l.Generation {
				delete(r.entries, name)
			}
		}
	}
}

const maxValue = 1000

// UsagePath is the path of an owner's resource usage.
const UsagePath = "/debug/vitals"

func (r *registers) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+UsagePath, leaks.Serve)
	mux.HandleFunc("GET /{name}", func(w http.ResponseWriter, request *http.Request) {
		reply(w)(r.do(request.PathValue("name"), func(*entry) {}))
	})
	mux.HandleFunc("PUT /{name}", func(w http.ResponseWriter, request *http.Request) {
		value, err := io.ReadAll(http.MaxBytesReader(w, request.Body, maxValue))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		reply(w)(r.do(request.PathValue("name"), func(e *entry) { e.value = string(value) }))
	})
	return mux
}

// reply writes the response. Misdirected means that nothing was done.
func reply(w http.ResponseWriter) func(answer, error) {
	return func(a answer, err error) {
		switch {
		case err == nil:
			_ = json.NewEncoder(w).Encode(a) // an error means that the caller has closed the connection
		case errors.Is(err, leasehold.ErrNotOwner):
			http.Error(w, err.Error(), http.StatusMisdirectedRequest)
		default:
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		}
	}
}
