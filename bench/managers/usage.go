package managers

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Usage is what a process has used: seconds of a core so far, and bytes of memory.
type Usage struct{ CPU, Memory float64 }

// Usage reads it from the manager's metrics.
func (m *Manager) Usage(ctx context.Context) (out Usage, err error) {
	err = m.metrics(ctx, map[string]*float64{"process_cpu_seconds_total": &out.CPU, "process_resident_memory_bytes": &out.Memory})
	return out, err
}

// StoreLeads reports whether its store leads those of the group.
func (m *Manager) StoreLeads(ctx context.Context) (bool, error) {
	var leads float64
	err := m.metrics(ctx, map[string]*float64{"etcd_server_is_leader": &leads})
	return leads == 1, err
}

// metrics reads some of the metrics.
func (m *Manager) metrics(ctx context.Context, into map[string]*float64) error {
	body, err := get(ctx, "http://"+m.http+"/metrics")
	if err != nil {
		return err
	}
	defer body.Close() //nolint:errcheck // it has been read
	found := 0
	lines := bufio.NewScanner(body)
	for lines.Scan() {
		name, text, _ := strings.Cut(lines.Text(), " ")
		to := into[name]
		if to == nil {
			continue
		}
		if *to, err = strconv.ParseFloat(text, 64); err != nil {
			return fmt.Errorf("the metric %s: %w", name, err)
		}
		found++
	}
	if found < len(into) {
		return errors.Join(lines.Err(), fmt.Errorf("the manager at %s lacks some metrics", m.http))
	}
	return nil
}

// Profile writes what its processors do for a while, for "go tool pprof".
func (m *Manager) Profile(ctx context.Context, to io.Writer, during time.Duration) error {
	return m.pprof(ctx, to, fmt.Sprintf("profile?seconds=%d", int(during.Seconds())))
}

// Heap writes what is in its memory, the same way.
func (m *Manager) Heap(ctx context.Context, to io.Writer) error { return m.pprof(ctx, to, "heap?gc=1") }

func (m *Manager) pprof(ctx context.Context, to io.Writer, what string) error {
	body, err := get(ctx, "http://"+m.debug+"/debug/pprof/"+what)
	if err != nil {
		return err
	}
	defer body.Close() //nolint:errcheck // it has been read
	_, err = io.Copy(to, body)
	return err
}

func get(ctx context.Context, url string) (io.ReadCloser, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode != http.StatusOK {
		_ = answer.Body.Close()
		return nil, fmt.Errorf("%s: %s", url, answer.Status)
	}
	return answer.Body, nil
}
