package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/leasehold-dev/leasehold/internal/leak"
)

func TestMain(m *testing.M) {
	if named := filepath.Base(os.Args[0]); named != "leasehold" && len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-") {
		// A command that was to be refused was not, and runs its own program again. If that
		// ran all tests, it would never end.
		fmt.Fprintf(os.Stderr, "%s %s: these are the tests of leasehold, and not leasehold\n", named, os.Args[1])
		os.Exit(2)
	}
	testscript.Main(leak.Checked{Tests: m}, map[string]func(){"leasehold": main})
}

// TestScripts runs the real command as a user would. Besides what testscript
// has, the scripts know:
//
//	status N command...   runs a command, and wants it to exit with status N
//	jsonhas FIELD...      wants stdout to be one JSON object with these fields
//	jsonsave FIELD FILE   does the same, and writes a field's value to a file
//
// $MANAGER is the address of a fake manager of the script's own, $MUTE that of
// something that accepts connections and never says a word, and $DEAD one where
// nobody listens.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		Setup:               setUpScript,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"status":   scriptStatus,
			"jsonhas":  scriptJSONHas,
			"jsonsave": scriptJSONSave,
		},
	})
}

func setUpScript(env *testscript.Env) error {
	env.Setenv("TZ", "UTC")
	manager, err := (&fakeManager{unread: -1}).start(env.Defer)
	if err != nil {
		return err
	}
	env.Setenv("MANAGER", manager.addr)
	mute, err := net.Listen("tcp", "127.0.0.1:0") // its queue accepts
	if err != nil {
		return err
	}
	env.Defer(func() { _ = mute.Close() })
	env.Setenv("MUTE", mute.Addr().String())
	// The near end of a connection has a port that nobody else is given, and
	// where nobody listens.
	dead, err := net.Dial("tcp", mute.Addr().String())
	if err != nil {
		return err
	}
	env.Defer(func() { _ = dead.Close() })
	env.Setenv("DEAD", dead.LocalAddr().String())
	return letScriptsBuild(env)
}

// letScriptsBuild gives scripts, which have no home directory, the caches of
// the go command and $CHECKOUT, the root of this module. They need no network.
func letScriptsBuild(env *testscript.Env) error {
	root, err := filepath.Abs("../..")
	if err != nil {
		return err
	}
	env.Setenv("CHECKOUT", root)
	env.Setenv("GOPROXY", "off")
	for _, name := range []string{"GOCACHE", "GOMODCACHE", "GOFLAGS", "GOTOOLCHAIN"} {
		value, err := exec.Command("go", "env", name).Output()
		if err != nil {
			return err
		}
		env.Setenv(name, strings.TrimSpace(string(value)))
	}
	return nil
}

func scriptStatus(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status N command...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	var ended *exec.ExitError
	switch err := ts.Exec(args[1], args[2:]...); {
	case errors.As(err, &ended):
		got = ended.ExitCode()
	case err != nil:
		ts.Fatalf("%v", err)
	}
	if got != want {
		ts.Fatalf("exit status %d, want %d", got, want)
	}
}

func scriptJSONHas(ts *testscript.TestScript, neg bool, args []string) {
	object := stdoutObject(ts)
	for _, name := range args {
		if _, has := object[name]; has == neg {
			ts.Fatalf("field %s: present %t, want %t", name, has, !neg)
		}
	}
}

func scriptJSONSave(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: jsonsave FIELD FILE")
	}
	value, ok := stdoutObject(ts)[args[0]]
	if !ok {
		ts.Fatalf("there is no field %s", args[0])
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), value, 0o600))
}

// stdoutObject is the one JSON object that stdout must be.
func stdoutObject(ts *testscript.TestScript) map[string]json.RawMessage {
	d := json.NewDecoder(strings.NewReader(ts.ReadFile("stdout")))
	var object map[string]json.RawMessage
	ts.Check(d.Decode(&object))
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		ts.Fatalf("there is more on stdout than one JSON object")
	}
	return object
}
