package main

import (
	"fmt"
	"strings"
)

// A target is a package with the stages that run against its mutants.
type target struct {
	dir    string
	goal   float64 // the kill rate that it must reach, in percent
	stages []stage
}

// A stage is a test binary, or a program.
type stage struct {
	name string // in results
	dir  string // of the package
	args []string
}

const (
	ownTests = "own tests"
	core     = "internal/core/"
	search   = "lab/mutant/search"
)

// isProgram reports whether the stage is a program that prints violations as JSON, and not a test binary.
func (s stage) isProgram() bool { return s.dir == search }

// The simulators.
var (
	worlds   = stage{"sim", search, []string{"sim", "--seeds=30"}}
	diskless = stage{"diskless", search, []string{"sim", "--diskless", "--seeds=30"}}
	moves    = stage{"moves", search, []string{"sim", "--seeds=30", "--owners=2", "--namespaces=1", "--faults=move-range=30,manager-crash=30,manager-pause=20,isolate=30,loss=10"}}
	fleases  = stage{"flease", search, []string{"flease", "--seeds=100"}}
	procs    = stage{"procsim", "lab/procsim", []string{"-test.run=^TestWorlds$", "-worlds=4"}}
)

// tests is the stage of the tests of a package.
func tests(dir string) stage { return stage{name: dir, dir: dir} }

var targets = []target{
	coreTarget("mono", tests(core+"machine/owner"), worlds),
	coreTarget("keyrange", tests(core+"table"), tests(core+"machine/owner"), worlds),
	coreTarget("table", tests(core+"machine/lookup"), worlds),
	coreTarget("protocol", tests(core+"machine/owner"), tests(core+"machine/managerproc"), worlds),
	coreTarget("changelog", tests(core+"machine/managerproc"), worlds),
	coreTarget("storage", tests(core+"machine/managerproc"), worlds, diskless),
	coreTarget("keyindex"),
	coreTarget("hotkeys"),
	coreTarget("machine/owner", worlds, moves),
	coreTarget("machine/lookup", worlds),
	coreTarget("machine/relay", worlds),
	coreTarget("machine/memcatalog", diskless),
	coreTarget("machine/managerproc", worlds, diskless),
	coreTarget("machine/leadership/bylease", diskless),
	coreTarget("machine/leadership/byrecord", worlds),
	coreTarget("machine/flease", fleases),
	coreTarget("machine/manager", worlds, moves),
	shellTarget("internal/runtime/store/kv", tests("store/mem"), procs),
	shellTarget("internal/runtime/statemove", procs),
	shellTarget("manager/internal/memcatalog", procs),
	shellTarget("lookup", procs),
	shellTarget("owner", procs),
	shellTarget("manager", procs),
}

func coreTarget(name string, more ...stage) target { return newTarget(core+name, 90, more) }

func shellTarget(dir string, more ...stage) target { return newTarget(dir, 80, more) }

func newTarget(dir string, goal float64, more []stage) target {
	return target{dir, goal, append([]stage{{name: ownTests, dir: dir}}, more...)}
}

// findTarget returns the target of a directory such as ./internal/core/table.
func findTarget(dir string) (target, error) {
	dir = strings.Trim(strings.TrimPrefix(dir, "./"), "/")
	known := make([]string, len(targets))
	for i, t := range targets {
		if t.dir == dir {
			return t, nil
		}
		known[i] = t.dir
	}
	return target{}, fmt.Errorf("-package %s: want one of these, or add it to lab/mutagen/target.go:\n  %s", dir, strings.Join(known, "\n  "))
}
