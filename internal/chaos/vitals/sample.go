package vitals

import (
	"encoding/json"
	"io"
	"net/http"
	"runtime"
	"runtime/metrics"
)

// A Sample is what a process has at a moment; 0 is what nobody knows.
type Sample struct {
	Memory      float64 `json:"memory"`      // bytes that are its own; what it maps of files is the system's to keep or not
	Heap        float64 `json:"heap"`        // bytes that were in use when garbage was last collected
	Goroutines  float64 `json:"goroutines"`  //
	Descriptors float64 `json:"descriptors"` //
}

// and adds what one knows to what another knows.
func (s Sample) and(t Sample) Sample {
	return Sample{
		Memory: max(s.Memory, t.Memory), Heap: max(s.Heap, t.Heap),
		Goroutines: max(s.Goroutines, t.Goroutines), Descriptors: max(s.Descriptors, t.Descriptors),
	}
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
	_ = json.NewEncoder(w).Encode(Inside()) // whoever is gone needs no answer
}

// Read reads such an answer.
func Read(from io.Reader) (s Sample, err error) {
	err = json.NewDecoder(from).Decode(&s)
	return s, err
}
