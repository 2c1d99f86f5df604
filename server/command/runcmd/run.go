// Package runcmd is the subcommand "run": a supervisor for a server.
package runcmd

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os/exec"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/leasehold-dev/leasehold/server/cli"
	"github.com/leasehold-dev/leasehold/server/settings"
	"github.com/leasehold-dev/leasehold/server/supervisor"
)

const runHelp = `Runs a server as a child, and reports its end to the managers: after a crash, a panic or
an out-of-memory kill its keys have new owners within milliseconds, instead of after the
lease time. The owner library registers with the supervisor by itself.

Use it as the entry point of a container or a systemd unit. The child inherits standard
input and output, all open files and the environment. Signals are forwarded, orphans are reaped, and the
exit status is that of the child: 128 + signal, or the same signal, if one ended it. The
status is 127 if the command does not exist, and 126 if it cannot be started.

The server must be the direct child: "exec" it in a shell script, and run it in the
foreground. A server that cannot be supervised continues as without this command, and
logs a warning.

With memory.oom.group=1 of cgroup v2 (Kubernetes since 1.28, or OOMPolicy=kill of systemd)
an out-of-memory kill ends the supervisor, too: its leases expire. To avoid it, set
singleProcessOOMKill of the kubelet, or OOMPolicy=continue.

If the supervisor itself is killed, the server continues, and after a crash its leases
expire as usual. If no manager acknowledges the end within --notice-timeout, the supervisor
exits, so that the server restarts soon: its leases expire as usual. A signal
shortens that wait to 250 ms, and a second one ends it.`

const runExample = `  leasehold run -- ./presence --managers m1:7400,m2:7400,m3:7400
  leasehold run --notice-timeout 2s -- ./presence`

// DefaultNoticeTimeout exceeds a failover of the managers, and is shorter than a usual lease.
const DefaultNoticeTimeout = 5 * time.Second

type runSettings struct {
	flags   *pflag.FlagSet
	file    string
	log     cli.LogSettings
	timeout time.Duration
}

func New() *cobra.Command {
	r := &runSettings{flags: pflag.NewFlagSet("run", pflag.ContinueOnError)}
	cmd := &cobra.Command{
		Use:     "run [flags] -- COMMAND [ARGUMENT...]",
		Short:   "Run a server whose crash ends its leases at once",
		Long:    runHelp,
		Example: runExample,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("want the command of a server: leasehold run -- COMMAND [ARGUMENT...]")
			}
			return nil
		},
	}
	r.flags.DurationVar(&r.timeout, "notice-timeout", DefaultNoticeTimeout, "maximum delay of the exit while no manager acknowledges the end of the child")
	r.log.AddFlags(r.flags)
	cli.AddSettings(cmd, r.flags, &r.file)
	cmd.Flags().SetInterspersed(false) // flags after the command are its own
	r.log.Complete(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := cli.FillWithChild(cmd, r.flags, r.file); err != nil {
			return err
		}
		if err := r.validate(); err != nil {
			return err
		}
		return r.run(cmd, args, r.log.Logger(cmd.ErrOrStderr()))
	}
	return cmd
}

func (r *runSettings) origin(flag string) string { return settings.Origin(r.flags.Lookup(flag)) }

func (r *runSettings) validate() error {
	if r.timeout <= 0 {
		return fmt.Errorf("%s %v: want a duration above 0", r.origin("notice-timeout"), r.timeout)
	}
	return r.log.Validate(r.origin)
}

func (r *runSettings) run(cmd *cobra.Command, command []string, log *slog.Logger) error {
	exit, err := supervisor.Run(cmd.Context(), supervisor.Config{
		Command: command, Report: supervisor.Report, NoticeTimeout: r.timeout, Logger: log,
	})
	if err != nil {
		return startError(cmd, err)
	}
	exit.Die()
	return statusOf(exit)
}

func statusOf(e supervisor.Exit) error {
	if e.Status() == 0 {
		return nil
	}
	return cli.Status(e.Status())
}

// Exit statuses of a command that was not started, as of shells.
const (
	statusCannotStart cli.Status = 126
	statusNotFound    cli.Status = 127
)

func startError(cmd *cobra.Command, err error) error {
	status := statusCannotStart
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		status = statusNotFound
	}
	cmd.PrintErrf("%s: %v\n", cmd.CommandPath(), err)
	return status
}
