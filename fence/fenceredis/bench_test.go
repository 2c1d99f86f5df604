//go:build unix

package fenceredis_test

import (
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/fence/fenceredis"
	"github.com/leasehold-dev/leasehold/internal/testkit/realservice"
	"github.com/redis/go-redis/v9"
)

// BenchmarkRun compares a script that writes one key with and without the guard, alternately.
func BenchmarkRun(b *testing.B) {
	client := closed(b, redis.NewClient(&redis.Options{Addr: realservice.StartRedis(b).Addr}))
	w := newWorld(client)
	const source = "return redis.call('SET', KEYS[1], ARGV[1])"
	keys := []string{"{alice}"}
	script, same := redis.NewScript(source), fenceredis.NewScript(source)
	var plain, guarded time.Duration
	for b.Loop() {
		began := time.Now()
		if err := script.Run(b.Context(), client, keys, "x").Err(); err != nil {
			b.Fatal(err)
		}
		plain += time.Since(began)

		began = time.Now()
		if err := w.guard.Run(b.Context(), client, same, "alice", 7, keys, "x").Err(); err != nil {
			b.Fatal(err)
		}
		guarded += time.Since(began)
	}
	b.ReportMetric(float64(plain.Microseconds())/float64(b.N), "plain-µs/op")
	b.ReportMetric(float64(guarded.Microseconds())/float64(b.N), "guarded-µs/op")
}
