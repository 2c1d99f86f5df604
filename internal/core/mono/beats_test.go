package mono_test

import (
	"math"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/core/mono"
)

func TestBeats(t *testing.T) {
	const ms = time.Millisecond
	at := func(d time.Duration) mono.Instant { return mono.Instant(0).Add(d) }
	for _, test := range []struct {
		name                string
		beats               mono.Beats
		not, interval, want time.Duration
	}{
		{"none", mono.Beats{}, 1234567, 5 * time.Second, 1234567},
		{"too often for beats", mono.BeatsAt(at(7 * ms)), 1234 * ms, 300 * ms, 1234 * ms},
		{"the shortest", mono.BeatsAt(at(7 * ms)), 1234 * ms, 320 * ms, 1227 * ms},
		{"the longest interval of 10 ms", mono.BeatsAt(at(7 * ms)), 1238 * ms, 639 * ms, 1237 * ms},
		{"the shortest interval of 20 ms", mono.BeatsAt(at(7 * ms)), 1238 * ms, 640 * ms, 1227 * ms},
		{"a usual renewal", mono.BeatsAt(at(7 * ms)), 1234 * ms, 2500 * ms, 1207 * ms},    // 40 ms
		{"a usual poll", mono.BeatsAt(at(7 * ms)), 1234 * ms, 5 * time.Second, 1207 * ms}, // 80 ms
		{"a rare poll", mono.BeatsAt(at(7 * ms)), 1300 * ms, 30 * time.Second, 1287 * ms}, // 640 ms
		{"a very rare poll", mono.BeatsAt(at(7 * ms)), 1300 * ms, 24 * time.Hour, 1287 * ms},
		{"no longer beat than the longest", mono.BeatsAt(at(7 * ms)), 700 * ms, 24 * time.Hour, 647 * ms},
		{"before the reference beat", mono.BeatsAt(at(10 * time.Second)), 999 * ms, 2500 * ms, 960 * ms},
		{"on a beat", mono.BeatsAt(at(7 * ms)), 1287 * ms, 30 * time.Second, 1287 * ms},
		{"never", mono.BeatsAt(at(7 * ms)), time.Duration(mono.Never), time.Hour, time.Duration(mono.Never)},
	} {
		if got := test.beats.Last(at(test.not), test.interval); got != at(test.want) {
			t.Errorf("%s: %v, want %v", test.name, got, at(test.want))
		}
	}
}

// FuzzBeats: a beat is never late, and early by a thirty-second of the interval at most, for any
// wall clock. The longer beats are a subset of the shorter ones.
func FuzzBeats(f *testing.F) {
	f.Add(int64(7), int64(1234567890), int64(5*time.Second))
	f.Add(int64(-1<<62), int64(1<<62), int64(time.Hour))
	f.Fuzz(func(t *testing.T, first, not, interval int64) {
		if interval <= 0 || first < math.MinInt64/4 || first > math.MaxInt64/4 || not < math.MinInt64/4 || not > math.MaxInt64/4 {
			t.Skip("no such time")
		}
		beats, at, every := mono.BeatsAt(mono.Instant(first)), mono.Instant(not), time.Duration(interval)
		got := beats.Last(at, every)
		if early := at.Sub(got); early < 0 || early > every/32 {
			t.Errorf("Last(%v, %v) is %v, %v before", at, every, got, early)
		}
		if longer := beats.Last(at, 10*time.Minute); longer > got && every >= time.Second {
			t.Errorf("a long beat at %v is after the short one at %v", longer, got)
		}
	})
}
