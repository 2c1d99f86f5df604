package namespacecmd

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/admin"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	"github.com/leasehold-dev/leasehold/partition"
	"github.com/leasehold-dev/leasehold/server/cli"
)

// namespaceOptions is what flags say about a namespace's configuration. What
// is valid is for the manager to decide; flags only say what is asked for.
type namespaceOptions struct {
	flags        *pflag.FlagSet
	preset       string
	lease        time.Duration
	renew        time.Duration
	drift        float64
	policy       string
	virtualNodes uint32
	static       string
	maxOwners    uint32
	churn        float64
	rebalance    time.Duration
	moves        uint32
	moveTimeout  time.Duration
}

func addNamespaceFlags(cmd *cobra.Command) *namespaceOptions {
	o := &namespaceOptions{flags: pflag.NewFlagSet("configuration", pflag.ContinueOnError)}
	f := o.flags
	f.StringVar(&o.preset, "preset", "", "start from a `set` of times: paper (60s, 15s, 65/60: Centrifuge's) or default")
	f.DurationVar(&o.lease, "lease", 0, "how long a lease lasts (default 10s)")
	f.DurationVar(&o.renew, "renew", 0, "how often owners renew (default a quarter of the lease)")
	f.Float64Var(&o.drift, "drift", 0, "by how much the rates of two clocks may differ (default 1.2)")
	f.StringVar(&o.policy, "policy", "", fmt.Sprintf("how keys are divided: %s (default %s)", strings.Join(partition.Names(), ", "), partition.DefaultName))
	f.Uint32Var(&o.virtualNodes, "virtual-nodes", 0, "for consistent and adaptive: points per owner of weight 1 (default 64)")
	f.StringVar(&o.static, "static", "", "for static: a `file` with lines START OWNER, START a key of 16 hexadecimal digits,\nsorted, from 0000000000000000 on; without an owner nobody gets the keys")
	f.Uint32Var(&o.maxOwners, "max-owners", 0, "how many owners may be connected (default 4096)")
	f.Float64Var(&o.churn, "churn", 0, "the `share` of the keys that may move in a minute for the sake of balance, up to 1 (default 0.09)")
	f.DurationVar(&o.rebalance, "rebalance", 0, "how often the policy looks at the loads (default 10s)")
	f.Uint32Var(&o.moves, "moves", 0, "how many ranges an owner sends, and takes in, at a time, up to 64 (default 4)")
	f.DurationVar(&o.moveTimeout, "move-timeout", 0, "how long a move may make no progress (default 1m)")
	cmd.Flags().AddFlagSet(f)
	cli.CompleteWith(cmd, "preset", cli.OneOf("paper", "default"))
	cli.CompleteWith(cmd, "policy", cli.OneOf(partition.Names()...))
	return o
}

func (o *namespaceOptions) something() error {
	given := false
	o.flags.VisitAll(func(f *pflag.Flag) { given = given || f.Changed })
	if !given {
		return errors.New("there is nothing to change: give at least one of the flags that configure a namespace")
	}
	return nil
}

// apply changes a configuration to what the flags say. A lease without a renewal time has the default one.
func (o *namespaceOptions) apply(n *admin.Namespace) error {
	if err := o.positive(); err != nil {
		return err
	}
	if err := o.applyPreset(n); err != nil {
		return err
	}
	for _, f := range []struct {
		flag string
		set  func()
	}{
		{"lease", func() { n.Lease, n.Renew = admin.Seconds(o.lease), 0 }},
		{"renew", func() { n.Renew = admin.Seconds(o.renew) }},
		{"drift", func() { n.Drift = o.drift }},
		{"max-owners", func() { n.MaxOwners = o.maxOwners }},
		{"churn", func() { n.Churn = o.churn }},
		{"rebalance", func() { n.Rebalance = admin.Seconds(o.rebalance) }},
		{"moves", func() { n.Moves = o.moves }},
		{"move-timeout", func() { n.MoveTimeout = admin.Seconds(o.moveTimeout) }},
	} {
		if o.flags.Changed(f.flag) {
			f.set()
		}
	}
	return o.applyPolicy(n)
}

// positive refuses zeros, which would be taken for what is usual.
func (o *namespaceOptions) positive() error {
	for _, f := range []struct {
		flag  string
		value float64
	}{
		{"lease", float64(o.lease)},
		{"renew", float64(o.renew)},
		{"drift", o.drift},
		{"virtual-nodes", float64(o.virtualNodes)},
		{"churn", o.churn},
		{"rebalance", float64(o.rebalance)},
		{"moves", float64(o.moves)},
		{"move-timeout", float64(o.moveTimeout)},
	} {
		if o.flags.Changed(f.flag) && !(f.value > 0) {
			return fmt.Errorf("--%s: want more than 0; leave it out for what is usual", f.flag)
		}
	}
	return nil
}

func (o *namespaceOptions) applyPreset(n *admin.Namespace) error {
	var t protocol.Timing
	switch o.preset {
	case "":
		return nil
	case "default":
		t = protocol.DefaultTiming()
	case "paper":
		t = protocol.PaperTiming()
	default:
		return fmt.Errorf("--preset %q: want paper or default", o.preset)
	}
	n.Lease, n.Renew, n.Drift = admin.Seconds(t.Lease), admin.Seconds(t.Renew), float64(t.Drift)
	return nil
}

func (o *namespaceOptions) applyPolicy(n *admin.Namespace) error {
	static := partition.Static{}.Name()
	switch {
	case o.static != "" && o.policy != "" && o.policy != static:
		return fmt.Errorf("--static is for the policy static, and --policy says %s", o.policy)
	case o.policy == static && o.static == "":
		return errors.New("--policy static needs --static FILE, which says who gets which keys")
	case o.static != "":
		slots, err := readSlots(o.static)
		if err != nil {
			return err
		}
		n.Policy, n.Static, n.VirtualNodes = static, slots, 0
	case o.policy != "" && o.policy != n.Policy:
		// What belongs to the policy before it would be refused with this one.
		n.Policy, n.Static, n.VirtualNodes = o.policy, nil, 0
	}
	if o.flags.Changed("virtual-nodes") {
		n.VirtualNodes = o.virtualNodes
	}
	return nil
}

// maxSlotsFile bounds a file of slots: as many as there may be, each with the
// longest of names.
const maxSlotsFile = wire.MaxStaticSlots * (16 + 1 + leasehold.MaxOwnerIDLen + 2)

func readSlots(path string) ([]admin.Slot, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, cli.Fail(err)
	}
	defer func() { _ = file.Close() }() // it was only read
	var slots []admin.Slot
	lines := bufio.NewScanner(io.LimitReader(file, maxSlotsFile))
	for number := 1; lines.Scan(); number++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		start, owner, _ := strings.Cut(line, " ")
		key, err := leasehold.ParseKey(start)
		if err != nil {
			return nil, fmt.Errorf("--static %s: line %d: %w", path, number, err)
		}
		slots = append(slots, admin.Slot{Start: admin.Point(key), Owner: strings.TrimSpace(owner)})
	}
	if err := lines.Err(); err != nil {
		return nil, cli.Fail(fmt.Errorf("--static %s: %w", path, err))
	}
	if len(slots) == 0 {
		return nil, fmt.Errorf("--static %s: there is no line START OWNER in it", path)
	}
	return slots, nil
}
