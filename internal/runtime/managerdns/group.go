package managerdns

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"net"
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold"
)

// Times of resolutions. Records usually live for 5 to 30 s, and the resolvers of systems have caches.
const (
	// interval is the maximum time between two resolutions, before jitter of up to a half: clients must not
	// resolve at the same time.
	interval = 30 * time.Second
	// minInterval is the minimum time between two resolutions, and the maximum jitter after a failed connection. The
	// minimum doubles up to half the interval while resolutions after failed connections change nothing.
	minInterval = 2 * time.Second
	// timeout is the timeout of a resolution.
	timeout = 5 * time.Second
	// maxAddrs bounds the addresses, as those of a configuration.
	maxAddrs = 64
)

// Config configures a Group.
type Config struct {
	// Targets are valid targets: see Check.
	Targets []string
	// Changed is called with all addresses, sorted and without duplicates, initially and after each change. It
	// runs on the goroutine of Run.
	Changed func(addrs []string)
	// Failed, if set, is called with the reason when a target could not be resolved, after Changed. It runs on the
	// goroutine of Run.
	Failed func(target string, why error)
	// Resolver resolves names. Default: that of the system.
	Resolver Resolver
	// Logger logs changes and errors. Default: no log.
	Logger *slog.Logger
}

// A Group is the set of addresses of a manager group. Its methods are safe for concurrent use.
type Group struct {
	cfg     Config
	targets []target
	last    map[string][]string // addresses by target; only for Run
	failing map[string]error    // of targets whose last resolution failed; only for Run
	hinted  bool                // the last resolution was after a hint; only for Run
	quiet   time.Duration       // minimum time until the next resolution; only for Run
	hint    chan struct{}       // has an element if a connection has failed
}

// New returns a Group, or [leasehold.ErrInvalid] if a target is invalid.
func New(cfg Config) (*Group, error) {
	g := &Group{cfg: cfg, last: map[string][]string{}, failing: map[string]error{}, hint: make(chan struct{}, 1)}
	for _, text := range cfg.Targets {
		t, err := parse(text, "manager-1:7400")
		if err != nil {
			return nil, &leasehold.Error{Op: "managers", Kind: leasehold.ErrInvalid, Err: err}
		}
		g.targets = append(g.targets, t)
	}
	if cfg.Resolver == nil {
		g.cfg.Resolver = net.DefaultResolver
	}
	if cfg.Failed == nil {
		g.cfg.Failed = func(string, error) {}
	}
	if cfg.Logger == nil {
		g.cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return g, nil
}

// Fixed returns the targets that are addresses.
func (g *Group) Fixed() []string {
	var addrs []string
	for i := range g.targets {
		if g.targets[i].kind == fixed {
			addrs = append(addrs, g.targets[i].text)
		}
	}
	return addrs
}

// Refresh is a hint that an address is stale, because a connection has failed. It does not block.
func (g *Group) Refresh() {
	select {
	case g.hint <- struct{}{}:
	default:
	}
}

// Run resolves the targets until the context ends: at once, after each interval, and after hints. It returns at
// once if all targets are addresses.
//
// If a resolution fails, the addresses of that target stay: managers often continue while DNS fails. A target
// without addresses is resolved again after minInterval.
func (g *Group) Run(ctx context.Context) {
	var current []string
	for ctx.Err() == nil {
		if g.resolve(ctx); ctx.Err() != nil {
			return
		}
		addrs, ignored := g.addrs()
		changed := !slices.Equal(addrs, current)
		if changed {
			g.cfg.Logger.Info("addresses of managers resolved", "managers", addrs, "before", current)
			if ignored > 0 {
				g.cfg.Logger.Warn("too many addresses of managers: the rest is ignored", "ignored", ignored, "limit", maxAddrs)
			}
			current = addrs
			g.cfg.Changed(slices.Clone(addrs))
		}
		for target, why := range g.failing {
			g.cfg.Failed(target, why)
		}
		if !g.dynamic() {
			return
		}
		g.wait(ctx, changed)
	}
}

// dynamic reports whether a target is a name.
func (g *Group) dynamic() bool {
	return slices.ContainsFunc(g.targets, func(t target) bool { return t.kind != fixed })
}

// resolve resolves all targets.
func (g *Group) resolve(ctx context.Context) {
	for i := range g.targets {
		t := &g.targets[i]
		bounded, cancel := context.WithTimeout(ctx, timeout)
		addrs, err := t.resolve(bounded, g.cfg.Resolver)
		cancel()
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			g.last[t.text] = addrs
			delete(g.failing, t.text)
			continue
		}
		if g.failing[t.text] == nil { // once per failure
			g.logFailure(t, err)
		}
		g.failing[t.text] = err
	}
}

func (g *Group) logFailure(t *target, why error) {
	if last := g.last[t.text]; last != nil {
		g.cfg.Logger.Warn("managers cannot be resolved: the last addresses are used", "target", t.text, "addresses", last, "why", why)
		return
	}
	g.cfg.Logger.Warn("managers cannot be resolved", "target", t.text, "why", why)
}

// addrs returns the addresses of all targets up to the limit, and the number of the rest.
func (g *Group) addrs() (all []string, ignored int) {
	for _, addrs := range g.last {
		all = append(all, addrs...)
	}
	slices.Sort(all)
	all = slices.Compact(all)
	kept := min(len(all), maxAddrs)
	return all[:kept], len(all) - kept
}

// wait waits until the next resolution, or until the context ends. Many clients have hints at the same time when a
// manager crashes: hence the jitter.
func (g *Group) wait(ctx context.Context, changed bool) {
	pause := interval - rand.N(interval/2) //nolint:gosec // jitter
	if slices.ContainsFunc(g.targets, func(t target) bool { return g.last[t.text] == nil }) {
		pause = minInterval
	}
	if g.quiet = min(2*g.quiet, interval/2); !g.hinted || changed {
		g.quiet = minInterval
	}
	quiet := min(g.quiet, pause)
	sleep(ctx, quiet, nil)
	if g.hinted = sleep(ctx, pause-quiet, g.hint); g.hinted {
		sleep(ctx, rand.N(minInterval), nil) //nolint:gosec // jitter
	}
}

// sleep waits for d, for a hint or for the end of the context. It reports whether there was a hint.
func sleep(ctx context.Context, d time.Duration, hint <-chan struct{}) (hinted bool) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-hint:
		return true
	case <-ctx.Done():
	}
	return false
}
