package promise

import (
	"errors"
	"fmt"
)

// A Tally is what became of messages that were acknowledged. Silent losses come with an
// error.
type Tally struct {
	Due    int `json:"acknowledged"`
	Lost   int `json:"lost_and_known"` // the device or subscriber has learned of a loss
	Silent int `json:"lost_silently"`
}

// Add adds up.
func (t *Tally) Add(more Tally) {
	t.Due, t.Lost, t.Silent = t.Due+more.Due, t.Lost+more.Lost, t.Silent+more.Silent
}

// String says how many were lost.
func (t Tally) String() string {
	if t.Lost == 0 {
		return "and none was lost"
	}
	return fmt.Sprintf("%d of them lost, and who lost them knows; none silently", t.Lost)
}

// compare compares messages that were acknowledged with those that were received: of those
// that were due, each was received or is known to be lost.
func compare[M any](name string, acknowledged map[string]M, received map[string]bool, due, known func(M) bool) (Tally, error) {
	var t Tally
	var broken []error
	for id, message := range acknowledged {
		if !due(message) {
			continue
		}
		t.Due++
		switch {
		case received[id]:
		case known(message):
			t.Lost++
		default:
			t.Silent++
			broken = append(broken, fmt.Errorf("%s has not received %s, and does not know: it was acknowledged as %v", name, id, message))
		}
	}
	return t, errors.Join(broken...)
}

// quoted is a message as it is received: as JSON.
func quoted(id string) string { return fmt.Sprintf("%q", id) }
