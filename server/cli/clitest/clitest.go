// Package clitest provides commands and environment variables for testscripts of a program.
package clitest

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// Commands returns the commands added to those of testscript:
//
//	status N command...   runs a command, and expects exit status N
//	jsonhas FIELD...      expects stdout to be one JSON object with these fields
//	jsonsave FIELD FILE   writes the value of a field of the JSON object to a file
func Commands() map[string]func(*testscript.TestScript, bool, []string) {
	return map[string]func(*testscript.TestScript, bool, []string){
		"status": status, "jsonhas": jsonHas, "jsonsave": jsonSave,
	}
}

// LetScriptsBuild sets the caches of the go command and $CHECKOUT, the root of the repository,
// for scripts, which have no home directory. Builds use no network. It is for programs in cmd.
func LetScriptsBuild(env *testscript.Env) error {
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

func status(ts *testscript.TestScript, neg bool, args []string) {
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

func jsonHas(ts *testscript.TestScript, neg bool, args []string) {
	object := stdoutObject(ts)
	for _, name := range args {
		if _, has := object[name]; has == neg {
			ts.Fatalf("field %s: present %t, want %t", name, has, !neg)
		}
	}
}

func jsonSave(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: jsonsave FIELD FILE")
	}
	value, ok := stdoutObject(ts)[args[0]]
	if !ok {
		ts.Fatalf("the JSON object has no field %s", args[0])
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), value, 0o600))
}

// stdoutObject parses stdout as exactly one JSON object.
func stdoutObject(ts *testscript.TestScript) map[string]json.RawMessage {
	d := json.NewDecoder(strings.NewReader(ts.ReadFile("stdout")))
	var object map[string]json.RawMessage
	ts.Check(d.Decode(&object))
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		ts.Fatalf("stdout has more than one JSON object")
	}
	return object
}
