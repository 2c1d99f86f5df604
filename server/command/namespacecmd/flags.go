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
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	"github.com/leasehold-dev/leasehold/partition"
	"github.com/leasehold-dev/leasehold/server/cli"
)

// namespaceOptions holds the flags of a namespace's configuration. The manager validates
// the values.
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
	minLoad      float64
	loadUnit     string
}

func addNamespaceFlags(cmd *cobra.Command) *namespaceOptions {
	o := &namespaceOptions{flags: pflag.NewFlagSet("configuration", pflag.ContinueOnError)}
	f := o.flags
	f.StringVar(&o.preset, "preset", "", "`name` of a set of --lease, --renew and --drift; flags override its times:\n"+presetsHelp())
	f.DurationVar(&o.lease, "lease", 0, "lease duration (default 10s)")
	f.DurationVar(&o.renew, "renew", 0, "renewal interval (default a quarter of the lease)")
	f.Float64Var(&o.drift, "drift", 0, "maximum ratio of the rates of two clocks (default 1.2)")
	f.StringVar(&o.policy, "policy", "", fmt.Sprintf("assignment policy: %s (default %s)", strings.Join(partition.Names(), ", "), partition.DefaultName))
	f.Uint32Var(&o.virtualNodes, "virtual-nodes", 0, "for consistent and adaptive: points per owner of weight 1 (default 64)")
	f.StringVar(&o.static, "static", "", "for static: `file` with lines START OWNER, where START is a key of 16 hexadecimal digits,\nsorted, from 0000000000000000 on; without OWNER the keys stay vacant")
	f.Uint32Var(&o.maxOwners, "max-owners", 0, "maximum number of connected owners (default 4096)")
	f.Float64Var(&o.churn, "churn", 0, "maximum `share` of the keys that balancing may move per minute, up to 1 (default 0.09)")
	f.DurationVar(&o.rebalance, "rebalance", 0, "interval at which the policy evaluates the loads (default 10s)")
	f.Uint32Var(&o.moves, "moves", 0, "maximum number of concurrent transfers from and to an owner, up to 64 (default 4)")
	f.DurationVar(&o.moveTimeout, "move-timeout", 0, "timeout of a transfer without progress (default 1m)")
	f.Float64Var(&o.minLoad, "min-load", 0, "mean load per second and owner from which on loads are balanced (default 50)")
	f.StringVar(&o.loadUnit, "load-unit", "", "`name` of the unit of loads, for display, such as \"CPU seconds\" if servers report costs (default requests)")
	cmd.Flags().AddFlagSet(f)
	cli.CompleteWith(cmd, "preset", cli.OneOf(admin.PresetNames()...))
	cli.CompleteWith(cmd, "policy", cli.OneOf(partition.Names()...))
	return o
}

// presetsHelp returns a line for each preset.
func presetsHelp() string {
	var lines []string
	for _, p := range admin.Presets() {
		lines = append(lines, fmt.Sprintf("%s (%s, %s, %.3g): %s", p.Name, cli.Seconds(p.Lease), cli.Seconds(p.Renew), p.Drift, p.Summary))
	}
	return strings.Join(lines, "\n")
}

func (o *namespaceOptions) requireChange() error {
	given := false
	o.flags.VisitAll(func(f *pflag.Flag) { given = given || f.Changed })
	if !given {
		return errors.New("no change requested: pass at least one flag of the configuration")
	}
	return nil
}

// apply applies the flags to a configuration. A new lease duration resets the renewal interval to its default.
func (o *namespaceOptions) apply(n *admin.Namespace) error {
	if err := o.positive(); err != nil {
		return err
	}
	if o.flags.Changed("preset") {
		if err := n.ApplyPreset(o.preset); err != nil {
			return fmt.Errorf("--%w", err)
		}
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
		{"min-load", func() { n.MinLoad = o.minLoad }},
		{"load-unit", func() { n.LoadUnit = o.loadUnit }},
	} {
		if o.flags.Changed(f.flag) {
			f.set()
		}
	}
	return o.applyPolicy(n)
}

// positive rejects zeros, which the manager would replace by defaults.
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
		{"min-load", o.minLoad},
	} {
		if o.flags.Changed(f.flag) && !(f.value > 0) {
			return fmt.Errorf("--%s: want more than 0; omit the flag for the default", f.flag)
		}
	}
	return nil
}

func (o *namespaceOptions) applyPolicy(n *admin.Namespace) error {
	static := partition.Static{}.Name()
	switch {
	case o.static != "" && o.policy != "" && o.policy != static:
		return fmt.Errorf("--static requires the policy static, and --policy is %s", o.policy)
	case o.policy == static && o.static == "":
		return errors.New("--policy static requires --static FILE, which assigns keys to owners")
	case o.static != "":
		slots, err := readSlots(o.static)
		if err != nil {
			return err
		}
		n.Policy, n.Static, n.VirtualNodes = static, slots, 0
	case o.policy != "" && o.policy != n.Policy:
		// Options of the previous policy are invalid for the new one.
		n.Policy, n.Static, n.VirtualNodes = o.policy, nil, 0
	}
	if o.flags.Changed("virtual-nodes") {
		n.VirtualNodes = o.virtualNodes
	}
	return nil
}

// maxSlotsFile bounds a file of slots: the maximum number, each with the longest name.
const maxSlotsFile = wire.MaxStaticSlots * (16 + 1 + leasehold.MaxOwnerIDLen + 2)

func readSlots(path string) ([]admin.Slot, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, cli.Fail(err)
	}
	defer func() { _ = file.Close() }() // read-only
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
		return nil, fmt.Errorf("--static %s: the file has no line START OWNER", path)
	}
	return slots, nil
}
