// Package campaign runs chaos for people and scripts: it makes the builds that a run needs, shows its
// progress, and prints and saves its report.
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

// A Campaign is a run with each of some stores, as the flags of the command describe it.
type Campaign struct {
	Config     chaos.Config
	Store      string // one of them, or AllStores
	Drift      string // DriftWithin, DriftBeyond, or empty: clocks are right
	Failpoints bool
	JSON       bool   // print the reports as JSON
	Report     string // the file for JSON besides; empty: none
	Version    string // of this build
}

// Values of flags.
const (
	AllStores   = "all"
	DriftWithin = "within"
	DriftBeyond = "beyond"
	OldestBuild = "oldest" // instead of another program
)

// DrawSeed draws a seed that is easy to type, and that JSON readers with floating point keep exact.
func DrawSeed() uint64 { return rand.Uint64N(1_000_000_000) }

func (c *Campaign) shapes() []cluster.Shape {
	if c.Store == AllStores {
		return cluster.Shapes()
	}
	return []cluster.Shape{cluster.Shape(c.Store)}
}

// Validate reports what is wrong, before anything is built or started.
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
			cfg.Drifting = cfg.Program // it will be another
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

// build makes the other builds that a run needs, in a directory.
func (c *Campaign) build(ctx context.Context, dir string, say func(string)) (err error) {
	cfg := &c.Config
	cfg.Beyond = c.Drift == DriftBeyond
	if c.Drift != "" || c.Failpoints {
		var tags []string
		if c.Failpoints {
			tags = []string{skewedclock.PointsTag}
		}
		say("building the command once more, to be able to break it from within")
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
		say("building the command as it once was")
		old, err := oldbuild.Oldest(ctx, ".")
		if err != nil {
			return err
		}
		cfg.Other, cfg.OtherFlag, cfg.Builds = old.Program, OldestBuild, []string{c.Version, "commit " + old.Commit}
	}
	return nil
}

// Run runs one cluster after the other until something is violated, and prints a report of each.
// An error is a [cli.Status], or that a run could not be carried out or judged.
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
				err = fmt.Errorf("%w\nLogs and histories are in %s, where README says what is what", err, r.Kept)
			}
			return err
		}
		if err != nil { // it went no further, but what it has found counts
			errs.Say("leasehold-lab: %v\n", err)
		}
		if err := c.print(out, file, &r); err != nil {
			return err
		}
		switch {
		case len(r.Violations) > 0:
			errs.Say("leasehold-lab: %s; %s\n", console.Bad("VIOLATION"), "to do it again: "+r.Replay)
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

// A record is the file for reports as JSON. What an earlier run has left stays there until the
// first report.
type record struct {
	file  *os.File // nil: none
	begun bool
}

// newRecord opens the file. Without a path there is none.
func newRecord(path string) (*record, error) {
	if path == "" {
		return &record{}, nil
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o666) //nolint:gosec // whoever the umask allows it may read it
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
		_ = r.file.Close() // each report was written
	}
}
