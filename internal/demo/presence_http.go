package demo

import (
	"encoding/json"
	"net/http"

	"github.com/leasehold-dev/leasehold"
)

// A statusDocument is what callers and the service say to each other.
type statusDocument struct {
	User   string `json:"user"`
	Status string `json:"status"`
	// Number is 0 in an answer if nothing is known about the user.
	Number uint64 `json:"number"`
	Error  string `json:"error,omitempty"`
}

// Bounds on what a caller can send.
const (
	maxUserLen  = 128
	maxBodySize = 4 << 10
)

// handler serves
//
//	GET /presence/{user}
//	PUT /presence/{user}   {"status": "away", "number": 7}
//	POST /presence         many questions in one, see batch.go
//	GET /presence          a line for short questions, see line_serve.go
//
// The first two answer with what is known now. A user that another server has is
// answered with 421, "misdirected request"; one whose lease is suspended with 503.
func (p *presence) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /presence/{user}", func(w http.ResponseWriter, r *http.Request) {
		p.answer(w, r, func(key leasehold.Key) (status, error) { return p.get(key) })
	})
	mux.HandleFunc("PUT /presence/{user}", func(w http.ResponseWriter, r *http.Request) {
		var d statusDocument
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBodySize)).Decode(&d); err != nil || d.Number == 0 {
			respond(w, http.StatusBadRequest, statusDocument{Error: `want {"status": "...", "number": 1 or more}`})
			return
		}
		p.answer(w, r, func(key leasehold.Key) (status, error) { return p.set(key, d.Number, d.Status) })
	})
	mux.HandleFunc("POST /presence", p.answerMany)
	mux.HandleFunc("GET /presence", p.answerLine)
	return mux
}

func (p *presence) answer(w http.ResponseWriter, r *http.Request, do func(leasehold.Key) (status, error)) {
	user := r.PathValue("user")
	if len(user) > maxUserLen {
		respond(w, http.StatusBadRequest, statusDocument{Error: "the name of the user is too long"})
		return
	}
	d := statusDocument{User: user}
	key := leasehold.KeyOf(user)
	p.await(r.Context(), key)
	s, err := do(key)
	if err != nil {
		d.Error = err.Error()
		respond(w, codeOf(err), d)
		return
	}
	d.Status, d.Number = s.text, s.number
	respond(w, http.StatusOK, d)
}

func codeOf(err error) int {
	switch leasehold.KindOf(err) {
	case leasehold.NotOwner:
		return http.StatusMisdirectedRequest
	case leasehold.Suspended:
		return http.StatusServiceUnavailable
	case leasehold.Limit:
		return http.StatusInsufficientStorage
	default:
		return http.StatusInternalServerError
	}
}

func respond(w http.ResponseWriter, code int, d statusDocument) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(d) // a caller that has gone needs no answer
}
