package proc

import (
	"strings"
	"testing"

	"google.golang.org/grpc/credentials"
)

// TestArgs: the arguments of managers follow from their store.
func TestArgs(t *testing.T) {
	one := Member{Name: "m1", Addr: "a:1", HTTP: "a:2", Peer: "a:3", DataDir: "d/m1"}
	two := Member{Name: "m2", Addr: "b:1", HTTP: "b:2", Peer: "b:3", DataDir: "d/m2"}
	for _, test := range []struct {
		cfg   ManagersConfig
		group []Member
		want  string
	}{
		{ManagersConfig{}, []Member{one}, "manager run --listen a:1 --http a:2 --name m1 --data-dir d/m1"},
		{ManagersConfig{Command: "demo-manager"}, []Member{one, two}, "demo-manager --listen a:1 --http a:2 --name m1 --data-dir d/m1 --members m1=http://a:3,m2=http://b:3"},
		{ManagersConfig{Credentials: credentials.NewTLS(nil)}, []Member{one, two}, "manager run --listen a:1 --http a:2 --name m1 --data-dir d/m1 --members m1=https://a:3,m2=https://b:3"},
		{ManagersConfig{Diskless: true}, []Member{one, two}, "manager run --listen a:1 --http a:2 --store flease --peers a:1,b:1"},
		{ManagersConfig{Etcd: []string{"x", "y"}}, []Member{one, two}, "manager run --listen a:1 --http a:2 --etcd x,y"},
		{ManagersConfig{Etcd: []string{"x"}, Flags: func(m Member) []string { return []string{"--tls-dir", m.Name} }}, []Member{one}, "manager run --listen a:1 --http a:2 --etcd x --tls-dir m1"},
	} {
		if got := strings.Join(test.cfg.Args(test.group, 0), " "); got != test.want {
			t.Errorf("got  %s\nwant %s", got, test.want)
		}
	}
}
