package doctorcmd

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/server/cli"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold/server/console"
)

const doctorHelp = `Checks a deployment, and says what to do about what it finds: whether every manager
answers and how fast, whether all agree who leads, what they run, how much is left of
their stores, files and connections, how far apart their clocks are and how much faster
one runs than another, how long the certificates of managers and our own are valid, and
how each namespace and its owners and lookups fare.

Name all managers with --managers: those that are not named are not checked. Clocks are
compared by asking again and again for as long as --for says: the longer, the smaller
the differences that are found.

Each line is "ok", "hint" for what may be meant so or may become a problem, or "WRONG".
With --verbose it also says what was not checked. It changes nothing.

Exit status: 0 nothing is wrong; 1 something is; 2 it could not be checked as asked;
130 interrupted.`

// doctorOptions are the flags of "doctor".
type doctorOptions struct {
	*cli.Client
	lasting time.Duration
	verbose bool
	policy  string
}

const (
	leastExam = time.Second
	mostExam  = 10 * time.Minute
)

func New() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check a deployment, and say what to fix",
		Long:  doctorHelp,
		Example: `  leasehold doctor --managers m1:7400,m2:7400,m3:7400
  leasehold doctor --for 1m --json | jq '.findings[] | select(.verdict != "ok")'`,
		Args: cli.NoArguments,
	}
	o := &doctorOptions{Client: cli.NewClient(cmd)}
	cmd.Flags().DurationVar(&o.lasting, "for", 5*time.Second, "how long to watch clocks and owners")
	cmd.Flags().StringVar(&o.policy, "access", "", "an access `file` of managers to look at, too")
	cmd.Flags().BoolVar(&o.verbose, "verbose", false, "also say what was not checked")
	cmd.RunE = o.Run(func(ctx context.Context, _ []string) error { return o.doctor(ctx) })
	return cmd
}

// A Verdict is what became of a check.
type Verdict string

// The verdicts. Programs rely on them.
const (
	Fine    Verdict = "ok"
	Hint    Verdict = "hint"
	Wrong   Verdict = "wrong"
	skipped Verdict = "skipped"
)

// A finding is a check and what became of it.
type finding struct {
	Check   string  `json:"check"`   // what was checked: reach, leader, build, store, clock, ...
	Subject string  `json:"subject"` // whose: a manager's address, a namespace, an owner; "" for the group
	Verdict Verdict `json:"verdict"`
	Text    string  `json:"text"`
	Advice  string  `json:"advice,omitempty"` // what to do about it
}

// A doctorDocument is what "doctor --json" prints.
type Report struct {
	Wrong    int       `json:"wrong"` // how many checks
	Hints    int       `json:"hints"`
	Findings []finding `json:"findings"`
}

func (o *doctorOptions) doctor(ctx context.Context) error {
	if o.lasting < leastExam || o.lasting > mostExam {
		return fmt.Errorf("--for %v: want %v to %v", o.lasting, leastExam, mostExam)
	}
	e := o.examine(ctx)
	if ctx.Err() != nil {
		return cli.StatusInterrupted
	}
	document := Report{Findings: []finding{}}
	for _, f := range diagnose(e) {
		switch f.Verdict {
		case Wrong:
			document.Wrong++
		case Hint:
			document.Hints++
		case skipped:
			if !o.verbose {
				continue
			}
		case Fine:
		}
		document.Findings = append(document.Findings, f)
	}
	if err := o.Print(document, document.text); err != nil {
		return err
	}
	if document.Wrong > 0 {
		return cli.StatusViolated
	}
	return nil
}

func (d Report) text() string {
	var out strings.Builder
	for _, f := range d.Findings {
		mark := string(f.Verdict)
		switch f.Verdict {
		case Fine:
			mark = console.Good("ok   ")
		case Hint:
			mark = console.Heading("hint ")
		case Wrong:
			mark = console.Bad("WRONG")
		case skipped:
			mark = "-    "
		}
		subject := ""
		if f.Subject != "" {
			subject = console.Shown(f.Subject) + ": "
		}
		fmt.Fprintf(&out, "%s  %-9s  %s%s\n", mark, f.Check, subject, console.Shown(f.Text))
		if f.Advice != "" {
			fmt.Fprintf(&out, "       %-9s  %s\n", "", console.Shown(f.Advice))
		}
	}
	switch {
	case d.Wrong == 0 && d.Hints == 0:
		out.WriteString("Nothing is wrong.\n")
	case d.Wrong == 0:
		fmt.Fprintf(&out, "Nothing is wrong; %s.\n", console.Counted(d.Hints, "hint"))
	default:
		fmt.Fprintf(&out, "%s wrong, %s.\n", console.Counted(d.Wrong, "check"), console.Counted(d.Hints, "hint"))
	}
	return out.String()
}
