package leaks

import (
	"strings"
	"testing"
)

func TestHasLeader(t *testing.T) {
	for page, want := range map[string]bool{
		"":                           false,
		"etcd_server_has_leader 1\n": true,
		"etcd_server_has_leader 0\n": false,
		"# HELP etcd_server_has_leader Whether or not a leader exists.\n# TYPE etcd_server_has_leader gauge\netcd_server_has_leader 1\ngo_goroutines 7\n": true,
		"etcd_server_is_leader 1\n": false,
	} {
		if got, err := ReadMetrics(strings.NewReader(page)); (got["etcd_server_has_leader"] == 1) != want || err != nil {
			t.Errorf("%q: %v, %v", page, got, err)
		}
	}
}
