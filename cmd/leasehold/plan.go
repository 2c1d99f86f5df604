package main

import (
	"fmt"

	"github.com/leasehold-dev/leasehold/admin"
)

// rangesShown is how many ranges of a plan people are shown.
const rangesShown = 40

// planText lists what is to move.
func planText(p admin.Plan) string {
	if p.Total == 0 {
		return "Nothing is to move.\n"
	}
	var rows [][]string
	for _, m := range p.Moves[:min(rangesShown, len(p.Moves))] {
		state := good("moved")
		if !m.WithState {
			state = bad("lost")
		}
		rows = append(rows, []string{m.Keys().String(), percent(m.Share), load(m.Load), shown(m.From), orNobody(m.To), state})
	}
	text := tableText([]column{
		left("RANGE"), number("SHARE"), number("LOAD"), left("FROM"), left("TO"), left("STATE"),
	}, rows)
	if more := int(p.Total) - len(rows); more > 0 {
		text += fmt.Sprintf("... and %s more\n", grouped(uint64(more)))
	}
	return text + planSum(p) + "\n"
}

// planSum says in a line what a plan comes to.
func planSum(p admin.Plan) string {
	text := fmt.Sprintf("%s, %s of the keys", counted(int(p.Total), "range"), percent(p.Share))
	if p.ShareLost == 0 {
		return text + ", with their state."
	}
	return text + "; " + bad(percent(p.ShareLost)+" lose their state") + "."
}
