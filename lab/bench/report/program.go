// Package report is the common code of all benchmarks: flags, interleaved rounds, medians
// with their spread, goals, tables, plots, the machine, and the page docs/BENCHMARKS.md.
//
// # Adding a benchmark
//
//  1. Create a directory beside this one with a package main that calls [Main] with a
//     [Benchmark]. The package comment describes the comparison and the commands.
//  2. In Run, state the number of steps with [Run.Expect], and report each with
//     [Run.Step]. Interleave the contestants: each has a turn in every round.
//     [Compete] does that for loops, [Rounds] for anything else.
//  3. Add the results to the [Result]: sections with tables and plots, headlines, goals,
//     and with [Result.Lose] each comparison in which a peer is better, with the reason.
//     Report a contestant that could not take part with [Run.Skip].
//  4. Support Run.Quick: the same headlines, in some 20 s.
//  5. Add the directory to the list in lab/bench/all, with its duration and time limit:
//     cd lab/bench && go run ./all -list.
//  6. Run it: cd lab/bench && go run ./NAME, and with -docs ../../docs to store the
//     result in docs/benchmarks and write docs/BENCHMARKS.md again.
//
// A benchmark whose dependencies conflict with those of the others is a separate module,
// like routing.
//
// # Method
//
// Other work slows a machine down at times. So turns are short and many, contestants
// alternate, and medians are compared: a slow period affects all contestants, and the
// median ignores it. The slowest and the fastest turn are reported, too.
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
	Name    string // its directory
	Number  int    // of its section on the page
	Title   string
	About   string   // Markdown: the comparison and the method
	Module  bool     // a separate module
	Modules []string // modules whose versions are reported
	Parts   []string // for -only
	Rounds  int      // the default
	Quick   int      // rounds with -quick
	// QuickPart is the part that -quick runs without -only; empty is all parts.
	QuickPart string
	Flags     func(*flag.FlagSet)
	Run       func(context.Context, *Run) error
}

// A Run is a running benchmark.
type Run struct {
	*Result
	Rounds int
	Quick  bool     // headlines only, in seconds
	Parts  []string // to run
	Only   bool     // -only is set
	Dir    string   // for temporary files; removed at the end

	progress    *Progress
	done, total int
}

// Expect sets the number of steps.
func (r *Run) Expect(steps int) { r.total = steps }

// Step reports a completed step.
func (r *Run) Step(format string, args ...any) {
	r.done++
	r.progress.Show(float64(r.done)/float64(max(1, r.total, r.done)), fmt.Sprintf(format, args...))
}

// Note prints a line at once.
func (r *Run) Note(format string, args ...any) { r.progress.Note(fmt.Sprintf(format, args...)) }

// Skip records a contestant that does not take part, with the reason.
func (r *Run) Skip(name string, why error) {
	text := fmt.Sprintf("%s: %v", name, why)
	r.Skipped = append(r.Skipped, text)
	r.Note("SKIPPED %s", text)
}

// Wants reports whether a part is to be run.
func (r *Run) Wants(part string) bool { return slices.Contains(r.Parts, part) }

// Only returns the names that a flag -only selects, separated by commas, in the order of all;
// all if it is empty.
func Only(only string, all []string) ([]string, error) {
	if only == "" {
		return all, nil
	}
	wanted := strings.Split(only, ",")
	for _, w := range wanted {
		if !slices.Contains(all, w) {
			return nil, fmt.Errorf("unknown name %q: want some of %s", w, strings.Join(all, ", "))
		}
	}
	return slices.DeleteFunc(slices.Clone(all), func(name string) bool { return !slices.Contains(wanted, name) }), nil
}

// The exit codes of a benchmark. lab/bench/all distinguishes missed goals from failures.
const (
	exitMet    = 0
	exitFailed = 1
	exitUsage  = 2
	ExitMissed = 3
)

// Main runs the benchmark according to the command line, and exits.
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
	flags.BoolVar(&o.json, "json", false, "print headlines as JSON lines instead of tables")
	flags.BoolVar(&o.lines, "lines", false, "print progress as lines for programs")
	flags.StringVar(&o.dir, "dir", os.TempDir(), "directory on a disk for temporary files")
	if len(b.Parts) > 0 {
		help := "parts, separated by commas: " + strings.Join(b.Parts, ", ") + " (default all"
		if b.QuickPart != "" {
			help += ", with -quick " + b.QuickPart
		}
		flags.StringVar(&o.only, "only", "", help+")")
	}
	flags.StringVar(&o.docs, "docs", "", "directory of BENCHMARKS.md: store the result and update the page")
	if b.Flags != nil {
		b.Flags(flags)
	}
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	switch {
	case flags.NArg() > 0:
		return o, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case o.rounds < 0 || o.rounds > 1000:
		return o, fmt.Errorf("%d rounds: want 1 to 1000", o.rounds)
	case o.quick && o.docs != "":
		return o, errors.New("-quick and -docs exclude each other: quick results are too rough")
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

// command returns the command line that repeats the run, without flags that do not change the
// numbers.
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
		_, _ = fmt.Fprintf(errs, "%s: %v\n", b.Name, err) // the exit code reports it, too
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
	r := &Run{Rounds: o.rounds, Quick: o.quick, Parts: o.parts, Only: o.only != "", progress: NewProgress(errs)}
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

// A Machine describes the machine of a run.
type Machine struct {
	CPU    string  `json:"cpu"`
	Cores  int     `json:"cores"`
	System string  `json:"system"`
	Load   float64 `json:"loadBefore"` // of the minute before the run
	Go     string  `json:"go"`
}

// Here describes this machine. Most of it requires Linux.
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

// Versions returns the versions of modules in this program, as "path version".
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
