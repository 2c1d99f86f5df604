package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold/admin"
	"github.com/leasehold-dev/leasehold/flease"
)

const fleaseStatusHelp = `Shows what a member knows: whom it hears, what it holds, and whether something is
wrong with a clock. With the name of a resource it also shows who seems to hold that,
as far as this member knows: it may not have heard yet, and is right about a lease
later.

Exit status: 0 it was done; 2 the member does not answer.`

// maxLeasesShown bounds what is listed; all are counted.
const maxLeasesShown = 100

// A fleaseStatus is what a member knows, for programs.
type fleaseStatus struct {
	Member  uint32         `json:"member"`
	Addr    string         `json:"addr"`
	Ready   bool           `json:"ready"`
	Members []fleaseMember `json:"members"`
	// Strangers were told of other members, times or label.
	Strangers []fleaseStranger `json:"strangers,omitempty"`
	Clock     fleaseClock      `json:"clock"`
	Held      int              `json:"held"`
	Waiting   int              `json:"waiting"`
	Resources int              `json:"resources"`
	Acquired  uint64           `json:"acquired"`
	Lost      uint64           `json:"lost"`
	Leases    []fleaseLease    `json:"leases"` // the first hundred
	Traffic   fleaseTraffic    `json:"traffic"`
	// Error is why it takes part no more; empty if it does, or will.
	Error string `json:"error,omitempty"`
	// Resource is the one that was asked about.
	Resource *fleaseResource `json:"resource,omitempty"`
}

type fleaseTraffic struct {
	PacketsIn  uint64 `json:"packetsIn"`
	PacketsOut uint64 `json:"packetsOut"`
	Refused    uint64 `json:"refused"` // malformed, foreign, not authentic or replayed
	Strange    uint64 `json:"strange"` // of those who were told otherwise
	Lost       uint64 `json:"lost"`    // no room, or no way out
}

type fleaseMember struct {
	ID             uint32    `json:"id"`
	Addr           string    `json:"addr"`
	Heard          time.Time `json:"heard,omitzero"`
	ClockOffMillis float64   `json:"clockOffMillis,omitempty"`
	// Twins is when two processes were last found to run as this member.
	Twins time.Time `json:"twins,omitzero"`
}

type fleaseStranger struct {
	ID        uint32    `json:"id"`
	Heard     time.Time `json:"heard"`
	TakesPart bool      `json:"takesPart"`
}

type fleaseClock struct {
	Wrong     bool      `json:"wrong"` // most others find it wrong
	Steps     uint64    `json:"steps"`
	Stepped   time.Time `json:"stepped,omitzero"`
	StepMilli float64   `json:"stepMillis,omitempty"`
}

type fleaseLease struct {
	Resource string    `json:"resource"`
	Fence    string    `json:"fence"`
	Until    time.Time `json:"until"`
}

func fleaseStatusOf(node *flease.Node) fleaseStatus {
	s := node.Status()
	d := fleaseStatus{
		Member: uint32(s.Self), Addr: s.Addr, Ready: s.Ready, Held: s.Held, Waiting: s.Waiting, Resources: s.Resources,
		Acquired: s.Counts.Acquired, Lost: s.Counts.Lost, Members: []fleaseMember{}, Leases: []fleaseLease{},
		Clock: fleaseClock{Wrong: s.Clock.Wrong, Steps: s.Clock.Steps, Stepped: s.Clock.Stepped, StepMilli: millis(s.Clock.By)},
		Traffic: fleaseTraffic{
			PacketsIn: s.Traffic.PacketsIn, PacketsOut: s.Traffic.PacketsOut,
			Refused: s.Traffic.Refused, Strange: s.Traffic.Strange, Lost: s.Traffic.Lost,
		},
	}
	if s.Err != nil {
		d.Error = s.Err.Error()
	}
	for _, m := range s.Members {
		d.Members = append(d.Members, fleaseMember{ID: uint32(m.ID), Addr: m.Addr, Heard: m.Heard, ClockOffMillis: millis(m.ClockOff), Twins: m.Twins})
	}
	for _, m := range s.Strangers {
		d.Strangers = append(d.Strangers, fleaseStranger{ID: uint32(m.ID), Heard: m.Heard, TakesPart: !m.Waits})
	}
	for _, l := range node.Leases() {
		if len(d.Leases) == maxLeasesShown {
			break
		}
		if until := l.Until(); !until.IsZero() {
			d.Leases = append(d.Leases, fleaseLease{Resource: l.Resource(), Fence: decimal(l.Fence()), Until: until})
		}
	}
	return d
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func newFleaseStatusCommand() *cobra.Command {
	var (
		member string
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:   "status [RESOURCE]",
		Short: "Show what a member holds, hears and thinks of clocks",
		Long:  fleaseStatusHelp,
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := onlyLoopback("member", member); err != nil {
				return err
			}
			s, err := askFleaseStatus(cmd.Context(), member, strings.Join(args, ""))
			if err != nil {
				return failed{err}
			}
			out := newScreen(cmd.OutOrStdout())
			if asJSON {
				return write(out, jsonText(s))
			}
			return write(out, s.text(time.Now()))
		},
	}
	cmd.Flags().StringVar(&member, "member", defaultMember, "the control `address` of a member")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON, and nothing else")
	return cmd
}

