package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold/flease"
)

const fleaseAcquireHelp = `Acquires the lease of a resource through a running member, prints its fence, and
holds it until it is interrupted. With a command behind --, it runs that command
while it holds the lease, and releases it when the command ends, like flock(1).

The command finds the fence in FLEASE_FENCE, and should send it along with
whatever it changes elsewhere: fences rise from holder to holder, so that a late
change can be refused. If it has to wait for longer than a second, it says what for.
The command has a process group of its own, in the background of a
terminal. If the lease is lost, the whole group is killed, and so it is when this
command is killed itself, whose lease is then free within moments. An interrupt is
passed on to the group as SIGTERM. What leaves the group, such as a daemon, or
outlives the command, is on its own.

Exit status: that of the command; 0 it was held until interrupted; 2 it could not be
had, or was lost.`

type fleaseAcquire struct {
	member  string
	wait    time.Duration
	try     bool
	json    bool
	command []string
	out     io.Writer
	errs    io.Writer
	in      io.Reader
}

func newFleaseAcquireCommand() *cobra.Command {
	o := &fleaseAcquire{}
	cmd := &cobra.Command{
		Use:   "acquire RESOURCE [-- COMMAND ARGUMENTS...]",
		Short: "Hold a lease, or run a command while holding it",
		Long:  fleaseAcquireHelp,
		Example: `  leasehold flease acquire nightly --member 127.0.0.1:7001
  leasehold flease acquire nightly --wait 1m -- ./report.sh`,
		Args: func(cmd *cobra.Command, args []string) error {
			if dash := cmd.ArgsLenAtDash(); len(args) == 0 || dash >= 0 && dash != 1 || dash < 0 && len(args) > 1 {
				return errors.New("want the name of one resource, and a command behind -- if there is one")
			}
			if n := len(args[0]); n == 0 || n > flease.MaxResource {
				return fmt.Errorf("the name of a resource has 1 to %d bytes, this one %d", flease.MaxResource, n)
			}
			return nil
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&o.member, "member", defaultMember, "the control `address` of a member")
	flags.DurationVar(&o.wait, "wait", 0, "how long to wait for it (default for ever)")
	flags.BoolVar(&o.try, "try", false, "do not wait if another has it")
	flags.BoolVar(&o.json, "json", false, "print what is known of the lease as one JSON object on a line")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := onlyLoopback("member", o.member); err != nil {
			return err
		}
		o.command, o.in, o.out, o.errs = args[1:], cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr()
		err := o.run(cmd.Context(), args[0])
		var ended status
		if err == nil || errors.As(err, &ended) {
			return err
		}
		return failed{err}
	}
	return cmd
}

func (o *fleaseAcquire) run(ctx context.Context, resource string) error {
	asking, hangUp := context.WithCancel(context.WithoutCancel(ctx)) // a command may have to be waited for
	answers := make(chan fleaseAnswer)
	go func() {
		defer close(answers)
		o.listen(asking, resource, answers)
	}()
	defer func() {
		hangUp() // the member releases it
		for range answers {
			continue
		}
	}()
	var late <-chan time.Time
	if o.wait > 0 {
		timer := time.NewTimer(o.wait + fleaseGrace)
		defer timer.Stop()
		late = timer.C
	}
	for {
		select {
		case <-ctx.Done():
			return statusInterrupted
		case <-late:
			return fmt.Errorf("%s was not to be had within %v, and the member at %s does not say why", resource, o.wait, o.member)
		case a := <-answers:
			switch a.State {
			case "waiting":
				if err := write(o.errs, fmt.Sprintf("waiting for %s: %s\n", shown(resource), shown(a.Why))); err != nil {
					return err
				}
				continue
			case "held":
			default:
				return errors.New(a.Why)
			}
			if err := write(o.out, o.text(a)); err != nil {
				return err
			}
			return o.hold(ctx, a, answers)
		}
	}
}

// fleaseGrace is how much longer than it was told to a member may take to say that
// it waits no more.
const fleaseGrace = 2 * time.Second

func (o *fleaseAcquire) text(a fleaseAnswer) string {
	if o.json {
		line, err := json.Marshal(a)
		if err != nil {
			panic(err) // numbers, strings and a time
		}
		return string(line) + "\n"
	}
	return fmt.Sprintf("%s is held by member %d, fence %s\n", shown(a.Resource), a.Member, a.Fence)
}

// listen asks a member, and passes on what it answers until that ends. The last
// answer says why it does.
func (o *fleaseAcquire) listen(ctx context.Context, resource string, answers chan<- fleaseAnswer) {
	pass := func(a fleaseAnswer) bool {
		select {
		case answers <- a:
			return true
		case <-ctx.Done():
			return false
		}
	}
	broken := o.ask(ctx, resource, pass)
	pass(fleaseAnswer{State: "over", Resource: resource, Why: broken.Error()})
}

// ask passes on what a member answers, and returns why there is no more.
func (o *fleaseAcquire) ask(ctx context.Context, resource string, pass func(fleaseAnswer) bool) error {
	body, err := json.Marshal(fleaseRequest{Resource: resource, Try: o.try, WaitMillis: int64((o.wait + time.Millisecond - 1) / time.Millisecond)})
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+o.member+"/v1/acquire", bytes.NewReader(body))
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return noMember(o.member, err)
	}
	defer response.Body.Close() //nolint:errcheck // it is of no use any more
	if response.Header.Get("Content-Type") != fleaseAnswerType {
		text, _ := io.ReadAll(io.LimitReader(response.Body, 1<<10))
		return fmt.Errorf("%s answers %s: %s", o.member, response.Status, shown(string(bytes.TrimSpace(text))))
	}
	for lines := json.NewDecoder(response.Body); ; {
		var a fleaseAnswer
		if err := lines.Decode(&a); err != nil {
			return fmt.Errorf("the member at %s went away: %w", o.member, err)
		}
		if !pass(a) {
			return ctx.Err()
		}
	}
}

// hold keeps the lease while the command runs, or until it is interrupted. The
// member tells when it ends; if the member is silent, the clock does, which it
// shares with us.
func (o *fleaseAcquire) hold(ctx context.Context, held fleaseAnswer, answers <-chan fleaseAnswer) error {
	command, err := o.start(held)
	if err != nil {
		return err
	}
	defer command.forget()
	end := time.NewTimer(time.Until(held.Until))
	defer end.Stop()
	interrupted := ctx.Done()
	for {
		why := "the member has not renewed it"
		select {
		case err := <-command.done():
			return err
		case <-interrupted:
			if command == nil {
				return nil
			}
			command.terminate()
			interrupted = nil
			continue
		case a := <-answers:
			if a.State == "held" {
				end.Reset(time.Until(a.Until))
				continue
			}
			why = a.Why
		case <-end.C:
		}
		if command != nil {
			command.kill()
		}
		return fmt.Errorf("%s: the lease is over: %s", held.Resource, why)
	}
}

// start starts the command, if there is one.
func (o *fleaseAcquire) start(held fleaseAnswer) (*fleaseCommand, error) {
	if len(o.command) == 0 {
		return nil, nil
	}
	env := []string{"FLEASE_RESOURCE=" + held.Resource, "FLEASE_FENCE=" + held.Fence}
	return startFleaseCommand(o.command, env, o.in, o.out, o.errs)
}
