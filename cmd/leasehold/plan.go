package main

import (
	"fmt"
	"strings"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/admin"
	"github.com/leasehold-dev/leasehold/internal/settings"
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

// wouldLose explains why an order was refused that would lose state.
func wouldLose(loss *admin.LossError) error {
	var unable []string
	for _, owner := range loss.Unable {
		unable = append(unable, shown(owner))
	}
	const most = 5 // to name
	if len(unable) > most {
		unable = append(unable[:most], "others")
	}
	because := "nobody is there to take it"
	if len(unable) > 0 {
		because = strings.Join(unable, ", ") + " cannot move any"
	}
	return fmt.Errorf("%s would lose the state of %s of the keys, because %s\nAdd --lose-state if that is meant; --dry-run says which keys they are",
		shown(loss.Order), percent(loss.Share), because)
}

// noSuchOwner says which names are most like one that no owner has.
func noSuchOwner(unknown *admin.UnknownOwnerError) error {
	fail := func(format string, args ...any) error {
		return leasehold.Errorf("", leasehold.NotFound, unknown.Owner, format, args...)
	}
	if len(unknown.Known) == 0 {
		return fail("nobody has joined %s", unknown.Namespace)
	}
	var names []string
	for _, name := range unknown.Known {
		names = append(names, shown(name))
	}
	const most = 3 // to propose
	near := settings.Nearest(unknown.Owner, names, most)
	if len(near) == 0 {
		return fail("no owner in %s has this name; 'leasehold owners -n %s' lists those there are", unknown.Namespace, unknown.Namespace)
	}
	return fail("no owner in %s has this name; the closest: %s", unknown.Namespace, strings.Join(near, ", "))
}
