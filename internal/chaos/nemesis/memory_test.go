package nemesis

import "testing"

func TestDataIn(t *testing.T) {
	if got, err := dataIn("VmRSS:\t  1 kB\nVmData:\t   12 kB\nVmStk:\t 3 kB\n"); got != 12<<10 || err != nil {
		t.Errorf("got %d, %v", got, err)
	}
	for _, bad := range []string{"", "VmData:\n", "VmRSS: 1 kB\n"} {
		if _, err := dataIn(bad); err == nil {
			t.Errorf("%q has data", bad)
		}
	}
}
