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

const fleaseRunHelp = `Runs a member of a group. All members are started with the same --members, --lease,
--epsilon, --drift and key, and each with an --id of its own.

A member takes part when whatever it may have promised before it was started is
over: after the lease times --drift, or the lease and twice --epsilon if that is
longer. A majority of the members must be there. When a holder dies, its leases are
free when they have run out on all clocks: within the lease and --epsilon, times
--drift.

A second process with an --id that is in use is refused, with exit status 2, as
soon as the others have heard both. Before you move a member to another address,
stop it.

On the loopback no key is needed. Elsewhere --key-file names a file with a secret
that all members share:  head -c 32 /dev/urandom | base64 > key

"leasehold flease acquire" and "status" ask a member through --control, an address
on the loopback: by default the member's port, on which it otherwise has datagrams
only. Every user of the computer can reach it.

It stops on Ctrl-C or SIGTERM, and releases what it holds. By itself it wants
nothing: leases are acquired through it.`

type fleaseRun struct {
	id      uint32
	members []string
	keyFile string
	control string
	tcp     bool
	config  flease.Config
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
	flags, c := cmd.Flags(), &o.config
	flags.SortFlags = false
	flags.Uint32Var(&o.id, "id", 0, "which of the members this is")
	flags.StringSliceVar(&o.members, "members", nil, "all members, `id=host:port`, with commas between")
	flags.DurationVar(&c.Lease, "lease", flease.DefaultLease, "how long a lease lasts if it is not renewed")
	flags.DurationVar(&c.Epsilon, "epsilon", flease.DefaultEpsilon, "by how much the wall clocks of two members may differ")
	flags.Float64Var(&c.Drift, "drift", flease.DefaultDrift, "how much faster one monotonic clock may run than another")
	flags.StringVar(&o.keyFile, "key-file", "", "a `file` with the secret that all members share")
	flags.StringVar(&c.Listen, "listen", "", "where to listen, `host:port` (default this member's address)")
	flags.BoolVar(&o.tcp, "tcp", false, "connections instead of datagrams")
	flags.StringVar(&o.control, "control", "", "where to answer the other commands, `host:port` on the loopback (default this member's port; with --tcp nowhere)")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := o.complete(); err != nil {
			return err
		}
		c.Logger = slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil))
		return cli.Failure(o.run(cmd.Context(), console.New(cmd.OutOrStdout())))
	}
	return cmd
}

func (o *fleaseRun) complete() error {
	switch c := &o.config; {
	case len(o.members) == 0:
		return errors.New("--members is missing: say who all members are, such as 1=" + defaultMember + ",2=127.0.0.1:7002,3=127.0.0.1:7003")
	case o.id == 0:
		return errors.New("--id is missing: say which of the members this is, from 1 on")
	case c.Lease <= 0 || c.Epsilon <= 0 || c.Drift <= 0: // package flease would take 0 for its defaults
		return fmt.Errorf("--lease %v, --epsilon %v, --drift %v: want more than 0; leave out what is to be the default", c.Lease, c.Epsilon, c.Drift)
	}
	var err error
	if o.config.Members, err = parseMembers(o.members); err != nil {
		return err
	}
	addr, err := memberOf(o.config.Members, o.id)
	if err != nil {
		return err
	}
	o.config.Self = flease.ID(o.id)
	if o.config.Key, err = readKey(o.keyFile); err != nil {
		return err
	}
	if o.tcp {
		o.config.Transport = flease.TCP{}
	} else if o.control == "" {
		_, port, _ := net.SplitHostPort(addr)
		o.control = net.JoinHostPort("127.0.0.1", port)
	}
	if o.control == "" {
		return nil
	}
	return onlyLoopback("control", o.control)
}

func (o *fleaseRun) run(ctx context.Context, out console.Screen) error {
	control, err := daemon.ListenOn("control", o.control)
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("%w. Or does member %d run already? It must not run twice", err, o.id)
	}
	if err != nil {
		return err
	}
	return fleasecontrol.RunMember(ctx, o.config, control, fleasecontrol.Events{
		Started: func(node *flease.Node) error { return cli.Write(out, o.greeting(node, daemon.AddrOf(control))) },
		Ready:   func(s flease.Status) { out.Say("%s", readiness(s)) },
	})
}

// readiness says that a member takes part, and whether enough others do.
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
	return fmt.Sprintf("ready, but it has heard %d of the %d others: no lease is to be had without a majority. Do they run, with the same key?\n", heard, all-1)
}

func (o *fleaseRun) greeting(node *flease.Node, control string) string {
	wait := max(time.Duration(float64(o.config.Lease)*o.config.Drift), o.config.Lease+2*o.config.Epsilon)
	text := console.Facts([]console.Entry{
		{"member", console.Heading(fmt.Sprintf("%d of %d", o.id, len(o.config.Members)))},
		{"listens", node.Addr()},
		{"control", cmp.Or(control, "nowhere: no command can ask it; add --control 127.0.0.1:PORT")},
		{"takes part", "in " + console.Brief(wait)},
	})
	if control != "" {
		text += "\nTo try next, in another terminal:\n\n  leasehold flease acquire nightly --member " + control + "\n"
	}
	return text
}
