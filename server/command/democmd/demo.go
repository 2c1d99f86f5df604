// Package democmd is the subcommand "demo": a cluster on this computer, with fault injection.
package democmd

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/server/cli"
	"github.com/leasehold-dev/leasehold/server/command/managercmd"
	"github.com/leasehold-dev/leasehold/server/console"
	"github.com/leasehold-dev/leasehold/server/demo"
	"github.com/leasehold-dev/leasehold/server/proc"
)

const demoHelp = `Starts three managers and five servers of a small presence service, each a process
of its own on this computer, and 2,000 users who set and read a status. Then it kills
the leader and the servers, one after the other, with kill -9, and starts them again,
while the users continue. If there is time it also stops a server (SIGSTOP) for longer
than its leases last, and resumes it; and it restarts one as for an upgrade (SIGTERM),
which moves its statuses to the others first. It prints each fault, the results of
requests and the losses that users were notified of; and the addresses of the managers,
for "leasehold top", and of their dashboards, for a browser.

Servers run under "leasehold run", which proves a crash to the managers: other servers have the keys
within milliseconds. With --no-supervisor that takes 1.2 times as long as a lease, or until the
server is back. The report has the time from each kill until all keys have the next owner.

A server keeps its statuses in a leasemap, and users send HTTP requests that leasehttp
routes to the owner of their key: as a service of your own would.

With --rolling-restart no process is killed. Every user sets a status, and then all
servers are restarted, one after the other and repeatedly, while the users continue.
No status may be lost, and no request may fail. Some keys are read every 5 ms (with
many servers less often) to measure for how long a key has no answer while it moves.
At the end the status of every user is checked.

With --outage all managers are killed, once, and started again after that time; no
server is killed. Every user sets a status before that, and users continue meanwhile.
Servers suspend their leases when no manager renews them, keep the statuses, and serve
them again when a manager leads. No status may be lost.

With --store flease the managers keep nothing on disk: they elect a leader among
themselves, and a new leader reads from the servers what they own.

With --tls a PKI is created for the demo: managers, servers and users use mutual TLS 1.3,
and managers enforce an access policy. Every certificate and key is replaced on disk once
while all processes run. All must present their new ones soon after, and no lease may be
lost for it.

Managers do not check mutual exclusion themselves: every server checks the keys of all
users (2,000 of them, if there are more) about every 15 ms, and reports the results and
the checks of each request, with timestamps of the monotonic clock that all processes of
a computer share. An oracle compares the reports.

Requests are due at a steady rate. The user is drawn first; a user who has a request
under way makes the new one later, and its latency counts from when it was due.
Availability is the share that succeeded within 1 s of that. Requests are repeated
until they succeed; those that never do are failures. While a server is dead or
stopped its users wait, so that the availability is the cost of the chosen kills and
leases, and it does not decide the exit status.

On a terminal it runs until Ctrl-C, elsewhere for 30 s; --for sets another time.
No process and no file is left behind; --keep keeps the data and the logs.

Exit status: 0 all went well; 1 two servers owned a key at the same time, an answer
was stale, or a status was lost without notice; 2 the demo failed, or another
expectation was violated, which is printed, such as a loss that a restart or an outage
caused; 130 interrupted before the time that --for set.`

const demoExample = `  leasehold demo
  leasehold demo --for 30s --json
  leasehold demo --no-supervisor
  leasehold demo --tls --for 30s --json
  leasehold demo --store flease
  leasehold demo --outage 60s --json
  leasehold demo --owners 20 --rate 5000 --kill-every 3s --for 5m
  leasehold demo --rolling-restart --for 60s
  leasehold demo --rolling-restart --rounds 1 --owners 10 --keys 1000000 --value-size 200 --json`

// unattended is the duration of a demo without a terminal.
const unattended = 30 * time.Second

type Options struct {
	Config demo.Config
	json   bool

	noSupervisor bool
}

