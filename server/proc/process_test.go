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

// runChild prints "ready", waits for SIGTERM, and reacts to it as its argument requires.
func runChild(args []string) error {
	signaled := make(chan os.Signal, 1)
	signal.Notify(signaled, syscall.SIGTERM)
	fmt.Println("ready")
	<-signaled
	switch args[0] {
	case "obeys":
		os.Exit(0)
	case "stays":
		select {}
	}
	return errors.New("failed on purpose")
}

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "signaled" {
		go EndWithParent(os.Stdin)
		fmt.Fprintln(os.Stderr, runChild(os.Args[2:]))
		os.Exit(3)
	}
	leak.Main(m)
}

// TestTerminate: the result of Terminate is the reason why a process did not end normally. In each
// case the process ends, and Ended is not called.
func TestTerminate(t *testing.T) {
	if !CanPause {
		t.Skip("processes cannot be terminated on this system")
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
			m := &Process{Name: "signaled", Ended: func(err error) { t.Errorf("Ended was called: %v", err) }, Launch: Launch{
				Program: program, Args: []string{"signaled", test.how}, Log: filepath.Join(t.TempDir(), "log"),
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
			timeout := time.Minute
			if test.how == "stays" {
				timeout = 0
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			late := time.AfterFunc(timeout, cancel)
			defer late.Stop()
			err := m.Terminate(ctx)
			if got := fmt.Sprint(err); (err == nil) != (test.want == "") || err != nil && !strings.Contains(got, test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
			if m.Incarnation() != 0 {
				t.Error("the process still runs")
			}
		})
	}
}
