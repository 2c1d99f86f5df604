// Package report is what all benchmarks share: flags, interleaved rounds, medians
// with their spread, goals, tables, plots, the machine, and the page
// docs/BENCHMARKS.md.
//
// # Adding a benchmark
//
//  1. Make a directory beside this one with a package main that calls [Main] with a
//     [Benchmark]. Its package comment says what is compared, and how to run it.
//  2. In Run, state the number of steps with [Run.Expect], and report each with
//     [Run.Step]. Interleave the contestants: each has a turn in every round.
//     [Compete] does that for loops, [Rounds] for anything else.
//  3. Add the results to the [Result]: sections with tables and plots, headlines,
//     goals, and with [Result.Lose] where a peer is better, and why. A contestant
//     that could not take part goes to [Run.Skip].
//  4. Honour Run.Quick: the same headlines, in some 20 s.
//  5. Add the directory to the list in lab/bench/all, with the seconds that it takes
//     and its time limit: cd lab/bench && go run ./all -list.
//  6. Run it: cd lab/bench && go run ./NAME, and with -docs ../../docs to store the
//     result in docs/benchmarks and write docs/BENCHMARKS.md again.
//
// A benchmark whose dependencies conflict with those of the others is a module of
// its own, as routing is; its go.mod says why.
//
// # Method
//
// A machine with other work is slow now and then. So turns are short and many,
// contestants alternate, and medians are compared: a slow moment slows all of them
// down, and the median leaves it out. The slowest and the fastest turn stand
// beside it.
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
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/procfs"
)

// A Benchmark is one program.
type Benchmark struct {
	Name    string // that of its directory
	Number  int    // its place on the page
	Title   string
	About   string   // Markdown: what is compared with what, and how
	Module  bool     // it is a module of its own
	Modules []string // whose versions the page names
	Parts   []string // that -only selects from
	Rounds  int      // by default
	Quick   int      // rounds with -quick
	// QuickPart is what -quick runs without -only; empty is all parts.
	QuickPart string
	Flags     func(*flag.FlagSet)
	Run       func(context.Context, *Run) error
}

// A Run is a benchmark that is running.
type Run struct {
	*Result
	Rounds int
	Quick  bool     // headlines only, in seconds
	Parts  []string // that are wanted
	Only   bool     // the user has named them
	Docs   string   // where the result will be stored; empty if it will not
	Dir    string   // for temporary files; it is removed in the end

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

// Wants reports whether a part is wanted.
func (r *Run) Wants(part string) bool { return slices.Contains(r.Parts, part) }

// Only returns the names that a flag -only selects, separated by commas, in their
// order; all if it is empty.
func Only(only string, all []string) ([]string, error) {
	if only == "" {
		return all, nil
	}
	wanted := strings.Split(only, ",")
	for _, w := range wanted {
		if !slices.Contains(all, w) {
			return nil, fmt.Errorf("there is no %q: want some of %s", w, strings.Join(all, ", "))
		}
	}
	return slices.DeleteFunc(slices.Clone(all), func(name string) bool { return !slices.Contains(wanted, name) }), nil
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

type options struct {
	rounds int
	quick  bool
	json   bool
	lines  bool
	only   string
	parts  []string
	docs   string
	dir    string
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
	flags.StringVar(&o.dir, "dir", os.TempDir(), "a directory on a disk: a temporary one is made in it")
	if len(b.Parts) > 0 {
		help := "parts, separated by commas: " + strings.Join(b.Parts, ", ") + " (default all"
		if b.QuickPart != "" {
			help += ", with -quick " + b.QuickPart
		}
		flags.StringVar(&o.only, "only", "", help+")")
	}
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
	}
	only := o.only
	if o.quick {
		o.rounds = cmp.Or(o.rounds, b.Quick)
		only = cmp.Or(only, b.QuickPart)
	}
	o.rounds = cmp.Or(o.rounds, b.Rounds)
	var err error
	o.parts, err = Only(only, b.Parts)
	return o, err
}

// command is the command line that repeats the run. Flags that do not change the
// numbers are left out.
func (b *Benchmark) command(args []string) string {
	words := []string{"cd lab/bench && go run ./" + b.Name}
	if b.Module {
		words[0] = "cd lab/bench/" + b.Name + " && GOWORK=off go run ."
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
	result, err := b.run(ctx, o, args, errs)
	if err == nil {
		err = publish(result, o, out)
	}
	if err != nil {
		return fail(err, exitFailed)
	}
	if result.Missed() > 0 {
		return ExitMissed
	}
	return exitMet
}

func (b *Benchmark) run(ctx context.Context, o options, args []string, errs io.Writer) (_ *Result, err error) {
	r := &Run{Rounds: o.rounds, Quick: o.quick, Parts: o.parts, Only: o.only != "", Docs: o.docs, progress: NewProgress(errs)}
	r.Result = &Result{
		Benchmark: b.Name, Number: b.Number, Title: b.Title, About: b.About, Command: b.command(args),
		Date: time.Now().UTC().Format(time.DateOnly), Machine: Here(), Versions: Versions(b.Modules...),
	}
	if o.lines {
		r.progress.style = lines
	}
	if r.Dir, err = os.MkdirTemp(o.dir, "bench-"+b.Name+"-"); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(r.Dir)) }()
	began := time.Now()
	err = b.Run(ctx, r)
	r.Seconds = significant(time.Since(began).Seconds())
	r.progress.End()
	return r.Result, err
}

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

// A Machine is where something was measured.
type Machine struct {
	CPU    string  `json:"cpu"`
	Cores  int     `json:"cores"`
	System string  `json:"system"`
	Load   float64 `json:"loadBefore"` // of the last minute before the benchmark
	Go     string  `json:"go"`
}

// Here describes this computer. Without Linux most of it is unknown.
func Here() Machine {
	m := Machine{
		CPU: "unknown", Cores: runtime.NumCPU(), System: runtime.GOOS + "/" + runtime.GOARCH, Go: runtime.Version(),
	}
	if release, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		m.System += ", Linux " + strings.TrimSpace(string(release))
	}
	proc, err := procfs.NewDefaultFS()
	if err != nil {
		return m
	}
	if cpus, err := proc.CPUInfo(); err == nil && len(cpus) > 0 {
		m.CPU = cpus[0].ModelName
	}
	if load, err := proc.LoadAvg(); err == nil {
		m.Load = load.Load1
	}
	return m
}

// String returns the description in a line.
func (m Machine) String() string {
	return fmt.Sprintf("%s, %d cores, %s, %s; load before: %.1f", m.CPU, m.Cores, m.System, m.Go, m.Load)
}

// Versions returns those of the given modules that this program was built with, as
// "path version".
func Versions(modules ...string) []string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return nil
	}
	return versionsIn(info.Deps, modules)
}

func versionsIn(deps []*debug.Module, modules []string) []string {
	var found []string
	for _, path := range modules {
		i := slices.IndexFunc(deps, func(m *debug.Module) bool { return m.Path == path })
		if i < 0 {
			continue
		}
		version := deps[i].Version
		if r := deps[i].Replace; r != nil && r.Version != "" {
			version = r.Version
		}
		found = append(found, path+" "+version)
	}
	return found
}
