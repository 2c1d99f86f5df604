// Package gameroom keeps rooms in which players play Nim: each takes one to three stones in turn, and the player who
// takes the last stone wins. The server that owns a room's name has the room and is its referee.
package gameroom

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/leasehttp"
	"github.com/leasehold-dev/leasehold/leasemap"
	"github.com/leasehold-dev/leasehold/owner"
)

// A Room is a game. Its fields are exported, so that JSON moves them to other servers.
type Room struct {
	Stones int    `json:"stones"`
	Last   string `json:"last"` // the player who took last
}

const (
	initialStones = 21
	maxTake       = 3
)

// Rooms is a server of rooms.
type Rooms struct{ rooms *leasemap.Map[Room] }

// Join joins a namespace.
func Join(ctx context.Context, as owner.Config) (*Rooms, error) {
	rooms, err := leasemap.Join(ctx, as, leasemap.Config[Room]{})
	return &Rooms{rooms}, err
}

// Close moves the rooms to other servers. Serve until it returns.
func (s *Rooms) Close(ctx context.Context) error { return s.rooms.Close(ctx) }

// open creates a room. It fails with ErrStale if the room exists.
func (s *Rooms) open(ctx context.Context, name string) (leasemap.Version, error) {
	return s.rooms.Set(ctx, name, Room{Stones: initialStones}, leasemap.WithVersion(leasemap.Version{}))
}

// take takes stones, if the room has the version that the player saw. So a repeated request cannot take twice.
func (s *Rooms) take(ctx context.Context, name, player string, stones int, seen leasemap.Version) (leasemap.Version, error) {
	return s.rooms.Update(ctx, name, func(r *Room) error {
		if stones < 1 || stones > min(maxTake, r.Stones) || player == r.Last {
			return leasehold.Errorf("take", leasehold.ErrInvalid, name, "illegal move")
		}
		r.Stones, r.Last = r.Stones-stones, player
		return nil
	}, leasemap.WithVersion(seen))
}

// A move is the body of a request to take stones.
type move struct {
	Player  string           `json:"player"`
	Stones  int              `json:"stones"`
	Version leasemap.Version `json:"version"` // from the response before
}

// Handler serves PUT, GET and POST /rooms/{room}: open a room, see it, and take stones. Each response has the version.
func (s *Rooms) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("PUT /rooms/{room}", func(w http.ResponseWriter, r *http.Request) {
		version, err := s.open(r.Context(), r.PathValue("room"))
		respond(w, version, nil, err)
	})
	mux.HandleFunc("GET /rooms/{room}", func(w http.ResponseWriter, r *http.Request) {
		room, version, err := s.rooms.GetVersion(r.PathValue("room"))
		if err == nil && !version.Exists() {
			err = leasehold.ErrNotFound
		}
		respond(w, version, &room, err)
	})
	mux.HandleFunc("POST /rooms/{room}", func(w http.ResponseWriter, r *http.Request) {
		var m move
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1000)).Decode(&m); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		version, err := s.take(r.Context(), r.PathValue("room"), m.Player, m.Stones, m.Version)
		respond(w, version, nil, err)
	})
	return mux
}

func respond(w http.ResponseWriter, version leasemap.Version, room *Room, err error) {
	if leasehttp.WriteError(w, err) {
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(struct { // if it fails, the client is gone
		Version leasemap.Version `json:"version"`
		Room    *Room            `json:"room,omitempty"`
	}{version, room})
}
