package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold/flease"
)

const fleaseStatusHelp = `Shows what a member knows: whom it hears, what it holds, and whether something is
wrong with a clock.

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
}

type fleaseMember struct {
	ID             uint32    `json:"id"`
	Addr           string    `json:"addr"`
	Heard          time.Time `json:"heard,omitzero"`
	ClockOffMillis float64   `json:"clockOffMillis,omitempty"`
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
	}
	for _, m := range s.Members {
		d.Members = append(d.Members, fleaseMember{ID: uint32(m.ID), Addr: m.Addr, Heard: m.Heard, ClockOffMillis: millis(m.ClockOff)})
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
		Use:   "status",
		Short: "Show what a member holds, hears and thinks of clocks",
		Long:  fleaseStatusHelp,
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := onlyLoopback("member", member); err != nil {
				return err
			}
			s, err := askFleaseStatus(cmd.Context(), member)
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

func askFleaseStatus(ctx context.Context, member string) (fleaseStatus, error) {
	var s fleaseStatus
	ctx, cancel := context.WithTimeout(ctx, defaultTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+member+"/v1/status", nil)
	if err != nil {
		return s, err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return s, fmt.Errorf("no member answers at %s: %w; \"leasehold flease run\" says where its control is", member, err)
	}
	defer answer.Body.Close() //nolint:errcheck // it was read
	body, err := io.ReadAll(io.LimitReader(answer.Body, 1<<20))
	if err != nil || answer.StatusCode != http.StatusOK {
		return s, fmt.Errorf("%s is no member, or not a healthy one: it answers %s", member, answer.Status)
	}
	err = json.Unmarshal(body, &s)
	return s, err
}

func (s *fleaseStatus) text(now time.Time) string {
	state := good("takes part")
	switch {
	case s.Ready:
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
	return brief(now.Sub(m.Heard)) + " ago"
}

func (m *fleaseMember) clockText() string {
	if m.ClockOffMillis == 0 {
		return "right"
	}
	return bad(fmt.Sprintf("off by %.0f ms", m.ClockOffMillis))
}
