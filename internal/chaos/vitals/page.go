package vitals

import (
	"bufio"
	"io"
	"strconv"
	"strings"
)

// ReadPage finds what a process knows of itself on its page of metrics, as managers and
// stores have it. The page has no number for what was in use when garbage was last
// collected, but for how much more than that may be before it is collected again.
func ReadPage(from io.Reader) (Sample, error) {
	found := make(map[string]float64)
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		name, text, ok := strings.Cut(lines.Text(), " ")
		if !ok || !strings.HasPrefix(name, "go_") {
			continue
		}
		if value, err := strconv.ParseFloat(text, 64); err == nil {
			found[name] = value
		}
	}
	growth := 1.0
	if percent, ok := found["go_gc_gogc_percent"]; ok {
		growth = percent / 100
	}
	return Sample{Heap: found["go_memstats_next_gc_bytes"] / (1 + growth), Goroutines: found["go_goroutines"]}, lines.Err()
}
