package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"time"

	"github.com/spf13/cobra"
)

const demoHelp = `Runs all of Live Mesh on this computer: three managers, two servers of each service and two
frontends, each a process of its own. A home PC and a work PC tell each other their addresses
(Centrifuge, figure 11), others publish and receive, and every few seconds a process is
killed, stopped or restarted. At the end each message is held against what was promised.

Open the URL that it prints in two windows of a browser to play along.`

// demoFlags is what people say about a demo.
type demoFlags struct {
	length time.Duration
	seed   uint64
	calm   bool
	json   bool
}

func newDemoCommand() *cobra.Command {
	var f demoFlags
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Run all of it on this computer, and kill servers",
		Long:  demoHelp,
		Example: `  livemesh demo
  livemesh demo --for 10m --calm     # nothing is killed: do it yourself
  livemesh demo --for 30s --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.length <= 0 {
				return fmt.Errorf("--for is %v, want more than that", f.length)
			}
			if !cmd.Flags().Changed("seed") {
				f.seed = rand.Uint64()
			}
			return f.run(cmd)
		},
	}
	cmd.Flags().DurationVar(&f.length, "for", time.Minute, "how long it takes")
	cmd.Flags().Uint64Var(&f.seed, "seed", 0, "decides what is killed, and when (default: at random)")
	cmd.Flags().BoolVar(&f.calm, "calm", false, "kill nothing")
	cmd.Flags().BoolVar(&f.json, "json", false, "print one object at the end, and nothing else")
	return cmd
}

func (f *demoFlags) run(cmd *cobra.Command) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "livemesh-demo-")
	if err != nil {
		return err
	}
	said := cmd.OutOrStdout()
	if f.json {
		said = io.Discard
	}
	d := &demo{program: program, dir: dir, flags: f, began: time.Now(), out: said}
	ctx, cancel := context.WithCancel(cmd.Context())
	defer cancel()
	report, err := d.run(ctx)
	if errors.Is(err, errInterrupted) {
		return errors.Join(err, os.RemoveAll(dir))
	}
	if err != nil {
		return fmt.Errorf("%w (what the processes have said is in %s)", err, dir)
	}
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if f.json {
		encoder := json.NewEncoder(cmd.OutOrStdout())
		encoder.SetIndent("", "  ")
		return encoder.Encode(report)
	}
	return report.print(cmd.OutOrStdout())
}
