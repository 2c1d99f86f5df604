package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/lab/faults"
	"github.com/leasehold-dev/leasehold/server/console"
)

// simulate runs both simulators, the first one with several kinds of clusters.
func (o *options) simulate(ctx context.Context, r *faults.Results) error {
	for _, c := range []struct {
		kind faults.Kind
		args string
	}{
		{faults.Sim, "sim --seeds %d"},
		{faults.Sim, "sim --seeds %d --diskless"},
		{faults.Sim, "sim --seeds %d --agents"},
		{faults.Sim, "sim --seeds %d --supervised"},
		{faults.Sim, "sim --seeds %d --embedded"},
		{faults.Sim, "sim --seeds %d --faults default,store-restore=8"},
		{faults.Sim, "sim --seeds %d --faults default,outage=8"},
		{faults.Flease, "flease sim --seeds %d"},
	} {
		command := "go run ./cmd/leasehold-lab " + fmt.Sprintf(c.args, o.worlds)
		if o.missing && r.Has(command) {
			continue
		}
		fmt.Fprintln(os.Stderr, command)
		if err := o.campaign(ctx, c.kind, command, r); err != nil {
			return err
		}
	}
	return nil
}

// campaign runs a simulator once. Its exit status is not 0 after a violation, which is also in its report.
func (o *options) campaign(ctx context.Context, kind faults.Kind, command string, r *faults.Results) error {
	args := strings.Fields(command + " --json")
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	var report struct {
		Seeds      int
		Violations int
		Faults     map[string]int
		Branches   map[string]int
	}
	if bad := json.Unmarshal(out, &report); bad != nil {
		return fmt.Errorf("%s: %w", command, errors.Join(err, bad))
	}
	run := faults.Run{
		Kind: kind, Command: command, Date: o.date, Size: console.Counted(report.Seeds, "world"), Violations: report.Violations,
		Counts: known(kind, report.Faults, report.Branches),
	}
	r.Put(run)
	return err
}

// known returns the counts that belong to a proof.
func known(kind faults.Kind, counts ...map[string]int) map[string]int {
	all, out := make(map[string]int), make(map[string]int)
	for _, c := range counts {
		maps.Copy(all, c)
	}
	for _, c := range faults.Cases() {
		for _, p := range c.Proofs {
			if n := all[p.Name]; p.Kind == kind && n > 0 {
				out[p.Name] = n
			}
		}
	}
	return out
}

// takeChaos adds reports of "leasehold-lab chaos --report", one object for each store. Each replaces the
// previous one of the same command.
func (o *options) takeChaos(r *faults.Results) error {
	var runs []faults.Run
	for _, name := range strings.Split(o.chaos, ",") {
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		found, err := reports(f)
		_ = f.Close() // only read
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		runs = append(runs, found...)
	}
	for _, run := range runs {
		r.Runs = slices.DeleteFunc(r.Runs, func(old faults.Run) bool { return old.Kind == faults.Chaos && old.Command == run.Command })
	}
	r.Runs = append(r.Runs, runs...)
	return nil
}

// reports reads all reports in a file. Their date is that of the file.
func reports(from *os.File) (runs []faults.Run, err error) {
	info, err := from.Stat()
	if err != nil {
		return nil, err
	}
	for d := json.NewDecoder(from); ; {
		var report struct {
			Replay       string
			Faults       int
			Seconds      float64
			FaultsByKind map[string]int
			Violations   []any
			Excused      int
			Noticed      int
		}
		switch err := d.Decode(&report); {
		case errors.Is(err, io.EOF) && len(runs) > 0:
			return runs, nil
		case err != nil:
			return nil, err
		}
		size := fmt.Sprintf("%s in %.0f s", console.Counted(report.Faults, "fault"), report.Seconds)
		if report.Excused+report.Noticed > 0 {
			size += fmt.Sprintf("; %s excused, and owners detected slow clocks %s", console.Counted(report.Excused, "violation"), console.Counted(report.Noticed, "time"))
		}
		runs = append(runs, faults.Run{
			Kind: faults.Chaos, Command: report.Replay, Date: info.ModTime().UTC().Format(time.DateOnly), Violations: len(report.Violations),
			Size: size, Counts: known(faults.Chaos, report.FaultsByKind),
		})
	}
}
