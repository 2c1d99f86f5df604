package report

import (
	"fmt"
	"os"
	"runtime"
	"strings"

	"github.com/prometheus/procfs"
)

// A Machine describes the machine of a run.
type Machine struct {
	CPU    string  `json:"cpu"`
	Cores  int     `json:"cores"`
	System string  `json:"system"`
	Load   float64 `json:"loadBefore"` // of the minute before the run
	Go     string  `json:"go"`
}

// here describes this machine. Most of it requires Linux.
func here() Machine {
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
