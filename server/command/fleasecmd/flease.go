// Package fleasecmd is the subcommand "flease": leases without managers.
package fleasecmd

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold/flease"
	"github.com/leasehold-dev/leasehold/internal/runtime/address"
	"github.com/leasehold-dev/leasehold/secret"
	"github.com/leasehold-dev/leasehold/server/cli"
	"github.com/leasehold-dev/leasehold/server/console"
	"github.com/leasehold-dev/leasehold/server/fleasecontrol"
)

const fleaseHelp = `Leases that a group of processes agree upon among themselves, with no manager, no
lock server and no disk. A resource is a name of your choosing; at most one member
holds it at a time, and when that one dies another can have it.

"leasehold flease run" runs a member. Programs in Go are members themselves, with
package flease; these commands serve scripts, and those who want to see it work.`

const fleaseExample = `  leasehold flease run --id 1 --members 1=127.0.0.1:7001,2=127.0.0.1:7002,3=127.0.0.1:7003
  leasehold flease acquire nightly --member 127.0.0.1:7001 -- ./report.sh
  leasehold flease status --member 127.0.0.1:7001`

// New returns the command.
func New() *cobra.Command {
	cmd := cli.Group("flease", "Agree on leases without a manager", fleaseHelp, newRunCommand(), newAcquireCommand(), newStatusCommand())
	cmd.Example = fleaseExample
	return cmd
}

// defaultMember is where the commands look for a member.
const defaultMember = "127.0.0.1:7001"

// parseMembers reads 1=host:port,2=host:port.
func parseMembers(list []string) ([]flease.Member, error) {
	var members []flease.Member
	for _, item := range list {
		number, addr, found := strings.Cut(strings.TrimSpace(item), "=")
		id, err := strconv.ParseUint(number, 10, 32)
		if !found || err != nil || id == 0 {
			return nil, fmt.Errorf("--members %q: want an id from 1 on and an address, such as 1=%s", item, defaultMember)
		}
		if err := cli.CheckAddr(addr); err != nil {
			return nil, fmt.Errorf("--members: %w", err)
		}
		members = append(members, flease.Member{ID: flease.ID(id), Addr: addr})
	}
	slices.SortFunc(members, func(a, b flease.Member) int { return cmp.Compare(a.ID, b.ID) })
	return members, nil
}

func memberOf(members []flease.Member, id uint32) (string, error) {
	for _, m := range members {
		if m.ID == flease.ID(id) {
			return m.Addr, nil
		}
	}
	return "", fmt.Errorf("--id %d: there is no such member in --members, which has %d", id, len(members))
}

// readKey reads the secret that members share, if there is one. It may be any bytes; white
// space at its end is from whoever wrote the file.
func readKey(file string) (secret.Text, error) {
	if file == "" {
		return secret.Text{}, nil
	}
	text, err := cli.ReadPrivate(file)
	if err != nil {
		return secret.Text{}, cli.Fail(fmt.Errorf("--key-file: %w", err))
	}
	key := secret.New(strings.TrimRightFunc(text, unicode.IsSpace))
	if key.Len() == 0 {
		return secret.Text{}, errors.New("--key-file " + file + " is empty: put 32 random bytes into it")
	}
	return key, nil
}

// onlyLoopback refuses an address that others can reach: the control API does not
// authenticate its clients.
func onlyLoopback(flag, addr string) error {
	if err := cli.CheckAddr(addr); err != nil {
		return fmt.Errorf("--%s: %w", flag, err)
	}
	if !address.Loopback(addr) {
		return fmt.Errorf("--%s %s: want an address on the loopback, such as %s: clients are not authenticated", flag, addr, defaultMember)
	}
	return nil
}

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
