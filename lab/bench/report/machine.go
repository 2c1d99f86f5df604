package report

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/prometheus/procfs"
)

// A Machine is where something was measured.
type Machine struct {
	CPU    string  `json:"cpu"`
	Cores  int     `json:"cores"`
	System string  `json:"system"`
	Load   float64 `json:"loadBefore"` // of the last minute before the benchmark
	Go     string  `json:"go"`
}

// Here describes this computer. Without Linux most of it is unknown.
func Here() Machine {
	m := Machine{
		CPU: "unknown", Cores: runtime.NumCPU(), System: runtime.GOOS + "/" + runtime.GOARCH, Go: runtime.Version(),
	}
	if release, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		m.System += ", Linux " + strings.TrimSpace(string(release))
	}
	proc, err := procfs.NewDefaultFS()
	if err != nil {
		return m
	}
	if cpus, err := proc.CPUInfo(); err == nil && len(cpus) > 0 {
		m.CPU = cpus[0].ModelName
	}
	if load, err := proc.LoadAvg(); err == nil {
		m.Load = load.Load1
	}
	return m
}

// String returns the description in a line.
func (m Machine) String() string {
	return fmt.Sprintf("%s, %d cores, %s, %s; load before: %.1f", m.CPU, m.Cores, m.System, m.Go, m.Load)
}

// Versions returns those of the given modules that this program was built with, as
// "path version".
func Versions(modules ...string) []string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return nil
	}
	return versionsIn(info.Deps, modules)
}

func versionsIn(deps []*debug.Module, modules []string) []string {
	var found []string
	for _, path := range modules {
		i := slices.IndexFunc(deps, func(m *debug.Module) bool { return m.Path == path })
		if i < 0 {
			continue
		}
		version := deps[i].Version
		if r := deps[i].Replace; r != nil && r.Version != "" {
			version = r.Version
		}
		found = append(found, path+" "+version)
	}
	return found
}
