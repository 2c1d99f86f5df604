package cli

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/admin"
	"github.com/leasehold-dev/leasehold/server/console"
)

func LostText(r admin.Range) string {
	switch {
	case r.LostAt == 0:
		return "never"
	case r.LostUnknown:
		return fmt.Sprintf("unknown before LSN %s", console.Grouped(uint64(r.LostAt)))
	}
	return fmt.Sprintf("at LSN %s", console.Grouped(uint64(r.LostAt)))
}

func OrNone(owner string) string {
	if owner == "" {
		return console.Bad("none")
	}
	return console.Shown(owner)
}

// OwnerState is the state of an owner in one word.
func OwnerState(o admin.Owner) string {
	switch {
	case o.Suspended:
		return console.Bad("suspended")
	case o.State == admin.OwnerSilent || o.State == admin.OwnerWaiting:
		return console.Bad(o.State)
	case o.Leaving:
		return "leaving"
	case o.Draining:
		return "draining"
	case o.State == admin.OwnerMember:
		return console.Good(o.State)
	}
	return o.State
}

func OwnerMoves(o admin.Owner) string {
	switch {
	case o.MovesState == nil:
		return "unknown" // the leader is older than transfers
	case !*o.MovesState:
		return "cannot"
	case o.MovesIn == 0 && o.MovesOut == 0:
		return "-"
	}
	return fmt.Sprintf("%d in, %d out", o.MovesIn, o.MovesOut)
}

// Supervised tells whether an owner has a supervisor.
func Supervised(o admin.Owner) string {
	switch {
	case o.Supervised == nil:
		return "unknown" // the leader is older than supervisors
	case *o.Supervised:
		return "yes"
	}
	return "no"
}

// Load formats the load per second of an owner, or "-" if it reports none.
func Load(perSecond float64) string {
	if perSecond == 0 {
		return "-"
	}
	if perSecond < 1 {
		return strconv.FormatFloat(perSecond, 'g', 2, 64) + "/s" // in a coarse unit
	}
	return console.Grouped(uint64(perSecond)) + "/s"
}

// ShortSession returns the first digits of a session, enough to distinguish sessions.
func ShortSession(session string) string { return session[:min(8, len(session))] }

// TimeText formats a time in the local time zone.
func TimeText(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Local().Format("2006-01-02 15:04:05.000")
}

// ChangeText describes a change and its cause.
func ChangeText(d admin.Change) string {
	switch {
	case d.Cause != "":
		return fmt.Sprintf("%s: %s", console.Bad(d.Kind), d.Cause)
	case d.Kind == admin.ChangeGranted:
		return console.Good(d.Kind) + reasonText(d.Reason)
	case d.Kind == admin.ChangeMoved && d.From == d.Owner:
		return console.Good(d.Kind) + " into one lease"
	case d.Kind == admin.ChangeMoved:
		return console.Good(d.Kind) + " from " + console.OrDash(d.From) + reasonText(d.Reason)
	}
	return d.Kind
}

// reasonText describes why an owner received a range; "" if the reason is unknown.
func reasonText(reason string) string {
	words := reason
	switch reason {
	case "":
		return ""
	case "joined", "gone":
		words = "owners " + words
	case "leaving":
		words = "previous owner leaving"
	case "order":
		words = "ordered"
	case "configured":
		words = "configuration changed"
	}
	return " (" + words + ")"
}

// changedOwner returns the owner of a change; for a transfer, the new owner.
func changedOwner(d admin.Change) string {
	if d.Kind == admin.ChangeMoved && d.From != d.Owner {
		return "to " + console.OrDash(d.Owner)
	}
	return console.OrDash(d.Owner)
}

// EventWords describes an event without its time and namespace.
func EventWords(e admin.Event) []string {
	switch {
	case e.Change != nil:
		c := e.Change
		return []string{fmt.Sprintf("lsn %d", c.LSN), ChangeText(*c), changedOwner(*c), fmt.Sprintf("%v@%d", c.Keys(), c.Generation)}
	case e.Note != nil:
		return []string{console.Shown(e.Note.What), console.OrDash(e.Note.Owner), console.Shown(e.Note.Text)}
	case e.Leader != nil && e.Leader.Leader == "":
		return []string{console.Bad("no leader"), fmt.Sprintf("term %d", e.Leader.Term)}
	case e.Leader != nil:
		return []string{console.Good(console.Shown(e.Leader.Leader)) + " leads", fmt.Sprintf("term %d", e.Leader.Term)}
	case e.Type == admin.EventGap:
		return []string{console.Bad("... " + console.Shown(e.Text))}
	}
	return []string{"an event type unknown to this version"}
}

// Seconds formats a duration.
func Seconds(s admin.Seconds) string { return console.Brief(time.Duration(s)) }

func VacancyText(d admin.NamespaceStatus) string {
	if d.Vacant == 0 {
		return console.Grouped(uint64(d.Ranges))
	}
	return fmt.Sprintf("%s, of which %s without an owner", console.Grouped(uint64(d.Ranges)), console.Grouped(uint64(d.Vacant)))
}

func ReadyText(d admin.NamespaceStatus) string {
	switch {
	case d.Ready && d.Problem != "":
		return console.Good("yes") + ", but " + console.Bad(console.Shown(d.Problem))
	case d.Ready:
		return console.Good("yes")
	}
	return console.Bad("no") + ": " + console.OrDash(d.Problem)
}

// maxPlanRows bounds the table of a plan in text output.
const maxPlanRows = 40

// PlanText lists the moves of a plan.
func PlanText(p admin.Plan) string {
	if p.Total == 0 {
		return "No range would move.\n"
	}
	rows := console.Rows(p.Moves[:min(maxPlanRows, len(p.Moves))], func(m admin.PlannedMove) []string {
		state := console.Good("moved")
		if !m.WithState {
			state = console.Bad("lost")
		}
		return []string{m.Keys().String(), console.Percent(m.Share), Load(m.Load), console.Shown(m.From), OrNone(m.To), state}
	})
	text := console.Table([]console.Column{
		console.Left("RANGE"), console.Number("SHARE"), console.Number("LOAD"), console.Left("FROM"), console.Left("TO"), console.Left("STATE"),
	}, rows)
	if more := int(p.Total) - len(rows); more > 0 {
		text += fmt.Sprintf("... and %s more\n", console.Grouped(uint64(more)))
	}
	return text + PlanSum(p) + "\n"
}

// PlanSum summarizes a plan in one line.
func PlanSum(p admin.Plan) string {
	text := fmt.Sprintf("%s, %s of the keys", console.Counted(int(p.Total), "range"), console.Percent(p.Share))
	if p.ShareLost == 0 {
		return text + ", with their state."
	}
	return text + "; " + console.Bad(console.Percent(p.ShareLost)+" lose their state") + "."
}

func OneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

// RangesText lists ranges of a lease table; none is the text for an empty list.
func RangesText(d admin.Ranges, none string) string {
	if len(d.Ranges) == 0 {
		return none + "\n"
	}
	return console.Table([]console.Column{
		console.Left("RANGE"), console.Number("SHARE"), console.Left("OWNER"), console.Left("ADDRESS"), console.Number("GENERATION"), console.Left("STATE LAST LOST"),
	}, console.Rows(d.Ranges, func(r admin.Range) []string {
		return []string{r.Keys().String(), console.Percent(r.Share), OrNone(r.Owner), console.OrDash(r.Addr), Decimal(uint64(r.Generation)), LostText(r)}
	}))
}
