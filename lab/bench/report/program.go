package report

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

// A Benchmark is one program.
type Benchmark struct {
	Name    string // that of its directory
	Number  int    // its place on the page
	Title   string
	About   string   // Markdown: what is compared with what, and how
	Module  bool     // it is a module of its own
	Modules []string // whose versions the page names
	Rounds  int      // by default
	Quick   int      // rounds with -quick
	Flags   func(*flag.FlagSet)
	Run     func(context.Context, *Run) error
}

// A Run is a benchmark that is running.
type Run struct {
	*Result
	Rounds int
	Quick  bool   // headlines only, in seconds
	Docs   string // where the result will be stored; empty if it will not

	progress    *Progress
	done, total int
}

// Expect sets the number of steps.
func (r *Run) Expect(steps int) { r.total = steps }

// Step reports that one more step is done.
func (r *Run) Step(format string, args ...any) {
	r.done++
	r.progress.Show(float64(r.done)/float64(max(1, r.total, r.done)), fmt.Sprintf(format, args...))
}

// Note prints a line that the user should see at once.
func (r *Run) Note(format string, args ...any) { r.progress.Note(fmt.Sprintf(format, args...)) }

// Skip records that a contestant does not take part, and why.
func (r *Run) Skip(name string, why error) {
	text := fmt.Sprintf("%s: %v", name, why)
	r.Skipped = append(r.Skipped, text)
	r.Note("SKIPPED %s", text)
}

// Only returns the parts that a flag -only selects by name, separated by commas; all
// if it is empty.
func Only[T any](only string, all []T, name func(T) string) ([]T, error) {
	if only == "" {
		return all, nil
	}
	var names []string
	for _, x := range all {
		names = append(names, name(x))
	}
	wanted := strings.Split(only, ",")
	for _, w := range wanted {
		if !slices.Contains(names, w) {
			return nil, fmt.Errorf("there is no %q: want some of %s", w, strings.Join(names, ", "))
		}
	}
	return slices.DeleteFunc(slices.Clone(all), func(x T) bool { return !slices.Contains(wanted, name(x)) }), nil
}

// The exit codes of a benchmark. lab/bench/all tells missed goals from failures.
const (
	exitMet    = 0
	exitFailed = 1
	exitUsage  = 2
	ExitMissed = 3
)

// Main runs the benchmark as the command line says, and ends the process.
func Main(b Benchmark) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := b.main(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// options are the flags that all benchmarks have.
type options struct {
	rounds int
	quick  bool
	json   bool
	lines  bool
	docs   string
}

func (b *Benchmark) parse(args []string, help io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet(b.Name, flag.ContinueOnError)
	flags.SetOutput(help)
	flags.Usage = func() {
		_, _ = fmt.Fprintf(help, "%s: %s\n\nusage: %s [flags]\n\n", b.Name, b.Title, b.command(nil))
		flags.PrintDefaults()
	}
	flags.IntVar(&o.rounds, "rounds", 0, fmt.Sprintf("turns of each contestant (default %d, with -quick %d)", b.Rounds, b.Quick))
	flags.BoolVar(&o.quick, "quick", false, "headlines only, in seconds")
	flags.BoolVar(&o.json, "json", false, "print headlines, a JSON object on each line, instead of tables")
	flags.BoolVar(&o.lines, "lines", false, "report progress in lines for programs")
	flags.StringVar(&o.docs, "docs", "", "directory of BENCHMARKS.md: store the result there, and write the page again")
	if b.Flags != nil {
		b.Flags(flags)
	}
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	switch {
	case flags.NArg() > 0:
		return o, fmt.Errorf("unexpected argument %q: there are only flags", flags.Arg(0))
	case o.rounds < 0 || o.rounds > 1000:
		return o, fmt.Errorf("%d rounds: want 1 to 1000", o.rounds)
	case o.quick && o.docs != "":
		return o, errors.New("the results of -quick are too rough for -docs: leave one of them out")
	case o.quick:
		o.rounds = cmp.Or(o.rounds, b.Quick)
	}
	o.rounds = cmp.Or(o.rounds, b.Rounds)
	return o, nil
}

// command is the command line that repeats the run. Flags that do not change the
// numbers are left out.
func (b *Benchmark) command(args []string) string {
	words := []string{"cd lab/bench && go run ./" + b.Name}
	if b.Module {
		words[0] = "cd lab/bench/" + b.Name + " && go run ."
	}
	for i := 0; i < len(args); i++ {
		name, _, hasValue := strings.Cut(strings.TrimLeft(args[i], "-"), "=")
		switch name {
		case "json", "lines":
		case "docs":
			if !hasValue {
				i++
			}
		default:
			words = append(words, args[i])
		}
	}
	return strings.Join(words, " ")
}

// main runs the benchmark and returns the exit code.
func (b *Benchmark) main(ctx context.Context, args []string, out, errs io.Writer) int {
	fail := func(err error, code int) int {
		_, _ = fmt.Fprintf(errs, "%s: %v\n", b.Name, err) // the exit code is an error, too
		return code
	}
	o, err := b.parse(args, errs)
	if errors.Is(err, flag.ErrHelp) {
		return exitMet
	}
	if err != nil {
		return fail(err, exitUsage)
	}
	progress := NewProgress(errs)
	if o.lines {
		progress.style = lines
	}
	run := &Run{Result: b.newResult(args), Rounds: o.rounds, Quick: o.quick, Docs: o.docs, progress: progress}
	began := time.Now()
	err = b.Run(ctx, run)
	run.Seconds = significant(time.Since(began).Seconds())
	progress.End()
	if err == nil {
		err = publish(run.Result, o, out)
	}
	if err != nil {
		return fail(err, exitFailed)
	}
	if run.Missed() > 0 {
		return ExitMissed
	}
	return exitMet
}

func (b *Benchmark) newResult(args []string) *Result {
	return &Result{
		Benchmark: b.Name, Number: b.Number, Title: b.Title, About: b.About, Command: b.command(args),
		Date: time.Now().UTC().Format(time.DateOnly), Machine: Here(), Versions: Versions(b.Modules...),
	}
}

// publish prints the result, and stores it with -docs.
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
		return PrintLines(out, r.Headlines)
	}
	return r.Print(out)
}
