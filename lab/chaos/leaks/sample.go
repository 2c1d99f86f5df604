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

// A Sample is the resource usage of a process at a time; 0 is unknown.
type Sample struct {
	Memory      float64 `json:"memory"` // anonymous bytes; mapped files do not count
	Heap        float64 `json:"heap"`   // bytes in use after the last garbage collection
	Goroutines  float64 `json:"goroutines"`
	Descriptors float64 `json:"descriptors"`
}

// and merges two samples of the same time.
func (s Sample) and(t Sample) Sample {
	return Sample{
		Memory: max(s.Memory, t.Memory), Heap: max(s.Heap, t.Heap),
		Goroutines: max(s.Goroutines, t.Goroutines), Descriptors: max(s.Descriptors, t.Descriptors),
	}
}

// Outside returns the usage of a process according to the system.
func Outside(pid int) (Sample, error) {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return Sample{}, err
	}
	status, err := p.NewStatus()
	open, failed := p.FileDescriptorsLen()
	return Sample{Memory: float64(status.RssAnon), Descriptors: float64(open)}, errors.Join(err, failed)
}

// Inside returns the usage of this process according to its runtime.
func Inside() Sample {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	s := Sample{Goroutines: float64(runtime.NumGoroutine())}
	if live[0].Value.Kind() == metrics.KindUint64 {
		s.Heap = float64(live[0].Value.Uint64())
	}
	return s
}

// Serve responds with the result of Inside.
func Serve(w http.ResponseWriter, _ *http.Request) {
	_ = json.NewEncoder(w).Encode(Inside()) // an error means that the client has closed the connection
}

// Read parses the response of Serve.
func Read(from io.Reader) (s Sample, err error) {
	err = json.NewDecoder(from).Decode(&s)
	return s, err
}

// ReadMetrics parses the metrics without labels of a page in the Prometheus format.
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

// FromMetrics returns the usage of a process according to its metrics. The heap in use after the last garbage
// collection follows from the heap size of the next one.
func FromMetrics(found map[string]float64) Sample {
	growth := 1.0
	if percent, ok := found["go_gc_gogc_percent"]; ok {
		growth = percent / 100
	}
	return Sample{Heap: found["go_memstats_next_gc_bytes"] / (1 + growth), Goroutines: found["go_goroutines"]}
}
