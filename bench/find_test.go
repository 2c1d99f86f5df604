package bench

import "testing"

func BenchmarkFind(b *testing.B) {
	all, err := Contestants()
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range all {
		defer c.Close()
		b.Run(c.Name, func(b *testing.B) {
			b.ReportAllocs()
			c.Run(asked) // warm up
			b.ResetTimer()
			c.Run(b.N)
		})
	}
}

// TestContestantsFind checks that each finds an address for every name, of the
// length that all addresses have: a contest with somebody who finds nothing
// would prove nothing.
func TestContestantsFind(t *testing.T) {
	all, err := Contestants()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range all {
		defer c.Close()
		got := c.Run(asked)
		if want := asked * len(address(0)); c.Name != Index && got != want {
			t.Errorf("%s: the addresses have %d bytes, want %d", c.Name, got, want)
		}
		if c.Name == Index && got == 0 {
			t.Errorf("%s: every name is in the first range", c.Name)
		}
	}
}
