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

const fleaseHelp = `Leases that a group of processes agrees on without a manager, a lock server or a
disk. A resource is a name of your choice; at most one member holds its lease at a time.
If the holder fails, another member can acquire the lease after it expires.

"leasehold flease run" runs a member. Go programs can be members themselves, with
package flease; these commands are for scripts and for trials.`

const fleaseExample = `  leasehold flease run --id 1 --members 1=127.0.0.1:7001,2=127.0.0.1:7002,3=127.0.0.1:7003
  leasehold flease acquire nightly --member 127.0.0.1:7001 -- ./report.sh
  leasehold flease status --member 127.0.0.1:7001`

// New returns the command.
func New() *cobra.Command {
	cmd := cli.Group("flease", "Agree on leases without a manager", fleaseHelp, newRunCommand(), newAcquireCommand(), newStatusCommand())
	cmd.Example = fleaseExample
	return cmd
}

// defaultMember is the default control address.
const defaultMember = "127.0.0.1:7001"

// parseMembers parses 1=host:port,2=host:port.
func parseMembers(origin string, list []string) ([]flease.Member, error) {
	var members []flease.Member
	for _, item := range list {
		number, addr, found := strings.Cut(strings.TrimSpace(item), "=")
		id, err := strconv.ParseUint(number, 10, 32)
		if !found || err != nil || id == 0 {
			return nil, fmt.Errorf("%s %q: want a positive id and an address, such as 1=%s", origin, item, defaultMember)
		}
		if err := cli.CheckAddr(addr); err != nil {
			return nil, fmt.Errorf("%s: %w", origin, err)
		}
		members = append(members, flease.Member{ID: flease.ID(id), Addr: addr})
	}
	slices.SortFunc(members, func(a, b flease.Member) int { return cmp.Compare(a.ID, b.ID) })
	return members, nil
}

func memberOf(origin string, members []flease.Member, id uint32) (string, error) {
	for _, m := range members {
		if m.ID == flease.ID(id) {
			return m.Addr, nil
		}
	}
	return "", fmt.Errorf("%s %d: --members has no such member among its %d", origin, id, len(members))
}

// readKey reads the secret that members share, if there is one. Any bytes are valid; trailing
// white space is removed.
func readKey(origin, file string) (secret.Text, error) {
	if file == "" {
		return secret.Text{}, nil
	}
	text, err := cli.ReadPrivate(file)
	if err != nil {
		return secret.Text{}, cli.Fail(fmt.Errorf("%s: %w", origin, err))
	}
	key := secret.New(strings.TrimRightFunc(text, unicode.IsSpace))
	if key.Len() == 0 {
		return secret.Text{}, errors.New(origin + " " + file + " is empty: put 32 random bytes into it")
	}
	return key, nil
}

// onlyLoopback rejects an address that other computers can reach: the control API does not
// authenticate its clients.
func onlyLoopback(origin, addr string) error {
	if err := cli.CheckAddr(addr); err != nil {
		return fmt.Errorf("%s: %w", origin, err)
	}
	if !address.Loopback(addr) {
		return fmt.Errorf("%s %s: want a loopback address, such as %s: clients are not authenticated", origin, addr, defaultMember)
	}
	return nil
}

const fleaseAcquireHelp = `Acquires the lease of a resource through a running member, prints its fencing token,
and holds the lease until it is interrupted. With a command after --, it runs the command
while it holds the lease, and releases the lease when the command ends, like flock(1).

The command receives the fencing token in FLEASE_FENCE, and should send it with every
change to other systems: tokens increase from holder to holder, so that a stale change
can be rejected. After a second of waiting, the reason is printed.

The command runs in its own process group, in the background of the terminal. If the
lease is lost, or if leasehold is killed, the whole group is killed; in the second case
the lease is released within moments. An interrupt is forwarded to the group as SIGTERM.
Processes that leave the group, such as daemons, or outlive the command, are not stopped.

Exit status: that of the command; 0 held until interrupted; 2 not acquired, or lost.`

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
				return errors.New("want one resource name, optionally followed by -- and a command")
			}
			if n := len(args[0]); n == 0 || n > flease.MaxResource {
				return fmt.Errorf("resource name of %[2]d bytes: want 1 to %[1]d", flease.MaxResource, n)
			}
			return nil
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&o.member, "member", defaultMember, "control `address` of a member")
	flags.DurationVar(&o.wait, "wait", 0, "timeout of the acquisition (default none)")
	flags.BoolVar(&o.try, "try", false, "fail at once if another member holds the lease")
	flags.BoolVar(&o.json, "json", false, "print the lease as one line of JSON")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := onlyLoopback("--member", o.member); err != nil {
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
		_, _ = fmt.Fprintf(errs, "waiting for %s: %s\n", console.Shown(resource), console.Shown(why)) // best effort
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
