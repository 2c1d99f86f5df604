package kit

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// A Question is what one command asks.
type Question struct {
	Name    string // that of its directory
	Number  int    // where on the page
	Title   string
	Asks    string   // Markdown: what is compared with what, and how
	Module  bool     // it is a module of its own
	Modules []string // whose versions are told
	Rounds  int      // how many, unless the command line says otherwise
	Quick   int      // how many with -quick
	Flags   func(*flag.FlagSet)
	Run     func(context.Context, *Run) error
}

// A Run is a question being answered.
type Run struct {
	*Result
	Rounds int
	Quick  bool   // headlines only, in seconds
	Docs   string // where the result will be stored; empty if it will not

	progress    *Progress
	done, total int
	text        string
}

// Expect says how many steps there are.
func (r *Run) Expect(steps int) { r.total = steps }

// Step says that one more is done. What is said of it may be formatted.
func (r *Run) Step(format string, args ...any) {
	r.done++
	r.text = fmt.Sprintf(format, args...)
	r.progress.Show(float64(r.done)/float64(max(1, r.total, r.done)), r.text)
}

// Note says something that the user should see at once.
func (r *Run) Note(format string, args ...any) { r.progress.Note(fmt.Sprintf(format, args...)) }

// Skip says loudly that someone does not take part, and why.
func (r *Run) Skip(who string, why error) {
	text := fmt.Sprintf("%s: %v", who, why)
	r.Skipped = append(r.Skipped, text)
	r.Note("SKIPPED %s", text)
}

// CommandVariable names, in the environment of a question, where the command leasehold
// is that was built for it. Who asks many questions builds it once, and not while
// something is measured.
const CommandVariable = "BENCH_LEASEHOLD"

// The exit codes of a question. Callers that run many of them tell goals that
// were missed from questions that could not be answered.
const (
	exitMet    = 0
	exitFailed = 1
	exitUsage  = 2
	ExitMissed = 3
)

// Main asks the question that the command line is about, and ends the process.
func Main(q Question) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := q.ask(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// options are what the command line says.
type options struct {
	rounds   int
	quick    bool
	json     bool
	docs     string
	progress string
}

func (q *Question) parse(args []string, help io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet(q.Name, flag.ContinueOnError)
	flags.SetOutput(help)
	flags.Usage = func() {
		_, _ = fmt.Fprintf(help, "%s: %s\n\nusage: %s [flags]\n\n", q.Name, q.Title, q.command(nil))
		flags.PrintDefaults()
	}
	flags.IntVar(&o.rounds, "rounds", 0, fmt.Sprintf("how many turns everyone has (default %d, with -quick %d)", q.Rounds, q.Quick))
	flags.BoolVar(&o.quick, "quick", false, "headlines only, in seconds")
	flags.BoolVar(&o.json, "json", false, "print headlines, a JSON object on each line, instead of tables")
	flags.StringVar(&o.docs, "docs", "", "directory of BENCHMARKS.md: store the result there, and write the page again")
	flags.StringVar(&o.progress, "progress", "auto", "auto, plain, lines for programs, or no")
	if q.Flags != nil {
		q.Flags(flags)
	}
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	switch {
	case flags.NArg() > 0:
		return o, fmt.Errorf("%q is too much: there are only flags", flags.Arg(0))
	case o.rounds < 0 || o.rounds > 1000:
		return o, fmt.Errorf("%d rounds: want 1 to 1000", o.rounds)
	case o.quick && o.docs != "":
		return o, errors.New("what -quick finds is too rough for -docs: leave one of them out")
	}
	if o.rounds == 0 {
		o.rounds = q.Rounds
		if o.quick {
			o.rounds = q.Quick
		}
	}
	return o, nil
}

func (o *options) show(errs io.Writer) (*Progress, error) {
	switch o.progress {
	case "auto":
		if f, ok := errs.(*os.File); ok {
			return NewProgress(f), nil
		}
		return newProgress(errs, plain, time.Now), nil
	case "plain":
		return newProgress(errs, plain, time.Now), nil
	case "lines":
		return newProgress(errs, lines, time.Now), nil
	case "no":
		return newProgress(errs, silent, time.Now), nil
	}
	return nil, fmt.Errorf("-progress=%s: want auto, plain, lines or no", o.progress)
}

// command is how the question is asked with these arguments. Flags that change
// nothing about the numbers are left out.
func (q *Question) command(args []string) string {
	words := []string{"cd bench && go run ./" + q.Name}
	if q.Module {
		words[0] = "cd bench/" + q.Name + " && go run ."
	}
	for i := 0; i < len(args); i++ {
		name, _, hasValue := strings.Cut(strings.TrimLeft(args[i], "-"), "=")
		switch name {
		case "json":
		case "docs", "progress":
			if !hasValue {
				i++
			}
		default:
			words = append(words, args[i])
		}
	}
	return strings.Join(words, " ")
}

// ask answers the question and returns the exit code.
func (q *Question) ask(ctx context.Context, args []string, out, errs io.Writer) int {
	o, err := q.parse(args, errs)
	if errors.Is(err, flag.ErrHelp) {
		return exitMet
	}
	progress, progressErr := o.show(errs)
	if err = errors.Join(err, progressErr); err != nil {
		_, _ = fmt.Fprintf(errs, "%s: %v\n", q.Name, err) // the exit code tells as well
		return exitUsage
	}
	run := &Run{Result: q.newResult(args), Rounds: o.rounds, Quick: o.quick, Docs: o.docs, progress: progress}
	began := time.Now()
	err = q.Run(ctx, run)
	run.Seconds = significant(time.Since(began).Seconds())
	progress.End()
	if err == nil {
		err = publish(run.Result, o, out)
	}
	if err != nil {
		_, _ = fmt.Fprintf(errs, "%s: %v\n", q.Name, err) // the exit code tells as well
		return exitFailed
	}
	if run.Missed() > 0 {
		return ExitMissed
	}
	return exitMet
}

func (q *Question) newResult(args []string) *Result {
	return &Result{
		Question: q.Name, Number: q.Number, Title: q.Title, Asks: q.Asks, Command: q.command(args),
		Date: time.Now().UTC().Format(time.DateOnly), Machine: Here(), Versions: Versions(q.Modules...),
	}
}

// publish prints the result, and stores it if that is wanted.
func publish(r *Result, o options, out io.Writer) error {
	if o.docs != "" {
		if err := r.Store(o.docs); err != nil {
			return err
		}
		if err := WritePage(o.docs); err != nil {
			return err
		}
	}
	if o.json {
		return r.PrintLines(out)
	}
	return r.Print(out)
}