func askFleaseStatus(ctx context.Context, member, resource string) (fleaseStatus, error) {
	var s fleaseStatus
	ctx, cancel := context.WithTimeout(ctx, admin.DefaultTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+member+"/v1/status?"+url.Values{"resource": {resource}}.Encode(), nil)
	if err != nil {
		return s, err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return s, noMember(member, err)
	}
	defer answer.Body.Close() //nolint:errcheck // it was read
	body, err := io.ReadAll(io.LimitReader(answer.Body, 1<<20))
	if err != nil || answer.StatusCode != http.StatusOK {
		return s, fmt.Errorf("%s is no member, or not a healthy one: it answers %s", member, answer.Status)
	}
	err = json.Unmarshal(body, &s)
	return s, err
}

// noMember says that nobody answers, and what to do.
func noMember(at string, err error) error {
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("what is at %s is not the control of a member: it hangs up. A member with --tcp has one only with --control", at)
	}
	return fmt.Errorf("no member answers at %s: %w; \"leasehold flease run\" says where its control is", at, err)
}

func (s *fleaseStatus) text(now time.Time) string {
	state := good("takes part")
	switch {
	case s.Ready:
	case s.Error != "":
		state = bad(shown(s.Error))
	case len(s.Strangers) > 0:
		state = bad("waits until strangers are gone, or what it may have promised before is over")
	default:
		state = bad("waits until what it may have promised before is over")
	}
	lines := []entry{
		{"member", fmt.Sprintf("%d at %s, %s", s.Member, shown(s.Addr), state)},
		{"leases", fmt.Sprintf("%d held, %d waited for; %d acquired since the start, %d lost", s.Held, s.Waiting, s.Acquired, s.Lost)},
		{"resources", fmt.Sprintf("%d known", s.Resources)},
		{"clock", s.clockText(now)},
		{"packets", s.Traffic.text()},
	}
	if s.Resource != nil {
		lines = append(lines, entry{s.Resource.Name, s.Resource.text(now)})
	}
	var out strings.Builder
	out.WriteString(facts(lines) + "\n")
	var rows [][]string
	for _, m := range s.Members {
		rows = append(rows, []string{fmt.Sprint(m.ID), shown(m.Addr), m.heardText(now), m.clockText()})
	}
	out.WriteString(tableText([]column{number("MEMBER"), left("ADDRESS"), left("HEARD"), left("CLOCK")}, rows))
	out.WriteString(s.strangersText(now))
	if len(s.Leases) == 0 {
		return out.String()
	}
	rows = nil
	for _, l := range s.Leases {
		rows = append(rows, []string{shown(l.Resource), l.Fence, "in " + brief(l.Until.Sub(now))})
	}
	out.WriteString("\n" + tableText([]column{left("LEASE"), number("FENCE"), left("ENDS")}, rows))
	if more := s.Held - len(s.Leases); more > 0 {
		fmt.Fprintf(&out, "... and %d more\n", more)
	}
	return out.String()
}

// strangersText warns of those who were told otherwise.
func (s *fleaseStatus) strangersText(now time.Time) string {
	if len(s.Strangers) == 0 {
		return ""
	}
	var rows [][]string
	for _, m := range s.Strangers {
		state := "waits"
		if m.TakesPart {
			state = "takes part"
		}
		rows = append(rows, []string{fmt.Sprint(m.ID), brief(now.Sub(m.Heard)) + " ago", state})
	}
	return "\n" + bad("These were started with other members, times or label:") + "\n" +
		tableText([]column{number("STRANGER"), left("HEARD"), left("STATE")}, rows)
}

func (s *fleaseStatus) clockText(now time.Time) string {
	switch {
	case s.Clock.Wrong:
		return bad("wrong, as most other members find")
	case s.Clock.Steps > 0:
		return fmt.Sprintf("was set %d times, last by %.0f ms, %s ago", s.Clock.Steps, s.Clock.StepMilli, brief(now.Sub(s.Clock.Stepped)))
	}
	return "steady"
}

func (m *fleaseMember) heardText(now time.Time) string {
	if m.Heard.IsZero() {
		return bad("never")
	}
	text := brief(now.Sub(m.Heard)) + " ago"
	if !m.Twins.IsZero() {
		text += ", " + bad("as two processes "+brief(now.Sub(m.Twins))+" ago")
	}
	return text
}

func (m *fleaseMember) clockText() string {
	switch {
	case m.Heard.IsZero():
		return "-"
	case m.ClockOffMillis == 0:
		return "right"
	}
	return bad(fmt.Sprintf("off by %.0f ms", m.ClockOffMillis))
}
