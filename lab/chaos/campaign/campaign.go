// Package campaign runs chaos for the command: it makes the builds that a run needs, displays its progress,
// and prints and saves its report.
package campaign

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/leasehold-dev/leasehold/server/cli"
	"github.com/leasehold-dev/leasehold/server/console"

	"github.com/leasehold-dev/leasehold/lab/chaos"
	"github.com/leasehold-dev/leasehold/lab/chaos/cluster"
	"github.com/leasehold-dev/leasehold/lab/chaos/oldbuild"
	"github.com/leasehold-dev/leasehold/lab/chaos/skewedclock"
)

// A Campaign has the flags of the command: a run for each of some stores.
type Campaign struct {
	Config     chaos.Config
	Store      string // a store, or AllStores
	Drift      string // DriftWithin, DriftBeyond, or empty: correct clocks
	Failpoints bool
	JSON       bool   // print the reports as JSON
	Report     string // file for the reports as JSON; empty: none
	Version    string // of this build
}

// Values of flags.
const (
	AllStores   = "all"
	DriftWithin = "within"
	DriftBeyond = "beyond"
	OldestBuild = "oldest" // value of --other: the oldest compatible build
)

// DrawSeed draws a short seed, which JSON readers with floating point represent exactly.
func DrawSeed() uint64 { return rand.Uint64N(1_000_000_000) }

func (c *Campaign) shapes() []cluster.Shape {
	if c.Store == AllStores {
		return cluster.Shapes()
	}
	return []cluster.Shape{cluster.Shape(c.Store)}
}

// Validate returns an error for invalid flags, before anything is built or started.
func (c *Campaign) Validate() error {
	if c.Drift != "" && c.Drift != DriftWithin && c.Drift != DriftBeyond {
		return fmt.Errorf("--drift=%s: want within or beyond", c.Drift)
	}
	if other := c.Config.Other; other != "" && other != OldestBuild {
		if _, err := exec.LookPath(other); err != nil {
			return fmt.Errorf("--other %s: want a program, or %q: %w", other, OldestBuild, err)
		}
	}
	for _, shape := range c.shapes() {
		cfg := c.Config
		cfg.Shape, cfg.Beyond = shape, c.Drift == DriftBeyond
		if c.Drift != "" {
			cfg.Drifting = cfg.Program // replaced by build
		}
		if c.Failpoints {
			cfg.Points = []string{"some"}
		}
		if err := cfg.Validate(); err != nil {
			return err
		}
	}
	return nil
}

// build makes the other builds of a run in a directory.
func (c *Campaign) build(ctx context.Context, dir string, say func(string)) (err error) {
	cfg := &c.Config
	cfg.Beyond = c.Drift == DriftBeyond
	if c.Drift != "" || c.Failpoints {
		var tags []string
		if c.Failpoints {
			tags = []string{skewedclock.PointsTag}
		}
		say("building the command with settable clocks or failpoints")
		if cfg.Program, err = skewedclock.Build(ctx, dir, tags...); err != nil {
			return err
		}
		if c.Drift != "" {
			cfg.Drifting = cfg.Program
		}
	}
	if c.Failpoints {
		if cfg.Points, err = skewedclock.Points(ctx, cfg.Program); err != nil {
			return err
		}
	}
	if cfg.Other == OldestBuild {
		say("building the oldest compatible version of the command")
		old, err := oldbuild.Oldest(ctx, ".")
		if err != nil {
			return err
		}
		cfg.Other, cfg.OtherFlag, cfg.Builds = old.Program, OldestBuild, []string{c.Version, "commit " + old.Commit}
	}
	return nil
}

// Run runs one cluster after the other until there is a violation, and prints a report of each. It returns a
// [cli.Status], or the error of a run.
func (c *Campaign) Run(ctx context.Context, out, errs console.Screen) error {
	show := console.NewProgress(errs, c.JSON)
	built, err := os.MkdirTemp("", "leasehold-built-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(built) //nolint:errcheck // in the temporary directory
	file, err := newRecord(c.Report)
	if err != nil {
		return fmt.Errorf("--report: %w", err)
	}
	defer file.close()
	if err := c.build(ctx, built, show.Say); err != nil {
		return err
	}
	for _, shape := range c.shapes() {
		cfg := c.Config
		cfg.Shape = shape
		if cfg.Dir != "" && c.Store == AllStores {
			cfg.Dir = filepath.Join(cfg.Dir, string(shape))
		}
		r, err := chaos.Run(ctx, cfg, func(s chaos.Snapshot) { show.Report(s.Elapsed, share(s), numbers(s)) })
		show.Stop()
		if err != nil && len(r.Violations) == 0 {
			if r.Kept != "" {
				err = fmt.Errorf("%w\nLogs and histories are in %s; README describes them", err, r.Kept)
			}
			return err
		}
		if err != nil { // the run ended early, but its violations count
			errs.Say("leasehold-lab: %v\n", err)
		}
		if err := c.print(out, file, &r); err != nil {
			return err
		}
		switch {
		case len(r.Violations) > 0:
			errs.Say("leasehold-lab: %s; %s\n", console.Bad("VIOLATION"), "to repeat it: "+r.Replay)
			return cli.StatusViolated
		case r.Interrupted:
			return cli.StatusInterrupted
		}
	}
	return nil
}

func (c *Campaign) print(out console.Screen, file *record, r *chaos.Report) error {
	document := console.JSON(r)
	text := document
	if !c.JSON {
		text = reportText(r, out.Columns())
	}
	_, err := io.WriteString(out, text)
	return errors.Join(err, file.add(document))
}

// A record is the file for reports as JSON. The content of an earlier run stays until the first report.
type record struct {
	file  *os.File // nil: none
	begun bool
}

// newRecord opens the file. Without a path there is no file.
func newRecord(path string) (*record, error) {
	if path == "" {
		return &record{}, nil
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o666) //nolint:gosec // the umask decides about access
	return &record{file: f}, err
}

func (r *record) add(report string) error {
	if r.file == nil {
		return nil
	}
	if info, err := r.file.Stat(); err != nil {
		return err
	} else if !r.begun && info.Mode().IsRegular() {
		if err := r.file.Truncate(0); err != nil {
			return err
		}
	}
	r.begun = true
	_, err := r.file.WriteString(report)
	return err
}

func (r *record) close() {
	if r.file != nil {
		_ = r.file.Close() // the writes have succeeded
	}
}
