package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"
)

// How long things may take before they are taken to hang.
const (
	startLimit = 90 * time.Second // a member, until it is ready
	orderLimit = 90 * time.Second // an order, until it is answered
	endLimit   = 15 * time.Second // a member, until it has ended; then it is killed
)

// An order is what a member process is told to do, one line of JSON on its
// standard input.
type order struct {
	Do    string `json:"do"`
	Batch int    `json:"batch,omitempty"` // how many leases
	Name  string `json:"name,omitempty"`  // what their names begin with
	Group int    `json:"group,omitempty"` // how many agree on each
}

// An answer says what became of an order. The first that a member gives, without
// having been asked, says that it is ready.
type answer struct {
	Leases int    `json:"leases,omitempty"`
	Begin  int64  `json:"begin,omitempty"` // nanoseconds since 1970: all members are on one computer
	End    int64  `json:"end,omitempty"`
	Bytes  int64  `json:"bytes,omitempty"` // written, and synced
	Syncs  int64  `json:"syncs,omitempty"`
	CPU    int64  `json:"cpu,omitempty"` // nanoseconds that it took, or has taken so far
	Info   string `json:"info,omitempty"`
	Error  string `json:"error,omitempty"`
}

// A process is a child of this program: the program itself, with a role. It
// takes orders one at a time, and ends when its standard input does. So none
// outlives the one who started it, however that one ends.
//
// It is for one goroutine at a time.
type process struct {
	role    string
	cmd     *exec.Cmd
	in      io.WriteCloser
	answers *json.Decoder
	errors  *tail
	info    string // what it said when it was ready
}

// begin starts a process in a role. It need not be ready yet: see await.
func begin(ctx context.Context, role string, args ...string) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding this program's file: %w", err)
	}
	p := &process{role: role, cmd: exec.CommandContext(ctx, self, append([]string{role}, args...)...), errors: &tail{}}
	p.cmd.Stderr = p.errors
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.answers = json.NewDecoder(out)
	// The end of its input asks it to end, which gives it time to clean up.
	p.cmd.Cancel = p.in.Close
	p.cmd.WaitDelay = endLimit
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting a %s: %w", role, err)
	}
	return p, nil
}

// await waits until the process says that it is ready.
func (p *process) await() error {
	a, err := p.answer(startLimit)
	p.info = a.Info
	return err
}

// ask gives an order and waits for the answer.
func (p *process) ask(o order) (answer, error) {
	if err := p.tell(o); err != nil {
		return answer{}, err
	}
	return p.answer(orderLimit)
}

// tell gives an order. Its answer must be asked for.
func (p *process) tell(o order) error {
	if err := json.NewEncoder(p.in).Encode(o); err != nil {
		return p.failed(err)
	}
	return nil
}

// answer waits for the answer to the order before. A process that does not give
// one in time is killed.
func (p *process) answer(limit time.Duration) (answer, error) {
	watchdog := time.AfterFunc(limit, func() { _ = p.cmd.Process.Kill() })
	defer watchdog.Stop()
	var a answer
	if err := p.answers.Decode(&a); err != nil {
		return answer{}, p.failed(err)
	}
	if a.Error != "" {
		return answer{}, p.failed(errors.New(a.Error))
	}
	return a, nil
}

func (p *process) failed(err error) error {
	if text := p.errors.String(); text != "" {
		return fmt.Errorf("%s %d: %w; it said last: %s", p.role, p.cmd.Process.Pid, err, text)
	}
	return fmt.Errorf("%s %d: %w", p.role, p.cmd.Process.Pid, err)
}

// close ends the process and waits for it. One that does not end is killed.
func (p *process) close() {
	_ = p.in.Close() // an error means that it has ended, which is what we want
	watchdog := time.AfterFunc(endLimit, func() { _ = p.cmd.Process.Kill() })
	defer watchdog.Stop()
	_ = p.cmd.Wait() // how it ended is of no importance any more
}

// A group is several processes that belong together.
type group []*process

// beginGroup starts n processes and waits until all are ready. It starts none, or
// all.
func beginGroup(ctx context.Context, role string, n int, args func(i int) []string) (group, error) {
	var g group
	for i := range n {
		p, err := begin(ctx, role, args(i)...)
		if err != nil {
			g.close()
			return nil, err
		}
		g = append(g, p)
	}
	for _, p := range g {
		if err := p.await(); err != nil {
			g.close()
			return nil, err
		}
	}
	return g, nil
}

// ask gives all the same order, at the same time, and returns their answers.
func (g group) ask(o order) ([]answer, error) {
	for _, p := range g {
		if err := p.tell(o); err != nil {
			return nil, err
		}
	}
	answers := make([]answer, 0, len(g))
	for _, p := range g {
		a, err := p.answer(orderLimit)
		if err != nil {
			return nil, err
		}
		answers = append(answers, a)
	}
	return answers, nil
}

// cpu returns what all have used so far.
func (g group) cpu() (time.Duration, error) {
	all, err := g.ask(order{Do: orderCPU})
	return together(all).CPU, err
}

// close ends all at the same time.
func (g group) close() {
	var all sync.WaitGroup
	for _, p := range g {
		all.Go(p.close)
	}
	all.Wait()
}

// together makes one turn of what several processes did at the same time: all
// leases, from the first that began to the last that ended.
func together(answers []answer) turn {
	var t turn
	var begin, end int64
	for i, a := range answers {
		t.Leases += a.Leases
		t.CPU += time.Duration(a.CPU)
		if i == 0 || a.Begin < begin {
			begin = a.Begin
		}
		end = max(end, a.End)
	}
	t.Took = time.Duration(end - begin)
	return t
}

// A tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex
	text []byte
}

const tailBytes = 2 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	if over := len(t.text) - tailBytes; over > 0 {
		t.text = append(t.text[:0], t.text[over:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(bytes.TrimSpace(t.text))
}
