package nemesis

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/internal/chaos/cluster"
	"github.com/leasehold-dev/leasehold/internal/chaos/lan"
)

// A disorder is a trouble on some ways, and a word for these.
type disorder func(ctx context.Context, n *Nemesis, s Strike) (where string, ways []lan.Way, t lan.Trouble)

// trouble is a deed that has something befall the network.
func trouble(d disorder) deed {
	return func(ctx context.Context, n *Nemesis, s Strike) (string, func() error, error) {
		where, ways, t := d(ctx, n, s)
		return where, strikeAll(n.Network, ways, t), nil
	}
}

func strikeAll(network *lan.Network, ways []lan.Way, t lan.Trouble) (heal func() error) {
	var heals []func()
	for _, w := range ways {
		heals = append(heals, network.Strike(w, t))
	}
	return func() error {
		for _, heal := range heals {
			heal()
		}
		return nil
	}
}

// flap is a trouble that comes and goes.
func flap(d disorder) deed {
	return func(ctx context.Context, n *Nemesis, s Strike) (string, func() error, error) {
		where, ways, t := d(ctx, n, s)
		ctx, stop := context.WithCancel(ctx)
		var flapping sync.WaitGroup
		flapping.Go(func() {
			on, off := 20*time.Millisecond+time.Duration(s.How*float64(400*time.Millisecond)), 100*time.Millisecond
			for {
				heal := strikeAll(n.Network, ways, t)
				wait(ctx, on)
				_ = heal() // the network heals always
				if !wait(ctx, off) {
					return
				}
			}
		})
		return where, func() error {
			stop()
			flapping.Wait()
			return nil
		}, nil
	}
}

// cut is that somebody is alone.
func cut(whom choice) disorder {
	return func(ctx context.Context, n *Nemesis, s Strike) (string, []lan.Way, lan.Trouble) {
		m := whom(ctx, n, s)[0]
		h := []*lan.Host{m.Host}
		return m.Name, []lan.Way{{From: h}, {To: h}}, lan.Trouble{Cut: true}
	}
}

// deaf is that nothing reaches somebody.
func deaf(whom choice) disorder {
	return func(ctx context.Context, n *Nemesis, s Strike) (string, []lan.Way, lan.Trouble) {
		m := whom(ctx, n, s)[0]
		return m.Name, []lan.Way{{To: []*lan.Host{m.Host}}}, lan.Trouble{Cut: true}
	}
}

// mute is that nothing that somebody sends arrives.
func mute(whom choice) disorder {
	return func(ctx context.Context, n *Nemesis, s Strike) (string, []lan.Way, lan.Trouble) {
		m := whom(ctx, n, s)[0]
		return m.Name, []lan.Way{{From: []*lan.Host{m.Host}}}, lan.Trouble{Cut: true}
	}
}

// minority is that one manager has no connection with the others, nor with the store, but
// with everybody else.
func minority(whom choice) disorder {
	return func(ctx context.Context, n *Nemesis, s Strike) (string, []lan.Way, lan.Trouble) {
		m := whom(ctx, n, s)[0]
		h, others := []*lan.Host{m.Host}, cluster.Hosts(n.Cluster.Managers, n.Cluster.Stores)
		return m.Name, []lan.Way{{From: h, To: others}, {From: others, To: h}}, lan.Trouble{Cut: true}
	}
}

// halves is that there are two parts of the network that know nothing of each other.
func halves(_ context.Context, n *Nemesis, s Strike) (string, []lan.Way, lan.Trouble) {
	var one, other []*lan.Host
	var names []string
	for i, m := range n.Cluster.All() {
		if s.Pick>>(i%64)&1 == 0 {
			one = append(one, m.Host)
			names = append(names, m.Name)
		} else {
			other = append(other, m.Host)
		}
	}
	if one == nil || other == nil { // a nil list would be everybody
		return "", nil, lan.Trouble{}
	}
	return strings.Join(names, " "), []lan.Way{{From: one, To: other}, {From: other, To: one}}, lan.Trouble{Cut: true}
}

// apart is that owners and callers do not reach each other.
func apart(_ context.Context, n *Nemesis, _ Strike) (string, []lan.Way, lan.Trouble) {
	o, c := cluster.Hosts(n.Cluster.Owners), cluster.Hosts(n.Cluster.Callers)
	return "owners and callers", []lan.Way{{From: o, To: c}, {From: c, To: o}}, lan.Trouble{Cut: true}
}

// spread is where a trouble that is not a cut strikes: everywhere, or at one host.
func spread(n *Nemesis, s Strike, what string) (string, []lan.Way) {
	if s.Pick%3 == 0 {
		return what + " everywhere", []lan.Way{{}}
	}
	all := n.Cluster.All()
	m := all[s.Pick/3%uint64(len(all))]
	h := []*lan.Host{m.Host}
	return what + " at " + m.Name, []lan.Way{{From: h}, {To: h}}
}

// slow delays everything, by up to a tenth of a second.
func slow(_ context.Context, n *Nemesis, s Strike) (string, []lan.Way, lan.Trouble) {
	d := time.Millisecond + time.Duration(s.How*float64(100*time.Millisecond))
	where, ways := spread(n, s, d.Round(time.Millisecond).String())
	return where, ways, lan.Trouble{Delay: d}
}

// lossy loses 1 to 50 per cent.
func lossy(_ context.Context, n *Nemesis, s Strike) (string, []lan.Way, lan.Trouble) {
	share := 0.01 + 0.49*s.How*s.How // mostly not so much
	where, ways := spread(n, s, fmt.Sprintf("%.0f %%", 100*share))
	return where, ways, lan.Trouble{Loss: share}
}

func reordering(_ context.Context, n *Nemesis, s Strike) (string, []lan.Way, lan.Trouble) {
	d := time.Millisecond + time.Duration(s.How*float64(50*time.Millisecond))
	where, ways := spread(n, s, "within "+d.Round(time.Millisecond).String())
	return where, ways, lan.Trouble{Jitter: d}
}

func duplicating(_ context.Context, n *Nemesis, s Strike) (string, []lan.Way, lan.Trouble) {
	where, ways := spread(n, s, fmt.Sprintf("%.0f %%", 100*s.How))
	return where, ways, lan.Trouble{Duplicate: s.How}
}

// narrow leaves 10 to 100 kB in a second.
func narrow(_ context.Context, n *Nemesis, s Strike) (string, []lan.Way, lan.Trouble) {
	rate := 10_000 + int(90_000*s.How)
	where, ways := spread(n, s, fmt.Sprintf("%d kB/s", rate/1000))
	return where, ways, lan.Trouble{Rate: rate}
}
