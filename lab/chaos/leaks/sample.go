package leaks

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"runtime"
	"runtime/metrics"
	"strconv"
	"strings"

	"github.com/prometheus/procfs"
)

// A Sample is what a process uses at a moment; 0 is unknown.
type Sample struct {
	Memory      float64 `json:"memory"` // anonymous bytes; mapped files do not count
	Heap        float64 `json:"heap"`   // bytes in use after the last garbage collection
	Goroutines  float64 `json:"goroutines"`
	Descriptors float64 `json:"descriptors"`
}

// and merges two samples of one moment.
func (s Sample) and(t Sample) Sample {
	return Sample{
		Memory: max(s.Memory, t.Memory), Heap: max(s.Heap, t.Heap),
		Goroutines: max(s.Goroutines, t.Goroutines), Descriptors: max(s.Descriptors, t.Descriptors),
	}
}

// Outside is what the system knows of a process.
func Outside(pid int) (Sample, error) {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return Sample{}, err
	}
	status, err := p.NewStatus()
	open, failed := p.FileDescriptorsLen()
	return Sample{Memory: float64(status.RssAnon), Descriptors: float64(open)}, errors.Join(err, failed)
}

// Inside is what a process knows of itself.
func Inside() Sample {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	s := Sample{Goroutines: float64(runtime.NumGoroutine())}
	if live[0].Value.Kind() == metrics.KindUint64 {
		s.Heap = float64(live[0].Value.Uint64())
	}
	return s
}

// Serve answers with what a process knows of itself.
func Serve(w http.ResponseWriter, _ *http.Request) {
	_ = json.NewEncoder(w).Encode(Inside()) // a client that is gone needs no answer
}

// Read reads such an answer.
func Read(from io.Reader) (s Sample, err error) {
	err = json.NewDecoder(from).Decode(&s)
	return s, err
}

// ReadMetrics reads the metrics without labels of a page in the format of Prometheus.
func ReadMetrics(from io.Reader) (map[string]float64, error) {
	found := make(map[string]float64)
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		name, text, _ := strings.Cut(lines.Text(), " ")
		if value, err := strconv.ParseFloat(text, 64); err == nil {
			found[name] = value
		}
	}
	return found, lines.Err()
}

// FromMetrics is what a process says of itself in its metrics. The heap in use after the last
// garbage collection follows from the size at which the next one begins.
func FromMetrics(found map[string]float64) Sample {
	growth := 1.0
	if percent, ok := found["go_gc_gogc_percent"]; ok {
		growth = percent / 100
	}
	return Sample{Heap: found["go_memstats_next_gc_bytes"] / (1 + growth), Goroutines: found["go_goroutines"]}
}
