package nemesis

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/lab/chaos/cluster"
	"github.com/leasehold-dev/leasehold/lab/chaos/lan"
	"github.com/leasehold-dev/leasehold/server/proc"
)

// A disorder is a trouble on some ways, with a description of these.
type disorder func(ctx context.Context, n *Nemesis, s Strike) (where string, ways []lan.Way, t lan.Trouble)

// trouble returns a deed that injects a trouble of the network.
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

// flap returns a deed that starts and ends a trouble repeatedly.
func flap(d disorder) deed {
	return func(ctx context.Context, n *Nemesis, s Strike) (string, func() error, error) {
		where, ways, t := d(ctx, n, s)
		on, off := 20*time.Millisecond+time.Duration(s.How*float64(400*time.Millisecond)), 100*time.Millisecond
		return where, until(ctx, func(ctx context.Context) error {
			for {
				heal := strikeAll(n.Network, ways, t)
				proc.Pause(ctx, on)
				if err := heal(); err != nil || !proc.Pause(ctx, off) {
					return err
				}
			}
		}), nil
	}
}

// isolate drops outgoing packets of a member, incoming ones, or both.
func isolate(whom choice, sent, received bool) disorder {
	return func(ctx context.Context, n *Nemesis, s Strike) (string, []lan.Way, lan.Trouble) {
		m := whom(ctx, n, s)[0]
		var ways []lan.Way
		if sent {
			ways = append(ways, lan.Way{From: []*lan.Host{m.Host}})
		}
		if received {
			ways = append(ways, lan.Way{To: []*lan.Host{m.Host}})
		}
		return m.Name, ways, lan.Trouble{Cut: true}
	}
}

func cut(whom choice) disorder  { return isolate(whom, true, true) }
func deaf(whom choice) disorder { return isolate(whom, false, true) }
func mute(whom choice) disorder { return isolate(whom, true, false) }

// cutBetween drops all packets between two groups of hosts.
func cutBetween(where string, a, b []*lan.Host) (string, []lan.Way, lan.Trouble) {
	return where, []lan.Way{{From: a, To: b}, {From: b, To: a}}, lan.Trouble{Cut: true}
}

// minority cuts one manager off from the other managers and the stores only.
func minority(whom choice) disorder {
	return func(ctx context.Context, n *Nemesis, s Strike) (string, []lan.Way, lan.Trouble) {
		m := whom(ctx, n, s)[0]
		return cutBetween(m.Name, []*lan.Host{m.Host}, cluster.Hosts(n.Cluster.Managers, n.Cluster.Stores))
	}
}

// halves partitions the network into two parts.
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
	if one == nil || other == nil { // a nil list would be all hosts
		return "", nil, lan.Trouble{}
	}
	return cutBetween(strings.Join(names, " "), one, other)
}

// apart cuts owners off from callers.
func apart(_ context.Context, n *Nemesis, _ Strike) (string, []lan.Way, lan.Trouble) {
	return cutBetween("owners and callers", cluster.Hosts(n.Cluster.Owners), cluster.Hosts(n.Cluster.Callers))
}

// degrade disturbs packets, everywhere or at one host, with the level of the strike.
func degrade(level func(how float64) (text string, t lan.Trouble)) disorder {
	return func(ctx context.Context, n *Nemesis, s Strike) (string, []lan.Way, lan.Trouble) {
		text, t := level(s.How)
		if s.Pick%3 == 0 {
			return text + " everywhere", []lan.Way{{}}, t
		}
		s.Pick /= 3
		m := anyMember(ctx, n, s)[0]
		h := []*lan.Host{m.Host}
		return text + " at " + m.Name, []lan.Way{{From: h}, {To: h}}, t
	}
}

// slow delays packets by up to 100 ms.
func slow(how float64) (string, lan.Trouble) {
	d := time.Millisecond + time.Duration(how*float64(100*time.Millisecond))
	return d.Round(time.Millisecond).String(), lan.Trouble{Delay: d}
}

// lossy loses 1 to 50 % of packets, mostly few.
func lossy(how float64) (string, lan.Trouble) {
	share := 0.01 + 0.49*how*how
	return fmt.Sprintf("%.0f %%", 100*share), lan.Trouble{Loss: share}
}

func reordering(how float64) (string, lan.Trouble) {
	d := time.Millisecond + time.Duration(how*float64(50*time.Millisecond))
	return "within " + d.Round(time.Millisecond).String(), lan.Trouble{Jitter: d}
}

func duplicating(how float64) (string, lan.Trouble) {
	return fmt.Sprintf("%.0f %%", 100*how), lan.Trouble{Duplicate: how}
}

// narrow limits the rate to 10 to 100 kB per second.
func narrow(how float64) (string, lan.Trouble) {
	rate := 10_000 + int(90_000*how)
	return fmt.Sprintf("%d kB/s", rate/1000), lan.Trouble{Rate: rate}
}

// The connections of a flood.
const (
	floodWide   = 30 // concurrent connections
	floodDial   = time.Second
	floodLinger = 500 * time.Millisecond
)

// flood opens many connections to a manager that send nothing, or garbage, and closes them.
func flood(ctx context.Context, n *Nemesis, s Strike) (string, func() error, error) {
	m := anyManager(ctx, n, s)[0]
	return m.Name, until(ctx, func(ctx context.Context) error {
		var all sync.WaitGroup
		for i := range floodWide {
			all.Go(func() {
				random := rand.New(rand.NewPCG(s.Pick, uint64(i)))
				for ctx.Err() == nil {
					n.knock(ctx, m.Addr, random)
				}
			})
		}
		all.Wait()
		return nil
	}), nil
}

// knock opens one connection. Errors do not matter.
func (n *Nemesis) knock(ctx context.Context, addr string, random *rand.Rand) {
	dialing, cancel := context.WithTimeout(ctx, floodDial)
	defer cancel()
	conn, err := n.Cluster.Operator.Dial(dialing, "tcp", addr)
	if err != nil {
		proc.Pause(ctx, floodLinger/10)
		return
	}
	if random.IntN(2) == 0 {
		_, _ = conn.Write(make([]byte, random.IntN(1000)))
	}
	proc.Pause(ctx, time.Duration(random.Int64N(int64(floodLinger))))
	_ = conn.Close()
}
