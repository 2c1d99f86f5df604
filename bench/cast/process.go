package cast

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
	StartLimit = 90 * time.Second // a member, until it is ready
	OrderLimit = 90 * time.Second // an order, until it is answered
	EndLimit   = 15 * time.Second // a member, until it has ended; then it is killed
)

// An Order is what a member process is told to do, one line of JSON on its
// standard input.
type Order struct {
	Do    string `json:"do"`
	Batch int    `json:"batch,omitempty"` // how many leases
	Name  string `json:"name,omitempty"`  // what their names begin with
	Group int    `json:"group,omitempty"` // how many agree on each
	// Number is that of a change.
	Number uint64 `json:"number,omitempty"`
}

// An Answer says what became of an order. The first that a member gives, without
// having been asked, says that it is ready.
type Answer struct {
	Leases int     `json:"leases,omitempty"`
	Begin  int64   `json:"begin,omitempty"` // nanoseconds since 1970: all members are on one computer
	End    int64   `json:"end,omitempty"`
	Bytes  int64   `json:"bytes,omitempty"` // written, and synced
	Syncs  int64   `json:"syncs,omitempty"`
	CPU    int64   `json:"cpu,omitempty"`    // nanoseconds that it took, or has taken so far
	Number uint64  `json:"number,omitempty"` // that of a change
	Times  []int64 `json:"times,omitempty"`  // nanoseconds since 1970, of everybody
	Info   string  `json:"info,omitempty"`
	// Data is the answer of a role that has more to report.
	Data  json.RawMessage `json:"data,omitempty"`
	Error string          `json:"error,omitempty"`
}

// A Process is a child of this program: the program itself, with a role. It
// takes orders one at a time, and ends when its standard input does. So none
// outlives the one who started it, however that one ends.
//
// It is for one goroutine at a time.
type Process struct {
	role    string
	cmd     *exec.Cmd
	in      io.WriteCloser
	answers *json.Decoder
	errors  *tail
	info    string // what it said when it was ready
}

// roleVariable is set for those who play a role. A program that does not call Play
// would otherwise start itself, which would start itself, and so on.
const roleVariable = "LEASEHOLD_BENCH_ROLE"

// Begin starts a process in a role. It need not be ready yet: see await.
func Begin(ctx context.Context, role string, args ...string) (*Process, error) {
	if os.Getenv(roleVariable) != "" {
		return nil, errors.New("this process was started to play a role, and starts others: its main must begin with cast.Play")
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding this program's file: %w", err)
	}
	p := &Process{role: role, cmd: exec.CommandContext(ctx, self, append([]string{role}, args...)...), errors: &tail{}}
	p.cmd.Stderr = p.errors
	p.cmd.Env = append(os.Environ(), roleVariable+"="+role)
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
	p.cmd.WaitDelay = EndLimit
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting a %s: %w", role, err)
	}
	return p, nil
}

// Await waits until the process says that it is ready.
func (p *Process) Await() error {
	a, err := p.answer(StartLimit)
	p.info = a.Info
	return err
}

// Info is what the process said when it was ready.
func (p *Process) Info() string { return p.info }

// Ask gives an order and waits for the answer.
func (p *Process) Ask(o Order) (Answer, error) {
	if err := p.tell(o); err != nil {
		return Answer{}, err
	}
	return p.answer(OrderLimit)
}

// tell gives an order. Its answer must be asked for.
func (p *Process) tell(o Order) error {
	if err := json.NewEncoder(p.in).Encode(o); err != nil {
		return p.failed(err)
	}
	return nil
}

// answer waits for the answer to the order before. A process that does not give
// one in time is killed.
func (p *Process) answer(limit time.Duration) (Answer, error) {
	watchdog := time.AfterFunc(limit, func() { _ = p.cmd.Process.Kill() })
	defer watchdog.Stop()
	var a Answer
	if err := p.answers.Decode(&a); err != nil {
		return Answer{}, p.failed(err)
	}
	if a.Error != "" {
		return Answer{}, p.failed(errors.New(a.Error))
	}
	return a, nil
}

func (p *Process) failed(err error) error {
	if text := p.errors.String(); text != "" {
		return fmt.Errorf("%s %d: %w; it said last: %s", p.role, p.cmd.Process.Pid, err, text)
	}
	return fmt.Errorf("%s %d: %w", p.role, p.cmd.Process.Pid, err)
}

// Close ends the process and waits for it. One that does not end is killed.
func (p *Process) Close() {
	_ = p.in.Close() // an error means that it has ended, which is what we want
	watchdog := time.AfterFunc(EndLimit, func() { _ = p.cmd.Process.Kill() })
	defer watchdog.Stop()
	_ = p.cmd.Wait() // how it ended is of no importance any more
}

// A Group is several processes that belong together.
type Group []*Process

// BeginGroup starts n processes and waits until all are ready. It starts none, or
// all.
func BeginGroup(ctx context.Context, role string, n int, args func(i int) []string) (Group, error) {
	var g Group
	for i := range n {
		p, err := Begin(ctx, role, args(i)...)
		if err != nil {
			g.Close()
			return nil, err
		}
		g = append(g, p)
	}
	for _, p := range g {
		if err := p.Await(); err != nil {
			g.Close()
			return nil, err
		}
	}
	return g, nil
}

// Ask gives all the same order, at the same time, and returns their answers.
func (g Group) Ask(o Order) ([]Answer, error) {
	for _, p := range g {
		if err := p.tell(o); err != nil {
			return nil, err
		}
	}
	answers := make([]Answer, 0, len(g))
	for _, p := range g {
		a, err := p.answer(OrderLimit)
		if err != nil {
			return nil, err
		}
		answers = append(answers, a)
	}
	return answers, nil
}

// CPU returns what all have used so far.
func (g Group) CPU() (time.Duration, error) {
	all, err := g.Ask(Order{Do: OrderCPU})
	return Together(all).CPU, err
}

// Close ends all at the same time.
func (g Group) Close() {
	var all sync.WaitGroup
	for _, p := range g {
		all.Go(p.Close)
	}
	all.Wait()
}

// Together makes one turn of what several processes did at the same time: all
// leases, from the first that began to the last that ended.
func Together(answers []Answer) Turn {
	var t Turn
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
