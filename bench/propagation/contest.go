package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/leasehold-dev/leasehold/bench/cast"
	"github.com/leasehold-dev/leasehold/bench/kit"
)

// A size is how many listen, and over how many connections.
type size struct{ listeners, conns int }

func (s size) own() bool { return s.listeners == s.conns }

func (s size) String() string {
	if s.own() {
		return fmt.Sprintf("%s, a connection each", kit.Thousands(float64(s.listeners)))
	}
	return fmt.Sprintf("%s over %d connections", kit.Thousands(float64(s.listeners)), s.conns)
}

// few is over how many connections many listen where connections are shared.
const few = 100

// sizes are from 100 to 50,000. A connection takes a file of the server, of which it
// may have so many: where that is too few, as many as there can be take the place of
// those that there should be.
func sizes(quick bool, files int) (all []size, short bool) {
	if quick {
		return []size{{1_000, 1_000}, {1_000, few}}, false
	}
	const most, spare = 50_000, 1_000
	last := min(most, files-spare)
	for _, n := range []int{100, 1_000, 10_000} {
		if n < last {
			all = append(all, size{n, n})
		}
	}
	all = append(all, size{last, last})
	for _, n := range []int{1_000, 10_000, most} {
		all = append(all, size{n, few})
	}
	return all, last < most
}

// files is how many a process may have open.
func files() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 1024
	}
	return int(min(limit.Max, 1<<20)) // the runtime raises what we have to what we may have
}

// A contender is a service and its crowd.
type contender struct {
	name string
	service
	crowd cast.Group
	last  uint64 // the number of its last change
}

// perProcess is how many connections, or streams, one process of a crowd has at most.
const (
	connsPerProcess   = 10_000
	streamsPerProcess = 25_000
)

// beginCrowd starts the listeners of a service, in as many processes as it takes,
// each with an address of its own to connect from, in a network of the service.
func beginCrowd(ctx context.Context, name, to string, network int, s size) (cast.Group, error) {
	processes := max(1, (s.conns+connsPerProcess-1)/connsPerProcess, (s.listeners+streamsPerProcess-1)/streamsPerProcess)
	share := func(n, i int) string { return strconv.Itoa((n + i) / processes) }
	return cast.BeginGroup(ctx, "crowd", processes, func(i int) []string {
		return []string{
			"-to", to, "-from", fmt.Sprintf("127.0.%d.%d", network, i+1), "-speaks", name,
			"-streams", share(s.listeners, i), "-conns", share(s.conns, i),
		}
	})
}

// An entrant is how a service begins.
type entrant struct {
	name  string
	begin func(ctx context.Context, dir string, s size) (service, error)
}

func entrants() []entrant {
	return []entrant{{nameLeasehold, beginLeasehold}, {nameEtcd, beginEtcd}, {namePush, beginPush}}
}

// crowded is how many connections are so many that the system has no memory for those
// of all services at a time.
const crowded = 10_000

// heats returns who competes at a time: all, but for sizes at which only one has room.
func heats(s size) [][]entrant {
	all := entrants()
	if s.conns <= crowded {
		return [][]entrant{all}
	}
	var alone [][]entrant
	for _, e := range all {
		alone = append(alone, []entrant{e})
	}
	return alone
}

// open starts services and their crowds, or none.
func open(ctx context.Context, dir string, s size, entrants []entrant, step func(string)) (all []*contender, err error) {
	defer func() {
		if err != nil {
			closeAll(all)
			all = nil
		}
	}()
	for i, e := range entrants {
		served, err := e.begin(ctx, dir, s)
		if err != nil {
			return all, fmt.Errorf("%s: %w", e.name, err)
		}
		c := &contender{name: e.name, service: served}
		all = append(all, c)
		if c.crowd, err = beginCrowd(ctx, c.name, c.addr(), i+1, s); err != nil {
			return all, fmt.Errorf("%s, %v: %w", e.name, s, err)
		}
		step(e.name)
	}
	return all, nil
}

func closeAll(all []*contender) {
	for _, c := range all {
		c.crowd.Close()
		c.close()
	}
}

// A turn is how long a change took, in milliseconds, and how large it was.
type turn struct {
	half, last float64
	bytes      int
}

