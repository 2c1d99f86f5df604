package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold/examples/livemesh/im"
	"github.com/leasehold-dev/leasehold/examples/livemesh/load"
	"github.com/leasehold-dev/leasehold/leasehttp"
)

const loadHelp = `Drives the presence service as the test application of the PRS paper does: publishers, each
with a lookup of its own as a frontend has, publish users, change and read them, and publish
again who was lost. At the end every user must be there as it was published last.

Without --frontend each publisher finds the servers by itself, as the paper's frontends do.
With --rate, how long an operation takes is counted from when it was due.`

// endPatience is how long users may take to be there again at the end.
const endPatience = time.Minute

// loadFlags is what people say about a load.
type loadFlags struct {
	site
	frontends  []string
	publishers int
	length     time.Duration
	json       bool
	cfg        load.Config
}

func newLoadCommand() *cobra.Command {
	var f loadFlags
	cmd := &cobra.Command{
		Use:   "load",
		Short: "Publish, change and read users, and say how long it took",
		Long:  loadHelp,
		Example: `  livemesh load --for 30s
  livemesh load --frontend http://127.0.0.1:8080,http://127.0.0.1:8081 --rate 1000 --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.validate(); err != nil {
				return err
			}
			if !cmd.Flags().Changed("seed") {
				f.cfg.Seed = rand.Uint64()
			}
			f.log = slog.New(slog.DiscardHandler)
			return f.run(cmd)
		},
	}
	cmd.Flags().StringSliceVar(&f.managers, "managers", []string{"127.0.0.1:7400"}, "where the managers are")
	cmd.Flags().StringSliceVar(&f.frontends, "frontend", nil, "where frontends are, to send requests through (default: straight to the servers)")
	cmd.Flags().IntVar(&f.publishers, "publishers", 4, "how many frontends' worth of publishers there are")
	cmd.Flags().IntVar(&f.cfg.Users, "users", 100, "how many users each has")
	cmd.Flags().IntVar(&f.cfg.Callers, "callers", 4, "how many operations each has under way")
	cmd.Flags().IntVar(&f.cfg.Inserts, "inserts", 1, "how often a user signs on, relative to the others")
	cmd.Flags().IntVar(&f.cfg.Updates, "updates", 4, "how often a status is changed, relative to the others")
	cmd.Flags().IntVar(&f.cfg.Reads, "reads", 5, "how often a user is read, relative to the others")
	cmd.Flags().Float64Var(&f.cfg.Rate, "rate", 0, "operations that are due in a second, all publishers together (default: as many as can be)")
	cmd.Flags().DurationVar(&f.length, "for", 10*time.Second, "how long it takes")
	cmd.Flags().Uint64Var(&f.cfg.Seed, "seed", 0, "decides who is asked about, and what (default: at random)")
	cmd.Flags().BoolVar(&f.json, "json", false, "print one object")
	return cmd
}

// validate says what is wrong before anybody is asked.
func (f *loadFlags) validate() error {
	if f.length <= 0 {
		return fmt.Errorf("--for is %v, want more than that", f.length)
	}
	if !(f.cfg.Rate >= 0) { // nor is it no number
		return fmt.Errorf("--rate is %v, want 0 or more", f.cfg.Rate)
	}
	for _, flag := range []struct {
		name        string
		is, atLeast int
	}{
		{"publishers", f.publishers, 1},
		{"callers", f.cfg.Callers, 1},
		{"users", f.cfg.Users, f.cfg.Callers}, // one for each
		{"inserts", f.cfg.Inserts, 0},
		{"updates", f.cfg.Updates, 0},
		{"reads", f.cfg.Reads, 0},
	} {
		if flag.is < flag.atLeast {
			return fmt.Errorf("--%s is %d, want %d or more", flag.name, flag.is, flag.atLeast)
		}
	}
	if f.cfg.Inserts+f.cfg.Updates+f.cfg.Reads == 0 {
		return errors.New("--inserts, --updates and --reads are all 0: nothing is to be done")
	}
	for _, at := range f.frontends {
		if _, err := behind(at); err != nil {
			return err
		}
	}
	return nil
}

func (f *loadFlags) run(cmd *cobra.Command) error {
	ctx := cmd.Context()
	defer f.close() //nolint:errcheck // nobody asks any more
	opening, opened := f.opening(ctx, logger(cmd))
	var err error
	f.cfg.Frontends, err = f.publishing(opening, f.publishers, f.cfg.Callers, f.frontends)
	opened()
	if err != nil {
		return err
	}
	l, err := load.Start(ctx, f.cfg)
	if err != nil {
		return err
	}
	select {
	case <-ctx.Done(): // that is what people do who have seen enough
	case <-time.After(f.length):
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), endPatience)
	defer cancel()
	report, err := l.Finish(ending)
	if err != nil {
		return err
	}
	if err := f.print(cmd, report); err != nil {
		return err
	}
	if report.Absent > 0 {
		return fmt.Errorf("%d of %d users are not there as they were published, %v after the end", report.Absent, report.Users, endPatience)
	}
	return nil
}

func (f *loadFlags) print(cmd *cobra.Command, report *load.Report) error {
	if !f.json {
		_, err := fmt.Fprintln(cmd.OutOrStdout(), report)
		return err
	}
	encoder := json.NewEncoder(cmd.OutOrStdout())
	encoder.SetIndent("", "  ")
	return encoder.Encode(report)
}

// publishing returns n frontends' worth of ways to the presence service, for as many callers
// each: through frontends if there are any, or straight to the servers. The lookups are
// closed with the site.
func (s *site) publishing(ctx context.Context, n, callers int, frontends []string) ([]load.Frontend, error) {
	var all []load.Frontend
	for i := range n {
		l, err := s.lookup(ctx, imSpace)
		if err != nil {
			return nil, err
		}
		plain := http.DefaultTransport.(*http.Transport).Clone()
		plain.MaxIdleConnsPerHost = callers
		client := &im.Client{HTTP: &http.Client{Transport: plain, Timeout: 2 * callPatience}, URL: "http://im"}
		if len(frontends) > 0 {
			through, err := behind(frontends[i%len(frontends)])
			if err != nil {
				return nil, err
			}
			client.URL = through.Documents.URL // all services have the same
		} else if client.HTTP.Transport, err = leasehttp.NewTransport(leasehttp.TransportConfig{Lookup: l, Key: im.Key()}); err != nil {
			return nil, err
		}
		all = append(all, load.Frontend{Client: client, Lookup: l})
	}
	return all, nil
}
