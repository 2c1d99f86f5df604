package fleasecmd

import (
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"time"

	"github.com/leasehold-dev/leasehold/server/cli"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold/flease"
	"github.com/leasehold-dev/leasehold/server/console"
	"github.com/leasehold-dev/leasehold/server/fleasecontrol"
)

const fleaseAcquireHelp = `Acquires the lease of a resource through a running member, prints its fence, and
holds it until it is interrupted. With a command behind --, it runs that command
while it holds the lease, and releases it when the command ends, like flock(1).

The command finds the fence in FLEASE_FENCE, and should send it along with
whatever it changes elsewhere: fences rise from holder to holder, so that a late
change can be refused. If it has to wait for longer than a second, it says what for.
The command has a process group of its own, in the background of a
terminal. If the lease is lost, the whole group is killed, and so it is when this
command is killed itself, whose lease is then free within moments. An interrupt is
passed on to the group as SIGTERM. What leaves the group, such as a daemon, or
outlives the command, is on its own.

Exit status: that of the command; 0 it was held until interrupted; 2 it could not be
had, or was lost.`

type fleaseAcquire struct {
	member string
	wait   time.Duration
	try    bool
	json   bool
}

func newAcquireCommand() *cobra.Command {
	o := &fleaseAcquire{}
	cmd := &cobra.Command{
		Use:   "acquire RESOURCE [-- COMMAND ARGUMENTS...]",
		Short: "Hold a lease, or run a command while holding it",
		Long:  fleaseAcquireHelp,
		Example: `  leasehold flease acquire nightly --member 127.0.0.1:7001
  leasehold flease acquire nightly --wait 1m -- ./report.sh`,
		Args: func(cmd *cobra.Command, args []string) error {
			if dash := cmd.ArgsLenAtDash(); len(args) == 0 || dash >= 0 && dash != 1 || dash < 0 && len(args) > 1 {
				return errors.New("want the name of one resource, and a command behind -- if there is one")
			}
			if n := len(args[0]); n == 0 || n > flease.MaxResource {
				return fmt.Errorf("the name of a resource has 1 to %d bytes, this one %d", flease.MaxResource, n)
			}
			return nil
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&o.member, "member", defaultMember, "the control `address` of a member")
	flags.DurationVar(&o.wait, "wait", 0, "how long to wait for it (default for ever)")
	flags.BoolVar(&o.try, "try", false, "do not wait if another has it")
	flags.BoolVar(&o.json, "json", false, "print what is known of the lease as one JSON object on a line")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := onlyLoopback("member", o.member); err != nil {
			return err
		}
		err := o.run(cmd, args[0], args[1:])
		var exit *exec.ExitError
		switch {
		case err == nil || errors.Is(err, cli.StatusInterrupted):
			return err
		case errors.As(err, &exit) && exit.ExitCode() > 0:
			return cli.Status(exit.ExitCode())
		}
		return cli.Fail(err)
	}
	return cmd
}

// run acquires the lease, and holds it until the command ends or it is interrupted.
func (o *fleaseAcquire) run(cmd *cobra.Command, resource string, command []string) error {
	ctx, errs := cmd.Context(), cmd.ErrOrStderr()
	request := fleasecontrol.Request{Resource: resource, Try: o.try, WaitMillis: int64((o.wait + time.Millisecond - 1) / time.Millisecond)}
	lease, err := fleasecontrol.Client(o.member).Acquire(ctx, request, func(why string) {
		_, _ = fmt.Fprintf(errs, "waiting for %s: %s\n", console.Shown(resource), console.Shown(why)) // good to know
	})
	if err != nil {
		if ctx.Err() != nil {
			return cli.StatusInterrupted
		}
		return err
	}
	defer lease.Release()
	text := fmt.Sprintf("%s is held by member %d, fence %d\n", console.Shown(resource), lease.Member, lease.Fence)
	if o.json {
		line, err := json.Marshal(lease.Answer)
		if err != nil {
			return err
		}
		text = string(line) + "\n"
	}
	if err := cli.Write(cmd.OutOrStdout(), text); err != nil {
		return err
	}
	if len(command) == 0 {
		return lease.Hold(ctx)
	}
	return lease.Run(ctx, command, fleasecontrol.Stdio{In: cmd.InOrStdin(), Out: cmd.OutOrStdout(), Errs: errs})
}
