package kit

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
)

// A Machine is where something was measured.
type Machine struct {
	CPU    string  `json:"cpu"`
	Cores  int     `json:"cores"`
	System string  `json:"system"`
	Load   float64 `json:"loadBefore"` // the system's, over a minute, before it began
	Go     string  `json:"go"`
}

// Here describes the computer that we run on, as far as Linux tells. What cannot
// be found out is unknown.
func Here() Machine {
	m := Machine{
		CPU: "unknown", Cores: runtime.NumCPU(), System: runtime.GOOS + "/" + runtime.GOARCH, Go: runtime.Version(),
	}
	if f, err := os.Open("/proc/cpuinfo"); err == nil {
		m.CPU = cpuModel(f)
		_ = f.Close()
	}
	if release, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		m.System += ", Linux " + strings.TrimSpace(string(release))
	}
	if text, err := os.ReadFile("/proc/loadavg"); err == nil {
		_, _ = fmt.Sscan(string(text), &m.Load)
	}
	return m
}

// String says it in a line.
func (m Machine) String() string {
	return fmt.Sprintf("%s, %d cores, %s, %s; load before: %.1f", m.CPU, m.Cores, m.System, m.Go, m.Load)
}

// cpuModel finds the processor's name in what Linux says of it.
func cpuModel(cpuinfo io.Reader) string {
	lines := bufio.NewScanner(cpuinfo)
	for lines.Scan() {
		if key, value, ok := strings.Cut(lines.Text(), ":"); ok && strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}

// Versions returns those of the modules that this program was built with and
// that it names, as "path version", in the order of the names.
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
