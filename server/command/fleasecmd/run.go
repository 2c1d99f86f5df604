package fleasecmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold/flease"
	"github.com/leasehold-dev/leasehold/server/cli"
	"github.com/leasehold-dev/leasehold/server/console"
	"github.com/leasehold-dev/leasehold/server/daemon"
	"github.com/leasehold-dev/leasehold/server/fleasecontrol"
)

const fleaseRunHelp = `Runs a member of a group. All members have the same --members, --lease, --epsilon,
--drift and key, and each has a different --id.

A member starts to vote when every promise from before its start has expired: after the
lease times --drift, or the lease and twice --epsilon if that is longer. A majority of the
members must run. If a holder fails, its leases expire within the lease and --epsilon,
times --drift.

A second process with the same --id is rejected, with exit status 2, as soon as the other
members have received messages of both. Stop a member before you move it to another
address.

On the loopback no key is required. Elsewhere --key-file names a file with a secret that
all members share:  head -c 32 /dev/urandom | base64 > key

"leasehold flease acquire" and "status" connect to --control, a loopback address: by
default TCP on the member's port, which otherwise has only datagrams. Every user of the
computer can connect to it.

It stops on SIGINT (Ctrl-C) or SIGTERM, and releases its leases. It acquires leases only
on request.

Every flag is also an environment variable (--key-file is LEASEHOLD_KEY_FILE) and a key of
the YAML file in --config or LEASEHOLD_CONFIG. Note that other commands have a setting
--listen, too.`

type fleaseRun struct {
	daemon.Settings

	id      uint32
	members []string
	keyFile string
	control string
	tcp     bool
	config  flease.Config

	addr       string // of this member
	controlled string // the control address; empty for none
}

func newRunCommand() *cobra.Command {
	o := &fleaseRun{}
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Run a member",
		Long:  fleaseRunHelp,
		Example: `  leasehold flease run --id 1 --members 1=127.0.0.1:7001,2=127.0.0.1:7002,3=127.0.0.1:7003
  leasehold flease run --id 2 --members 1=10.0.0.1:7001,2=10.0.0.2:7001,3=10.0.0.3:7001 --key-file key`,
		Args: cli.NoArguments,
	}
	o.addFlags(cmd)
	o.CanPrint(cmd, o.complete, o.run)
	return cmd
}

// addFlags adds the flags in the order of the help.
func (o *fleaseRun) addFlags(cmd *cobra.Command) {
	f, c := o.Begin(cmd), &o.config
	f.Uint32Var(&o.id, "id", 0, "id of this member")
	f.StringSliceVar(&o.members, "members", nil, "all members, comma-separated `id=host:port`")
	f.DurationVar(&c.Lease, "lease", flease.DefaultLease, "duration of a lease without renewal")
	f.DurationVar(&c.Epsilon, "epsilon", flease.DefaultEpsilon, "maximum difference of the wall clocks of two members")
	f.Float64Var(&c.Drift, "drift", flease.DefaultDrift, "maximum ratio of the rates of two monotonic clocks")
	f.StringVar(&o.keyFile, "key-file", "", "`file` with the secret that all members share")
	f.StringVar(&c.Listen, "listen", "", "listen address, `host:port` (default this member's address)")
	f.BoolVar(&o.tcp, "tcp", false, "use TCP instead of datagrams")
	f.StringVar(&o.control, "control", "", "control address, `host:port` on the loopback (default this member's port; with --tcp none)")
	o.Finish(cmd)
}

func (o *fleaseRun) complete() error {
	return o.Validate(o.validateMembers, o.validateTransport)
}

func (o *fleaseRun) validateMembers() error {
	switch c := &o.config; {
	case len(o.members) == 0:
		return errors.New("--members is missing: list all members, such as 1=" + defaultMember + ",2=127.0.0.1:7002,3=127.0.0.1:7003")
	case o.id == 0:
		return errors.New("--id is missing: set the id of this member, which is in --members")
	case c.Lease <= 0 || c.Epsilon <= 0 || c.Drift <= 0: // package flease replaces 0 by its defaults
		return fmt.Errorf("--lease %v, --epsilon %v, --drift %v: want more than 0; omit a flag for its default", c.Lease, c.Epsilon, c.Drift)
	}
	var err error
	if o.config.Members, err = parseMembers(o.Origin("members"), o.members); err != nil {
		return err
	}
	o.config.Self = flease.ID(o.id)
	o.addr, err = memberOf(o.Origin("id"), o.config.Members, o.id)
	return err
}

func (o *fleaseRun) validateTransport() (err error) {
	if o.config.Key, err = readKey(o.Origin("key-file"), o.keyFile); err != nil {
		return err
	}
	o.controlled = o.control
	if o.tcp {
		o.config.Transport = flease.TCP{}
	} else if o.control == "" {
		_, port, _ := net.SplitHostPort(o.addr)
		o.controlled = net.JoinHostPort("127.0.0.1", port)
	}
	if o.controlled == "" {
		return nil
	}
	return onlyLoopback(o.Origin("control"), o.controlled)
}

func (o *fleaseRun) run(ctx context.Context, out console.Screen, log *slog.Logger) error {
	stopShared, err := o.Start(ctx, "leasehold-flease", log)
	if err != nil {
		return err
	}
	defer stopShared()
	o.config.Logger = log
	control, err := daemon.ListenOn("control", o.controlled)
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("control address %s is already in use, by another program or because member %d runs already\nA member must not run twice. If it is another program, choose another address with --control.", o.controlled, o.id)
	}
	if err != nil {
		return err
	}
	return fleasecontrol.RunMember(ctx, o.config, control, fleasecontrol.Events{
		Started: func(node *flease.Node) error { return cli.Write(out, o.greeting(node, daemon.AddrOf(control))) },
		Ready:   func(s flease.Status) { out.Say("%s", readiness(s)) },
	})
}

// readiness states that a member votes, and whether it has a majority.
func readiness(s flease.Status) string {
	heard := 0
	for _, m := range s.Members {
		if !m.Heard.IsZero() {
			heard++
		}
	}
	all := len(s.Members) + 1
	if 2*(heard+1) > all {
		return "ready\n"
	}
	return fmt.Sprintf("ready, but only %d of %s respond, and a lease requires a majority: check that they run and have the same key\n", heard, console.Counted(all-1, "other member"))
}

func (o *fleaseRun) greeting(node *flease.Node, control string) string {
	wait := max(time.Duration(float64(o.config.Lease)*o.config.Drift), o.config.Lease+2*o.config.Epsilon)
	text := console.Facts([]console.Entry{
		{"member", console.Heading(fmt.Sprintf("%d of %d", o.id, len(o.config.Members)))},
		{"listens", node.Addr()},
		{"control", cmp.Or(control, "none: add --control 127.0.0.1:PORT for the other commands")},
		{"votes", "in " + console.Brief(wait)},
	})
	if control != "" {
		text += "\nTo try next, in another terminal:\n\n  leasehold flease acquire nightly --member " + control + "\n"
	}
	return text
}
