package crowd

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
)

// An Order is what a crowd is told to do. It answers with its counts when that is
// done.
type Order struct {
	Do string `json:"do"` // one of the verbs below
	// Grow: how many there are to be then, and how many lookups share a connection.
	Owners, Lookups, Together int
	// Grow: how often lookups ask; 0 is as the library's do.
	Poll time.Duration
	// Grow: lookups start as if they had the table of this LSN, so that none has to be sent to them.
	LSN uint64
	// Both: how long it is to take. Restarts begin at equal distances.
	Within time.Duration
	// Restart: Owners and Lookups are how many, drawn at random; without a goodbye if they crash.
	Crash bool
	// Restart: instead, all of one part, of so many into which they are divided.
	Part, Parts int
	Pause       time.Duration // from the end of one to the start of the next in its place
}

// The verbs.
const (
	Look    = "look" // only count
	Grow    = "grow"
	Restart = "restart"
)

// word is how a program is told to be a crowd.
const word = "be-a-crowd"

// Main makes this process a crowd if it was started as one, and does not return
// then.
func Main() {
	if len(os.Args) != 4 || os.Args[1] != word {
		return
	}
	c := &crowd{managers: strings.Split(os.Args[2], ","), namespace: os.Args[3], clock: clock.New()}
	go c.traffic.watch()
	orders, answers := json.NewDecoder(bufio.NewReader(os.Stdin)), json.NewEncoder(os.Stdout)
	for {
		var o Order
		err := orders.Decode(&o)
		if errors.Is(err, io.EOF) {
			os.Exit(0)
		}
		if err == nil {
			err = c.obey(o)
		}
		answer := struct {
			Counts
			Error string
		}{Counts: c.counts()}
		if o.Do == Look {
			c.traffic.peak.Store(0)
		}
		if err != nil {
			answer.Error = err.Error()
		}
		if answers.Encode(answer) != nil || err != nil {
			os.Exit(1)
		}
	}
}

func (c *crowd) obey(o Order) error {
	switch o.Do {
	case Look:
		return nil
	case Grow:
		return c.grow(o)
	case Restart:
		return c.restart(o)
	}
	return fmt.Errorf("there is no order %q", o.Do)
}

// grow lets more in, at equal distances.
func (c *crowd) grow(o Order) error {
	together := max(1, o.Together)
	c.poll, c.lsn = cmp.Or(o.Poll, Poll), o.LSN
	var all []func() error
	for n := len(c.owners); n < o.Owners; n++ {
		s := c.ownerSeat(n)
		c.owners = append(c.owners, s)
		all = append(all, func() error { return s.open(1) })
	}
	for n := len(c.lookups); n*together < o.Lookups; n++ {
		s := c.lookupSeat(n)
		c.lookups = append(c.lookups, s)
		all = append(all, func() error { return s.open(min(together, o.Lookups-n*together)) })
	}
	return paced(all, o.Within)
}

// restart replaces some, each as soon as it has ended.
func (c *crowd) restart(o Order) error {
	var all []func() error
	again := func(s *seat) func() error {
		return func() error {
			s.close(o.Crash)
			time.Sleep(o.Pause)
			return s.open(len(s.sitting()))
		}
	}
	owners, lookups := some(c.owners, o.Owners), some(c.lookups, o.Lookups/max(1, o.Together))
	if o.Parts > 0 {
		owners, lookups = part(c.owners, o.Part, o.Parts), part(c.lookups, o.Part, o.Parts)
	}
	for _, s := range slices.Concat(owners, lookups) {
		all = append(all, again(s))
	}
	rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return paced(all, o.Within)
}

// some picks n of them at random, or all.
func some(seats []*seat, n int) (picked []*seat) {
	for _, i := range rand.Perm(len(seats))[:min(n, len(seats))] {
		picked = append(picked, seats[i])
	}
	return picked
}

// part is every so-manieth of them.
func part(seats []*seat, at, of int) (picked []*seat) {
	for i, s := range seats {
		if i%of == at {
			picked = append(picked, s)
		}
	}
	return picked
}

// paced begins all at equal distances, and waits for them.
func paced(all []func() error, within time.Duration) error {
	var (
		group sync.WaitGroup
		mu    sync.Mutex
		first error
	)
	begun := time.Now()
	for i, do := range all {
		time.Sleep(time.Until(begun.Add(within * time.Duration(i) / time.Duration(len(all)))))
		group.Go(func() {
			if err := do(); err != nil {
				mu.Lock()
				defer mu.Unlock()
				first = errors.Join(first, err)
			}
		})
	}
	group.Wait()
	return first
}

// A Process is a crowd, seen from whoever has started it. It takes one order at a
// time.
type Process struct {
	cmd     *exec.Cmd
	in      io.WriteCloser
	orders  *json.Encoder
	answers *json.Decoder
}

// Start starts a crowd that has nobody yet. It ends with its parent. Of several managers
// each has as many clients as the others; who loses its own, or hears that it does not lead,
// turns to the next.
func Start(ctx context.Context, namespace string, managers ...string) (*Process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self, word, strings.Join(managers, ","), namespace)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	return &Process{cmd, in, json.NewEncoder(in), json.NewDecoder(out)}, cmd.Start()
}

// Obey waits until the order is carried out.
func (p *Process) Obey(o Order) (Counts, error) {
	var answer struct {
		Counts
		Error string
	}
	err := errors.Join(p.orders.Encode(o), p.answers.Decode(&answer))
	if err == nil && answer.Error != "" {
		err = errors.New(answer.Error)
	}
	if err != nil {
		err = fmt.Errorf("the crowd was told to %s: %w", o.Do, err)
	}
	return answer.Counts, err
}

// Close ends it.
func (p *Process) Close() {
	_ = p.in.Close()
	_ = p.cmd.Wait()
}
