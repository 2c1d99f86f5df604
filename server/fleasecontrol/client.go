package fleasecontrol

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"time"

	"github.com/leasehold-dev/leasehold/server/proc"
)

// A Client is the control address of a member, host:port.
type Client string

func (c Client) url(path string) string { return "http://" + string(c) + path }

// Status returns the status of the member, and of a resource if one is named.
func (c Client) Status(ctx context.Context, resource string) (s Status, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url("/v1/status?"+url.Values{"resource": {resource}}.Encode()), nil)
	if err != nil {
		return s, err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return s, c.unreachable(err)
	}
	defer answer.Body.Close() //nolint:errcheck // read-only
	if answer.StatusCode != http.StatusOK {
		return s, fmt.Errorf("%s is not a member, or not a healthy one: it responds with %s", c, answer.Status)
	}
	err = json.NewDecoder(io.LimitReader(answer.Body, 1<<20)).Decode(&s)
	return s, err
}

// unreachable adds advice to a connection error.
func (c Client) unreachable(err error) error {
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("%s is not the control address of a member: the server closed the connection\nA member with --tcp has a control address only with --control.", c)
	}
	var call *os.SyscallError
	if errors.As(err, &call) {
		err = call.Err
	}
	return fmt.Errorf("no member responds at %s: %w\nStart one with 'leasehold flease run', and pass the control address that it prints with --member.", c, err)
}

// grace is added to the requested wait, for the response of the member.
const grace = 2 * time.Second

// A Lease is held through a member until it is lost or [Lease.Release] is called.
type Lease struct {
	Answer
	over   context.Context // ends with the lease
	hangUp context.CancelCauseFunc
	read   chan struct{} // closed when no more answers are read
}

// Done is closed when the lease is over.
func (l *Lease) Done() <-chan struct{} { return l.over.Done() }

// Err is why the lease is over.
func (l *Lease) Err() error { return context.Cause(l.over) }

// Release releases the lease by closing the connection to the member.
func (l *Lease) Release() {
	l.hangUp(errors.New("it was released"))
	<-l.read
}

// Acquire acquires a lease. It calls waiting with the reason if that takes long.
func (c Client) Acquire(ctx context.Context, r Request, waiting func(why string)) (*Lease, error) {
	l := &Lease{read: make(chan struct{})}
	l.over, l.hangUp = context.WithCancelCause(context.WithoutCancel(ctx)) // the lease outlasts ctx
	acquiring := ctx
	if wait := time.Duration(r.WaitMillis) * time.Millisecond; wait > 0 {
		late := fmt.Errorf("%s was not acquired within %v, and the member at %s gives no reason", r.Resource, wait, c)
		var cancel context.CancelFunc
		acquiring, cancel = context.WithTimeoutCause(ctx, wait+grace, late)
		defer cancel()
	}
	stop := context.AfterFunc(acquiring, func() { l.hangUp(context.Cause(acquiring)) })
	defer stop()
	answers, err := c.request(l.over, &r)
	if err != nil {
		return nil, l.failure(err)
	}
	next := json.NewDecoder(answers)
	for {
		l.Answer = Answer{}
		if err := next.Decode(&l.Answer); err != nil {
			_ = answers.Close()
			return nil, l.failure(c.gone(err))
		}
		switch l.State {
		case Waiting:
			waiting(l.Why)
			continue
		case Held:
			if stop() {
				go l.follow(c, answers, next)
				return l, nil
			}
		}
		_ = answers.Close()
		return nil, l.failure(errors.New(l.Why))
	}
}

// failure ends a lease that was not acquired, and returns the cause: the reason why the connection
// ended takes precedence over its consequences.
func (l *Lease) failure(err error) error {
	l.hangUp(err)
	return context.Cause(l.over)
}

func (c Client) gone(err error) error { return fmt.Errorf("the member at %s went away: %w", c, err) }

func (c Client) request(ctx context.Context, r *Request) (io.ReadCloser, error) {
	body, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	post, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url("/v1/acquire"), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(post)
	if err != nil {
		return nil, c.unreachable(err)
	}
	if response.Header.Get("Content-Type") != answerType {
		text, _ := io.ReadAll(io.LimitReader(response.Body, 1<<10))
		_ = response.Body.Close()
		return nil, fmt.Errorf("%s answers %s: %q", c, response.Status, bytes.TrimSpace(text))
	}
	return response.Body, nil
}

// follow ends the lease when the member reports its end, or when no renewal arrives before it expires
// on the wall clock, which both share.
func (l *Lease) follow(c Client, answers io.Closer, next *json.Decoder) {
	defer close(l.read)
	defer answers.Close() //nolint:errcheck // it was read
	expiry := time.AfterFunc(time.Until(l.Until), func() { l.hangUp(errors.New("the member has not renewed it")) })
	defer expiry.Stop()
	for {
		var a Answer
		if err := next.Decode(&a); err != nil {
			l.hangUp(c.gone(err))
			return
		}
		if a.State != Held {
			l.hangUp(errors.New(a.Why))
			return
		}
		expiry.Reset(time.Until(a.Until))
	}
}

// Stdio is the standard input and output of a command.
type Stdio struct {
	In        io.Reader
	Out, Errs io.Writer
}

// Hold holds the lease until ctx ends. An error means that the lease was lost.
func (l *Lease) Hold(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-l.Done():
		return l.lost()
	}
}

// Run runs a command while the lease is held, and returns its result. If ctx ends, the command
// receives SIGTERM; if the lease is lost, its process group is killed.
func (l *Lease) Run(ctx context.Context, line []string, stdio Stdio) error {
	env := []string{"FLEASE_RESOURCE=" + l.Resource, "FLEASE_FENCE=" + strconv.FormatUint(l.Fence, 10)}
	command, err := proc.StartGroup(line, env, stdio.In, stdio.Out, stdio.Errs)
	if err != nil {
		return err
	}
	defer command.Close()
	interrupted := ctx.Done()
	for {
		select {
		case err := <-command.Ended():
			return err
		case <-interrupted:
			command.Terminate()
			interrupted = nil
		case <-l.Done():
			command.Kill()
			return l.lost()
		}
	}
}

func (l *Lease) lost() error { return fmt.Errorf("%s: the lease is over: %w", l.Resource, l.Err()) }
