package main

import (
	"context"
	"encoding/json"
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

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}

// run returns the exit code: 0 if all goals were met, 1 if not or if something
// failed, 2 if it was called wrongly.
func run(ctx context.Context, args []string) int {
	if len(args) > 0 {
		if start, ok := roles()[args[0]]; ok {
			if err := play(ctx, start, args[1:]); err != nil {
				fmt.Fprintln(os.Stderr, err)
				return 1
			}
			return 0
		}
	}
	o, err := parseOptions(args, os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "flease:", err)
		return 2
	}
	r, err := measure(ctx, o)
	if err == nil {
		err = publish(r, o)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "flease:", err)
		return 1
	}
	for _, v := range r.Goals {
		if !v.Met {
			return 1
		}
	}
	return 0
}

// options are what the command line says.
type options struct {
	rounds int
	warm   int
	turn   time.Duration
	parts  []string
	dir    string
	docs   string
	json   bool
	line   string // the command line, for the report
}

func parseOptions(args []string, help io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("flease", flag.ContinueOnError)
	flags.SetOutput(help)
	flags.IntVar(&o.rounds, "rounds", 5, "how many turns each contestant has in each part")
	flags.IntVar(&o.warm, "warm", 3, "how many turns before that do not count")
	flags.DurationVar(&o.turn, "turn", time.Second, "about how long a turn is")
	only := flags.String("only", "", "parts to run, separated by commas: contest, batches, disk, groups (default all)")
	flags.StringVar(&o.dir, "dir", os.TempDir(), "a directory on a disk: a temporary one is made in it")
	flags.StringVar(&o.docs, "docs", "", "directory of flease.md: write its tables and plots")
	flags.BoolVar(&o.json, "json", false, "print JSON")
	if err := flags.Parse(args); err != nil {
		return options{}, err
	}
	o.line = strings.Join(append([]string{"go run ."}, args...), " ")
	all := []string{partContest, partBatches, partDisk, partGroups}
	o.parts = all
	if *only != "" {
		o.parts = strings.Split(*only, ",")
	}
	for _, p := range o.parts {
		if !slices.Contains(all, p) {
			return options{}, fmt.Errorf("there is no part %q: want some of %s", p, strings.Join(all, ", "))
		}
	}
	if flags.NArg() > 0 || o.rounds < 1 || o.rounds > 100 || o.warm < 0 || o.warm > 100 || o.turn < 10*time.Millisecond || o.turn > time.Minute {
		return options{}, errors.New("want 1 to 100 rounds, 0 to 100 to warm up, turns of 10 ms to 1 min, and no arguments")
	}
	return o, nil
}

func (o *options) wants(part string) bool { return slices.Contains(o.parts, part) }

// measure runs the parts that are wanted. Whatever happens, all processes have
// ended and all files are gone when it returns.
func measure(ctx context.Context, o options) (r *report, err error) {
	dir, err := os.MkdirTemp(o.dir, "bench-flease-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	r = &report{Command: o.line, Machine: thisMachine(ctx, dir)}
	if r.Machine.Files == memoryFiles {
		return nil, fmt.Errorf("%s is in memory: name a directory on a disk with -dir", o.dir)
	}
	begin := time.Now()
	judge := &referee{length: o.turn, progress: func(format string, args ...any) {
		fmt.Fprintf(os.Stderr, "%4.0fs "+format+"\n", append([]any{time.Since(begin).Seconds()}, args...)...)
	}}
	if o.wants(partContest) || o.wants(partBatches) || o.wants(partDisk) {
		if err := judge.sideBySide(ctx, o, dir, r); err != nil {
			return nil, err
		}
	}
	if o.wants(partGroups) {
		if r.Groups, err = judge.groupFigure(ctx, o.rounds); err != nil {
			return nil, err
		}
	}
	r.Goals = r.judge()
	return r, nil
}

// sideBySide runs the parts in which lock services take part.
func (r *referee) sideBySide(ctx context.Context, o options, dir string, to *report) error {
	r.progress("starting flease, etcd and ZooKeeper, three processes each")
	a, err := openArena(ctx, dir, o.turn)
	if err != nil {
		return err
	}
	defer a.close()
	to.Machine.ZooKeeper, to.Skipped = a.zooKeeper, a.skipped
	for _, s := range a.skipped {
		r.progress("SKIPPED %s", s)
	}
	if err := r.warmUp(ctx, a, o.warm); err != nil {
		return err
	}
	if o.wants(partBatches) {
		if to.Batches, err = r.batchFigure(ctx, a, o.rounds); err != nil {
			return err
		}
	}
	if o.wants(partDisk) {
		strains, writer, err := r.diskFigure(ctx, a, dir, o.rounds)
		if err != nil {
			return err
		}
		to.Disk, to.Writer = strains, &writer
	}
	if o.wants(partContest) { // last: by now everyone is as fast as he gets
		if to.Contest, err = r.contest(ctx, a, o.rounds); err != nil {
			return err
		}
	}
	return nil
}

// publish prints the report, and writes the page's parts if that is wanted.
func publish(r *report, o options) error {
	if o.docs != "" {
		if err := writePage(o.docs, r); err != nil {
			return err
		}
	}
	if o.json {
		out := json.NewEncoder(os.Stdout)
		out.SetIndent("", "  ")
		return out.Encode(r)
	}
	for _, t := range r.tables() {
		if err := t.print(os.Stdout); err != nil {
			return err
		}
	}
	return nil
}
