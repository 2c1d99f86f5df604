package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
)

// runAsked is a process that is asked to end, and does as its argument says. It
// says something when it is ready to be asked.
func runAsked(args []string) error {
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGTERM)
	fmt.Println("ready")
	<-asked
	switch args[0] {
	case "obeys":
		os.Exit(0)
	case "stays":
		select {}
	}
	return errors.New("it has fallen over its own feet")
}

// TestAMemberFinishes when it is asked to, or else it is known why it did not;
// in any case it is gone, and that is nobody's failure who did not ask.
func TestAMemberFinishes(t *testing.T) {
	if !canSuspend {
		t.Skip("processes cannot be asked to end on this system")
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ how, want string }{
		{"obeys", ""},
		{"stays", "context canceled"},
		{"fails", "exit status 3; the last lines of "},
	} {
		t.Run(test.how, func(t *testing.T) {
			ready := make(chan struct{})
			m := &member{name: "asked", ended: func(error) {}, launch: launch{
				program: program, args: []string{"asked", test.how}, log: filepath.Join(t.TempDir(), "log"),
				output: func(r io.Reader) error {
					_, err := io.ReadFull(r, make([]byte, len("ready")))
					close(ready)
					_, _ = io.Copy(io.Discard, r)
					return err
				},
			}}
			if err := m.start(); err != nil {
				t.Fatal(err)
			}
			defer m.close()
			<-ready
			patience := time.Minute
			if test.how == "stays" {
				patience = 0
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			late := time.AfterFunc(patience, cancel)
			defer late.Stop()
			err := m.finish(ctx)
			if got := fmt.Sprint(err); (err == nil) != (test.want == "") || err != nil && !strings.Contains(got, test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
			if m.life() != 0 {
				t.Error("it is still there")
			}
		})
	}
}

// TestWhoIsToBlame for a loss.
func TestWhoIsToBlame(t *testing.T) {
	c := &cluster{}
	by := func(owner leasehold.OwnerID) bool { return c.byRestart(leasehold.Loss{Owner: owner}) }
	if by("a") {
		t.Error("nobody was restarted")
	}
	c.blame("a")
	if !by("a") || by("b") || by("") {
		t.Error("only a is restarted")
	}
	c.blame("")
	if by("a") || by("") {
		t.Error("nobody is restarted any more")
	}
	c.cfg.Rolling = true
	if !by("b") {
		t.Error("nothing but restarts can be to blame")
	}
}