// turn makes a change, and waits until everybody has heard of it.
func (c *contender) turn(ctx context.Context, bytes int) (turn, error) {
	t, err := c.measure(ctx, bytes)
	if ctx.Err() != nil {
		return turn{}, context.Cause(ctx)
	}
	if err != nil {
		return turn{}, fmt.Errorf("%s: %w", c.name, err)
	}
	return t, nil
}

func (c *contender) measure(ctx context.Context, bytes int) (turn, error) {
	if _, err := c.crowd.Ask(cast.Order{Do: orderArm, Number: c.last}); err != nil {
		return turn{}, err
	}
	made, err := c.change(ctx, bytes)
	if err != nil {
		return turn{}, err
	}
	answers, err := c.crowd.Ask(cast.Order{Do: orderHeard})
	if err != nil {
		return turn{}, err
	}
	var times []int64
	for _, a := range answers {
		if a.Number != made.number {
			return turn{}, fmt.Errorf("change %d was made, and %d was heard of", made.number, a.Number)
		}
		times = append(times, a.Times...)
	}
	slices.Sort(times)
	after := func(at int64) float64 { return float64(time.Unix(0, at).Sub(made.begin)) / float64(time.Millisecond) }
	if err := c.restore(ctx, made); err != nil {
		return turn{}, err
	}
	return turn{half: after(times[len(times)/2]), last: after(times[len(times)-1]), bytes: int(answers[0].Bytes)}, nil
}

// restore makes another change possible. If that is a change as well, everybody hears of it
// before it is anybody's turn: it would disturb others.
func (c *contender) restore(ctx context.Context, made change) (err error) {
	if _, err := c.crowd.Ask(cast.Order{Do: orderArm, Number: made.number}); err != nil {
		return err
	}
	if c.last, err = c.undo(ctx, made); err != nil || c.last == made.number {
		return err
	}
	_, err = c.crowd.Ask(cast.Order{Do: orderHeard})
	return err
}

// An outcome is how one did at a size.
type outcome struct {
	name       string
	half, last kit.Summary
	turns      []float64 // of the last
	bytes      int
}

// A size has so much time for its rounds, shared by its heats, and so many rounds
// even if they take longer: all sizes together must stay within minutes.
const (
	sizeLimit = 25 * time.Second
	fewest    = 3
)

// judged reports whether a size has goals. It has more rounds, and time for them: who is faster is not
// to be decided by what else the machine does.
func (s size) judged() bool { return s.own() && s.listeners == 10_000 }

func (s size) rounds(usual int) int {
	if s.judged() {
		return 4 * usual
	}
	return usual
}

func (s size) limit() time.Duration {
	if s.judged() {
		return 3 * sizeLimit
	}
	return sizeLimit
}

var errEnough = errors.New("there is no time for more rounds")

// contest lets everybody have a turn in each round, with changes of so many bytes.
// If that is 0, a turn before the first tells how many a change of the lease table
// has. After fewest rounds it begins no more of them once the limit has passed.
func contest(ctx context.Context, all []*contender, rounds, bytes int, limit time.Duration, step func(round int)) ([]outcome, error) {
	for _, c := range all {
		for range 2 { // the second time etcd knows how much it adds to a value
			t, err := c.turn(ctx, bytes)
			if err != nil {
				return nil, err
			}
			if c.name == nameLeasehold {
				bytes = t.bytes
			}
			if e, ok := c.service.(*etcdService); ok {
				e.bytes += t.bytes - bytes
			}
		}
	}
	turns := make([][]turn, len(all))
	began := time.Now()
	err := kit.Rounds(ctx, rounds, len(all), func(round, i int) error {
		if first := i == round%len(all); first && round >= fewest && time.Since(began) > limit {
			return errEnough
		}
		t, err := all[i].turn(ctx, bytes)
		if err != nil {
			return err
		}
		turns[i] = append(turns[i], t)
		if i == (round+len(all)-1)%len(all) { // the round's last
			step(round)
		}
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		return nil, err
	}
	var outcomes []outcome
	for i, c := range all {
		o := outcome{name: c.name}
		var halves []float64
		for _, t := range turns[i] {
			halves, o.turns, o.bytes = append(halves, t.half), append(o.turns, t.last), t.bytes
		}
		o.half, o.last = kit.Summarise(halves), kit.Summarise(o.turns)
		outcomes = append(outcomes, o)
	}
	return outcomes, nil
}
