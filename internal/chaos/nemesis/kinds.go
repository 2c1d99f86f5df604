package nemesis

import (
	"context"
	"time"

	"github.com/leasehold-dev/leasehold/internal/chaos/cluster"
)

// A kind is a kind of fault.
type kind struct {
	name   string
	weight int                // how often it comes, relative to others
	when   func(Setting) bool // whether it can be done; nil: always
	lasts  span
	do     deed
}

func (k *kind) in(s Setting) bool { return k.when == nil || k.when(s) }

// Reasons why some can be done and others not.
func stored(s Setting) bool   { return s.Shape != cluster.Flease }
func embedded(s Setting) bool { return s.Shape != cluster.External }
func external(s Setting) bool { return s.Shape == cluster.External }
func another(s Setting) bool  { return s.Other }
func drifts(s Setting) bool   { return s.Drift && !s.Beyond }
func strays(s Setting) bool   { return s.Drift && s.Beyond }
func wrong(s Setting) bool    { return s.Drift }
func points(s Setting) bool   { return s.Points }

// A span says how long a strike lasts. It is drawn with a number from 0 to 1.
type span func(t Times, drawn float64) time.Duration

// between is a span of at least and at most so much.
func between(least, most func(Times) time.Duration) span {
	return func(t Times, drawn float64) time.Duration {
		l, m := least(t), most(t)
		return l + time.Duration(drawn*float64(m-l))
	}
}

// A deed does something to a cluster, and returns to whom, and what undoes it. It
// returns nobody if there is nobody to whom it can be done now.
type deed func(ctx context.Context, n *Nemesis, s Strike) (victims string, heal func() error, err error)

func of(part float64, whole func(Times) time.Duration) func(Times) time.Duration {
	return func(t Times) time.Duration { return time.Duration(part * float64(whole(t))) }
}

func lease(t Times) time.Duration { return t.Lease }
func hold(t Times) time.Duration  { return t.Hold }
func ttl(t Times) time.Duration   { return t.TTL }
func yield(t Times) time.Duration { return t.Yield }

// The usual spans: so short that no lease ends by it, so long that leases have ended
// and are others', and whatever is in between. Longer is for so long that another leads and
// has waited for all leases: a leader that goes on renewing until then does harm.
var (
	short   = between(of(0.1, lease), of(0.5, lease))
	long    = between(of(1.2, hold), of(1.5, hold))
	some    = between(of(0.2, lease), of(1.2, hold))
	instant = between(of(0.05, ttl), of(0.5, ttl))
	reign   = between(of(1.2, yield), of(2, yield))
	longer  = between(of(2, hold), of(3, hold))
)

// CallerCut is the kind of fault that cuts a caller off from everybody, for longer than
// it may know nothing.
const CallerCut = "caller-cut"

// kinds are all there are.
func kinds() []kind {
	return []kind{
		{"owner-kill", 4, nil, some, kill(anyOwner)},
		{"owners-kill", 1, nil, some, killHalf(anyOwner)},
		{"owner-restart", 2, nil, short, restart(anyOwner)},
		{"owner-pause-short", 3, nil, short, pause(anyOwner)},
		{"owner-pause-long", 4, nil, long, pause(anyOwner)},
		{"manager-kill", 2, nil, some, kill(anyManager)},
		{"manager-pause", 2, nil, some, pause(anyManager)},
		{"leader-kill", 3, nil, some, kill(leader)},
		{"leader-restart", 1, nil, short, restart(leader)},
		{"leader-pause-short", 2, nil, instant, pause(leader)},
		{"leader-pause-long", 3, nil, reign, pause(leader)},
		{"caller-kill", 1, nil, short, kill(anyCaller)},
		{"upgrade", 4, another, instant, upgrade},
		{"clock-offset", 2, nil, instant, shift},
		{"clock-rate", 6, drifts, instant, drift},
		{"owner-clock-beyond", 20, strays, longer, stray(anyOwner, 1)},
		{"manager-clocks-beyond", 4, func(s Setting) bool { return strays(s) && stored(s) }, longer, stray(anyManager, 3)},
		{"wall-clock", 4, wrong, long, set},
		{"failpoint", 20, points, some, fail},
		{"memory", 2, nil, some, starve},
		{"disk-full", 3, stored, some, fill},
		{"connection-storm", 2, nil, some, flood},
		{"store-leader-kill", 2, external, some, kill(storeLeader)},
		{"store-leader-cut", 2, external, some, trouble(cut(storeLeader))},
		{"store-stutter", 2, external, some, stutter(anyStore)},
		{"manager-stutter", 2, nil, some, stutter(anyManager)},
		{"owner-stutter", 2, nil, some, stutter(anyOwner)},
		{"store-kill", 2, external, some, kill(anyStore)},
		{"store-pause", 3, external, some, pause(anyStore)},
		{"quorum-kill", 1, embedded, some, killTwo(managers)},
		{"store-quorum-kill", 1, external, some, killTwo(stores)},
		{"store-quorum-pause", 2, external, some, pauseTwo(stores)},
		{"quorum-pause", 1, stored, some, pauseTwo(managers)},
		{"owner-cut", 3, nil, some, trouble(cut(anyOwner))},
		{"owner-deaf", 3, nil, some, trouble(deaf(anyOwner))},
		{"owner-mute", 3, nil, some, trouble(mute(anyOwner))},
		{"leader-alone", 3, nil, some, trouble(cut(leader))},
		{"leader-deaf", 2, nil, some, trouble(deaf(leader))},
		{"leader-mute", 2, nil, some, trouble(mute(leader))},
		{"manager-minority", 2, nil, some, trouble(minority(anyManager))},
		{"leader-minority", 3, nil, longer, single(trouble(minority(leader)))},
		{"halves", 2, nil, some, trouble(halves)},
		{"owners-callers-cut", 1, nil, some, trouble(apart)},
		{CallerCut, 1, nil, long, trouble(cut(anyCaller))},
		{"store-cut", 2, external, some, trouble(cut(anyStore))},
		{"flapping", 2, nil, some, flap(cut(anyManager))},
		{"leader-flapping", 2, nil, some, flap(cut(leader))},
		{"delay", 2, nil, some, trouble(slow)},
		{"loss", 3, nil, some, trouble(lossy)},
		{"reorder", 2, nil, some, trouble(reordering)},
		{"duplicate", 2, nil, some, trouble(duplicating)},
		{"bandwidth", 1, nil, some, trouble(narrow)},
	}
}
