package policylab

import (
	"bytes"
	"math"
	"testing"

	"github.com/leasehold-dev/leasehold"
)

// FuzzRecorded: a file of loads is rejected with the number of the line, or is a workload with finite loads.
func FuzzRecorded(f *testing.F) {
	for _, text := range []string{
		"{\"period\": 0, \"key\": \"4f21c3aa00000000\", \"rate\": 130.5}\n{\"period\": 2, \"range\": \"8000000000000000-end\", \"rate\": 2000}\n",
		"period,keys,rate\n0,4f21c3aa00000000,1\n0,8000000000000000-end,1e15\n# x\n\n7,ffffffffffffffff,0\n",
		"period,keys,rate\n1,0000000000000000-end,NaN\n", "{\"period\": -1}\n", "{}{}", "period,keys,rate\n0,a,b,c\n", "\xff",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		w, err := ReadRecorded(bytes.NewReader(text))
		if err != nil {
			if leasehold.KindOf(err) != leasehold.ErrInvalid {
				t.Fatal(err)
			}
			return
		}
		for _, period := range []int{0, 1, MaxPeriods - 1} {
			if total := w.At(period).Total(); math.IsNaN(total) || math.IsInf(total, 0) || total < 0 {
				t.Fatalf("the load of period %d is %v", period, total)
			}
		}
	})
}
