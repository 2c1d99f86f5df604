package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/leasehold-dev/leasehold"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// A planDocument is what an order moves, or would move.
type planDocument struct {
	Total     uint32            `json:"total"`     // how many ranges
	Share     float64           `json:"share"`     // of the key space, 0 to 1
	ShareLost float64           `json:"shareLost"` // that loses its state
	Moves     []plannedDocument `json:"moves"`     // the first 4,096
}

// A plannedDocument is a range that is to change its owner; to "" is to nobody.
type plannedDocument struct {
	Start     string  `json:"start"`
	Limit     string  `json:"limit"` // 0000000000000000: the end of the key space
	From      string  `json:"from"`
	To        string  `json:"to"`
	WithState bool    `json:"withState"`
	Share     float64 `json:"share"`
	Load      float64 `json:"load"` // work per second, as far as it is known

	keys leasehold.Range
}

func planJSON(p *leaseholdv1.Plan) planDocument {
	d := planDocument{Total: p.GetTotal(), Share: p.GetShare(), ShareLost: p.GetShareLost(), Moves: []plannedDocument{}}
	for _, m := range p.GetMoves() {
		keys := leasehold.Range{Start: leasehold.Key(m.GetStart()), Limit: leasehold.Key(m.GetLimit())}
		d.Moves = append(d.Moves, plannedDocument{
			Start: keys.Start.String(), Limit: keys.Limit.String(), From: m.GetFrom(), To: m.GetTo(),
			WithState: m.GetWithState(), Share: m.GetShare(), Load: m.GetLoad(), keys: keys,
		})
	}
	return d
}

// rangesShown is how many ranges of a plan people are shown.
const rangesShown = 40

// text lists what is to move.
func (d planDocument) text() string {
	if d.Total == 0 {
		return "Nothing is to move.\n"
	}
	var rows [][]string
	for _, m := range d.Moves[:min(rangesShown, len(d.Moves))] {
		state := good("moved")
		if !m.WithState {
			state = bad("lost")
		}
		rows = append(rows, []string{m.keys.String(), percent(m.Share), load(m.Load), shown(m.From), orNobody(m.To), state})
	}
	text := tableText([]column{
		left("RANGE"), number("SHARE"), number("LOAD"), left("FROM"), left("TO"), left("STATE"),
	}, rows)
	if more := int(d.Total) - len(rows); more > 0 {
		text += fmt.Sprintf("... and %s more\n", grouped(uint64(more)))
	}
	return text + d.sum() + "\n"
}

// sum says in a line what the plan comes to.
func (d planDocument) sum() string {
	text := fmt.Sprintf("%s, %s of the keys", counted(int(d.Total), "range"), percent(d.Share))
	if d.ShareLost == 0 {
		return text + ", with their state."
	}
	return text + "; " + bad(percent(d.ShareLost)+" lose their state") + "."
}

// lossy refuses a plan that loses state nobody has said may be lost, and says
// who cannot move it.
func (d planDocument) lossy(what string, owners []*leaseholdv1.OwnerStatus) error {
	if d.ShareLost == 0 {
		return nil
	}
	moves := make(map[string]bool, len(owners))
	for _, o := range owners {
		moves[o.GetHolder().GetOwner()] = o.GetMovesState()
	}
	var unable []string
	for _, m := range d.Moves {
		for _, owner := range []string{m.From, m.To} {
			if !m.WithState && owner != "" && !moves[owner] && !slices.Contains(unable, shown(owner)) {
				unable = append(unable, shown(owner))
			}
		}
	}
	const most = 5 // to name
	if len(unable) > most {
		unable = append(unable[:most], "others")
	}
	because := "nobody is there to take it"
	if len(unable) > 0 {
		because = strings.Join(unable, ", ") + " cannot move any"
	}
	return failed{fmt.Errorf("%s would lose the state of %s of the keys, because %s\nAdd --lose-state if that is meant; --dry-run says which keys they are",
		what, percent(d.ShareLost), because)}
}
