package main

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold/internal/demo"
)

const demoHelp = `Starts three managers and five servers of a small presence service, each a process
of its own on this computer, and 2,000 users who set and ask for a status. Then it
kills the leader and the servers, one after the other, with kill -9, and starts
them again, while the users go on. If there is time it also stops a server
(SIGSTOP) for longer than its leases last, and lets it go on; and it restarts one
as for an upgrade (SIGTERM), which moves its statuses to the others first. It shows
who leads, who owns which share of the keys, how requests fare, and what the users
were told; and it says where the managers' dashboards are, for a browser.

With --rolling-restart nobody is killed. Every user sets a status, and then all
servers are restarted, one after the other and again and again, while the users go
on. No status may be lost, and no request may fail. Callers who keep asking for some
keys, every 5 ms, measure for how long a key has no answer while it moves. At the
end the status of every user is looked at.

With --outage nobody is killed but the managers: all of them, once, and they are
started again after that time. Every user sets a status before that, and users go on
meanwhile. Servers suspend their leases when no manager renews them, keep the statuses,
and serve them again when one leads. No status may be lost.

With --store flease the managers keep nothing on disk: they agree among themselves
who leads, and one that takes over asks the servers what they own.

With --tls a PKI is made for the occasion: managers, servers and users speak mutual TLS
1.3 with each other, and managers let each do what an access policy permits. While all
go on, every certificate and key is replaced on disk once. All processes must show their
new ones soon after, and no lease may be lost for it.

Whether two servers ever owned a key at the same time is not left to the managers
to say: every server checks the keys of all users (2,000 of them, if there are more)
every 15 ms or so, asked or not, and reports what it found and each of its requests'
checks, with the time on the clock that all processes of a computer share. The
reports are compared.

Requests are due at a steady rate. Whose turn it is is drawn first; a user who is
still busy makes the request later, and its time counts from when it was due.
Availability is the share that succeeded within 1 s of that. Requests are repeated
until they succeed; those that never do are failures. While a server is dead or
stopped its users wait, so that the availability says what the chosen kills and
leases cost, and it does not decide the exit status.

On a terminal it goes on until q or Ctrl-C, elsewhere for 30 s; --for sets another
time. Nothing is left behind, neither processes nor files; with --keep the data and
the logs are.

Exit status: 0 all went well; 1 two servers owned a key at the same time, an answer
was out of date, or a status was lost and nobody was told; 2 it could not be done,
or something else went wrong, which is said, such as a loss for which a restart or
an outage is to blame; 130 interrupted before the time that --for set.`

const demoExample = `  leasehold demo
  leasehold demo --for 30s --json
  leasehold demo --tls --for 30s --json
  leasehold demo --store flease
  leasehold demo --outage 60s --json
  leasehold demo --owners 20 --rate 5000 --kill-every 3s --for 5m
  leasehold demo --rolling-restart --for 60s
  leasehold demo --rolling-restart --rounds 1 --owners 10 --keys 1000000 --value-size 200 --json`

// unattended is how long a demo goes on that nobody watches.
const unattended = 30 * time.Second

type demoOptions struct {
	config demo.Config
	json   bool
}

func newDemoCommand() *cobra.Command {
	o := &demoOptions{config: demo.DefaultConfig()}
	cmd := &cobra.Command{
		Use:     "demo",
		Short:   "Run a whole cluster on this computer, and break it",
		Long:    demoHelp,
		Example: demoExample,
		Args:    noArguments,
	}
	flags, c := cmd.Flags(), &o.config
	flags.SortFlags = false
	flags.DurationVar(&c.For, "for", 0, "how long users go on (default until q or Ctrl-C on a terminal, else 30s)")
	flags.BoolVar(&o.json, "json", false, "print what came of it as one JSON object, and nothing else")
	flags.StringVar(&c.Store, "store", c.Store, "where managers have their tables: on disk, or with flease in memory only")
	flags.BoolVar(&c.TLS, "tls", false, "have all processes speak TLS, with certificates that are renewed on the way, and\nmanagers go by an access policy")
	flags.IntVar(&c.Managers, "managers", c.Managers, "how many managers")
	flags.IntVar(&c.Owners, "owners", c.Owners, "how many servers of the presence service")
	flags.IntVar(&c.Users, "users", c.Users, "how many users; each makes one request at a time, and others that are due wait")
	flags.IntVar(&c.Users, "keys", c.Users, "the same as --users: each has one key")
	flags.IntVar(&c.ValueSize, "value-size", c.ValueSize, "how many bytes a status has")
	flags.IntVar(&c.Rate, "rate", c.Rate, "how many requests they make in a second, all together")
	flags.BoolVar(&c.Rolling, "rolling-restart", false, "restart all servers, one after the other, and kill nobody")
	flags.IntVar(&c.Rounds, "rounds", 0, "how often each server is restarted (default as often as there is time for it)")
	flags.DurationVar(&c.Outage, "outage", 0, "kill all managers for so long, once, and nobody else")
	flags.DurationVar(&c.Lease, "lease", c.Lease, "how long leases last; users of a server that was killed wait for 1.2 times as long")
	flags.DurationVar(&c.KillEvery, "kill-every", c.KillEvery, "how much time there is between two kills of a leader, and two of a server, on average")
	flags.Uint64Var(&c.Seed, "seed", 0, "who is killed when (default another each time)")
	flags.BoolVar(&c.Keep, "keep", false, "keep data and logs, and say where they are")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		program, err := os.Executable()
		if err != nil {
			return failed{err}
		}
		c.Program = program
		if !flags.Changed("seed") {
			c.Seed = uint64(time.Now().UnixNano())
		}
		return o.run(cmd)
	}
	return cmd
}

// run runs the demo, shows it, and judges it.
func (o *demoOptions) run(cmd *cobra.Command) error {
	out, errs := newScreen(cmd.OutOrStdout()), newScreen(cmd.ErrOrStderr())
	live := out.terminal && !o.json
	if !live && !cmd.Flags().Changed("for") && o.config.Rounds == 0 && o.config.Outage == 0 {
		o.config.For = unattended
	}
	if err := o.config.Validate(); err != nil {
		return err
	}
	var (
		r   demo.Report
		err error
	)
	if live {
		r, err = o.draw(cmd.Context(), cmd.OutOrStdout())
	} else {
		n := narrator{out: errs, silent: o.json && !errs.terminal}
		r, err = demo.Run(cmd.Context(), o.config, n.tell)
	}
	if err != nil {
		return failed{fmt.Errorf("%w%s", err, o.hint(r))}
	}
	text := demoText(&r)
	if o.json {
		text = jsonText(r)
	}
	if err := write(out, text); err != nil {
		return err
	}
	return o.judge(errs, &r)
}

// hint says where the logs are, or how to have them next time.
func (o *demoOptions) hint(r demo.Report) string {
	if r.Kept != "" {
		return "\nData and logs are in " + r.Kept
	}
	return "\nWith --keep the data and the logs stay."
}

// judge turns a report into the exit status, with a sentence why.
func (o *demoOptions) judge(errs screen, r *demo.Report) error {
	if why := r.Violation(); why != "" {
		errs.say("leasehold: %s: %s\n", bad("VIOLATION"), why)
		return statusViolated
	}
	if why := r.Shortfall(); why != "" {
		return failed{errors.New(why)}
	}
	if r.Interrupted && o.config.For > 0 {
		return statusInterrupted
	}
	return nil
}