func New() *cobra.Command {
	o := &Options{Config: demo.DefaultConfig()}
	cmd := &cobra.Command{
		Use:     "demo",
		Short:   "Run a cluster on this computer, and inject faults",
		Long:    demoHelp,
		Example: demoExample,
		Args:    cli.NoArguments,
	}
	flags, c := cmd.Flags(), &o.Config
	flags.SortFlags = false
	flags.DurationVar(&c.For, "for", 0, "how long users call (default until Ctrl-C on a terminal, else 30s)")
	flags.BoolVar(&o.json, "json", false, "print only the result, as one JSON object")
	flags.StringVar(&c.Store, "store", c.Store, "store of the managers: disk, or flease for memory only")
	flags.BoolVar(&c.TLS, "tls", false, "use TLS between all processes, with certificates that are renewed meanwhile, and an\naccess policy")
	flags.IntVar(&c.Managers, "managers", c.Managers, "number of managers")
	flags.IntVar(&c.Owners, "owners", c.Owners, "number of servers of the presence service")
	flags.IntVar(&c.Users, "users", c.Users, "number of users; each has at most one request in flight, and queues the others")
	flags.IntVar(&c.Users, "keys", c.Users, "alias of --users: each user has one key")
	flags.IntVar(&c.ValueSize, "value-size", c.ValueSize, "bytes of a status")
	flags.IntVar(&c.Rate, "rate", c.Rate, "requests per second of all users together")
	flags.BoolVar(&c.Rolling, "rolling-restart", false, "restart all servers, one after the other, and kill none")
	flags.IntVar(&c.Rounds, "rounds", 0, "number of restarts of each server (default: as many as fit)")
	flags.DurationVar(&c.Outage, "outage", 0, "kill all managers once for this time, and no server")
	flags.BoolVar(&o.noSupervisor, "no-supervisor", false, "run servers without \"leasehold run\": the leases of a killed server expire")
	flags.DurationVar(&c.Lease, "lease", c.Lease, "duration of leases; without a supervisor users of a killed server wait for 1.2 times as long")
	flags.DurationVar(&c.KillEvery, "kill-every", c.KillEvery, "mean time between two kills of a leader, and between two of a server")
	flags.Uint64Var(&c.Seed, "seed", 0, "seed of the choice and the times of faults (default: random)")
	flags.BoolVar(&c.Keep, "keep", false, "keep data and logs, and print their directory")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		program, err := os.Executable()
		if err != nil {
			return cli.Fail(err)
		}
		c.Program = program
		c.Supervised = c.Supervised && !o.noSupervisor
		if !flags.Changed("seed") {
			c.Seed = uint64(time.Now().UnixNano())
		}
		return o.run(cmd)
	}
	return cmd
}

func (o *Options) run(cmd *cobra.Command) error {
	out, errs := console.New(cmd.OutOrStdout()), console.New(cmd.ErrOrStderr())
	if (!out.Terminal || o.json) && !cmd.Flags().Changed("for") && o.Config.Rounds == 0 && o.Config.Outage == 0 {
		o.Config.For = unattended
	}
	if err := o.Config.Validate(); err != nil {
		return err
	}
	log := io.Writer(errs)
	if o.json && !errs.Terminal {
		log = io.Discard
	}
	r, err := demo.Run(cmd.Context(), o.Config, log)
	if err != nil {
		return cli.Fail(fmt.Errorf("%w%s", err, o.hint(r)))
	}
	if err := cli.PrintAs(cmd, o.json, r, r.Text); err != nil {
		return err
	}
	return o.Judge(errs, &r)
}

func (o *Options) hint(r demo.Report) string {
	if r.Kept != "" {
		return "\nData and logs are in " + r.Kept
	}
	return "\nUse --keep to keep the data and the logs."
}

// Judge converts a report to the exit status, and prints the reason.
func (o *Options) Judge(errs console.Screen, r *demo.Report) error {
	if why := r.Violation(); why != "" {
		errs.Say("leasehold: %s: %s\n", console.Bad("VIOLATION"), why)
		return cli.StatusViolated
	}
	if why := r.Shortfall(); why != "" {
		return cli.Fail(errors.New(why))
	}
	if r.Interrupted && o.Config.For > 0 {
		return cli.StatusInterrupted
	}
	return nil
}

// NewDemoManagerCommand is the manager command for a child of the demo. It exits when its parent
// exits.
func NewDemoManagerCommand() *cobra.Command {
	cmd := managercmd.NewRunCommand()
	cmd.Use, cmd.Short, cmd.Hidden = "demo-manager", "Run a manager of the demo", true
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		go proc.EndWithParent(cmd.InOrStdin())
		return run(cmd, args)
	}
	return cmd
}

// gcPercent is the GC target of a demo server, in percent of the live heap.
const gcPercent = 400

// NewDemoOwnerCommand runs one server of the demo's presence service. Its parent reads its
// standard output.
func NewDemoOwnerCommand() *cobra.Command {
	var (
		name     string
		managers []string
		users    int
		security cli.Security
	)
	cmd := &cobra.Command{
		Use:    "demo-owner",
		Short:  "Run an owner of the demo",
		Hidden: true,
		Args:   cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			go proc.EndWithParent(cmd.InOrStdin())
			// All servers share the processors of one computer. A garbage collection uses all
			// processors: collect a quarter as often, and use one processor each.
			debug.SetGCPercent(gcPercent)
			runtime.GOMAXPROCS(1)
			log := slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil))
			keeper, err := security.OpenServer(log)
			if err != nil {
				return err
			}
			if keeper != nil {
				defer keeper.Close()
			}
			err = demo.RunOwner(cmd.Context(), demo.OwnerConfig{
				Name: leasehold.OwnerID(name), Managers: managers, Users: users, Keeper: keeper,
				Records: cmd.OutOrStdout(), Logger: log,
			})
			return cli.Failure(err)
		},
	}
	security.AddFlags(cmd.Flags(), func(flag string) string { return "--" + flag })
	cmd.Flags().StringVar(&name, "name", "", "name of the owner")
	cmd.Flags().StringSliceVar(&managers, "managers", nil, "addresses of the managers")
	cmd.Flags().IntVar(&users, "users", 0, "number of users")
	return cmd
}
