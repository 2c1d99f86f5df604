package proc

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

	"github.com/leasehold-dev/leasehold/internal/testkit/leak"
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

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "asked" {
		go EndWithParent(os.Stdin)
		fmt.Fprintln(os.Stderr, runAsked(os.Args[2:]))
		os.Exit(3)
	}
	leak.Main(m)
}

// TestTerminate when it is asked to, or else it is known why it did not;
// in any case it is gone, and that is nobody's failure who did not ask.
func TestTerminate(t *testing.T) {
	if !CanPause {
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
			m := &Process{Name: "asked", Ended: func(err error) { t.Errorf("it is said to have ended by itself: %v", err) }, Launch: Launch{
				Program: program, Args: []string{"asked", test.how}, Log: filepath.Join(t.TempDir(), "log"),
				Output: func(r io.Reader) error {
					_, err := io.ReadFull(r, make([]byte, len("ready")))
					close(ready)
					_, _ = io.Copy(io.Discard, r)
					return err
				},
			}}
			if err := m.Start(); err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			<-ready
			patience := time.Minute
			if test.how == "stays" {
				patience = 0
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			late := time.AfterFunc(patience, cancel)
			defer late.Stop()
			err := m.Terminate(ctx)
			if got := fmt.Sprint(err); (err == nil) != (test.want == "") || err != nil && !strings.Contains(got, test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
			if m.Incarnation() != 0 {
				t.Error("it is still there")
			}
		})
	}
}
