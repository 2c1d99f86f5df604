//go:build unix

package dashboard_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	"github.com/leasehold-dev/leasehold/internal/testkit/leak"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// viewersEnv makes this program run viewers of a dashboard. Its value is their number and the
// address, separated by a space.
const viewersEnv = "LEASEHOLD_TEST_VIEWERS"

func TestMain(m *testing.M) {
	if job := os.Getenv(viewersEnv); job != "" {
		if err := runViewers(job); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	leak.Main(m)
}

// runViewers reads streams like browsers until standard input ends.
func runViewers(job string) error {
	number, url, _ := strings.Cut(job, " ")
	n, err := strconv.Atoi(number)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	var viewing sync.WaitGroup
	for range n {
		viewing.Go(func() {
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
			if err != nil {
				panic(err)
			}
			request.Header.Set("Accept-Encoding", "gzip")
			answer, err := http.DefaultTransport.RoundTrip(request)
			if err != nil {
				return
			}
			defer answer.Body.Close()               //nolint:errcheck // read-only
			_, _ = io.Copy(io.Discard, answer.Body) // until it ends
		})
	}
	_, err = io.Copy(io.Discard, os.Stdin)
	cancel()
	viewing.Wait()
	return err
}

// viewers starts n viewers in a separate process, and returns a function that stops them.
func (f *fleet) viewers(n int) (stop func()) {
	f.t.Helper()
	program, err := os.Executable()
	if err != nil {
		f.t.Fatal(err)
	}
	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d %sapi/stream?namespace=%s", viewersEnv, n, f.managers[0].page, pool))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		f.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		f.t.Fatal(err)
	}
	return func() {
		_ = in.Close()
		if err := cmd.Wait(); err != nil {
			f.t.Error(err)
		}
	}
}

func cpu(tb testing.TB) time.Duration {
	tb.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// BenchmarkViewer measures the cost of a viewer for the manager, in per cent of a core, with 1,000
// owners, 64,000 ranges and 10 changes a second: the CPU time with viewers minus the time
// without, divided by their number. The first viewer includes the cost of the hub.
//
// The garbage collector runs at irregular times and uses more CPU time than all viewers, so it is
// off during a measurement. Its share is added separately: the allocated bytes, times the cost of
// a collection per byte.
//
//	go test -run '^$' -bench Viewer -benchtime 1x ./server/dashboard
func BenchmarkViewer(b *testing.B) {
	config := large()
	config.Timing = &leaseholdv1.Timing{Lease: int64(time.Hour), Renew: int64(15 * time.Minute), Drift: 1.2} // no renewals during the measurement
	f := startFleet(b, 1, config)
	f.crowd(manyOwners)
	ctx, cancel := context.WithCancel(context.Background())
	var changing sync.WaitGroup
	changing.Go(func() { f.churn(ctx) })
	defer changing.Wait()
	defer cancel()
	perByte := collecting(b)
	b.Logf("a collection costs %.2f s of a core for each GB allocated", perByte*1e9)
	// cost compares each measurement with one just before, without viewers, because the other
	// load of the process varies.
	cost := func(viewers, pairs int) float64 {
		var costs []float64
		for range pairs {
			without := spend(b)
			stop := f.viewers(viewers)
			with := spend(b)
			stop()
			more := (with.cpu - without.cpu + (with.allocated-without.allocated)*perByte) / spending.Seconds()
			b.Logf("%d viewers: %.2f s of a core and %.0f MB in %v, without %.2f s and %.0f MB", viewers, with.cpu, with.allocated/1e6, spending, without.cpu, without.allocated/1e6)
			costs = append(costs, 100*more/float64(viewers))
			time.Sleep(17 * time.Second) // the hub has ended
		}
		slices.Sort(costs)
		b.Logf("%d viewers: %.2f %% of a core each", viewers, costs)
		return costs[len(costs)/2]
	}
	for b.Loop() {
		b.ReportMetric(cost(1, 9), "%core/1-viewer")
		b.ReportMetric(cost(50, 3), "%core/viewer-of-50")
	}
}

// spending is the duration of a measurement.
const spending = 8 * time.Second

// spent is the resource usage of a process: CPU seconds and allocated bytes.
type spent struct{ cpu, allocated float64 }

func spentYet(b *testing.B) spent {
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	return spent{cpu: cpu(b).Seconds(), allocated: float64(memory.TotalAlloc)}
}

// spend returns the usage of the process during a measurement without garbage collection.
func spend(b *testing.B) spent {
	time.Sleep(3 * time.Second) // after the initial snapshot
	runtime.GC()
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	before := spentYet(b)
	time.Sleep(spending)
	after := spentYet(b)
	return spent{cpu: after.cpu - before.cpu, allocated: after.allocated - before.allocated}
}

// collecting returns the CPU seconds of the collector for each allocated byte. A collection runs
// when the allocations since the last one equal the live heap.
func collecting(b *testing.B) float64 {
	const rounds = 5
	runtime.GC()
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	sample := []metrics.Sample{{Name: "/cpu/classes/gc/mark/assist:cpu-seconds"}, {Name: "/cpu/classes/gc/mark/dedicated:cpu-seconds"}, {Name: "/cpu/classes/gc/mark/idle:cpu-seconds"}}
	total := func() (sum float64) {
		metrics.Read(sample)
		for _, s := range sample {
			sum += s.Value.Float64()
		}
		return sum
	}
	before := total()
	for range rounds {
		runtime.GC()
	}
	return (total() - before) / rounds / float64(memory.HeapAlloc)
}

// churn moves a range back and forth five times a second, with two changes each.
func (f *fleet) churn(ctx context.Context) {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for i := 0; ; i++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		_, _ = f.admin().MoveRange(ctx, &leaseholdv1.MoveRangeRequest{ // if one fails, the next does not
			Version: wire.Version, Namespace: pool, Owner: fmt.Sprintf("server-%04d", i%2), ByKey: true, Start: 1 << 60, LoseState: true,
		})
	}
}
