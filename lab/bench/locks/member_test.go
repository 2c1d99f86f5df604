package locks

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseZooKeeperStatus(t *testing.T) {
	const serving = "Zookeeper version: 3.8.0-0, built on 2022-11-21\nLatency min/avg/max: 0/0.5/3\nMode: leader\nNode count: 5\n"
	for text, want := range map[string]ZooKeeperStatus{
		serving: {"3.8.0", "leader"},
		"This ZooKeeper instance is not currently serving requests\n": {},
		"": {},
	} {
		got, err := parseZooKeeperStatus(strings.NewReader(text))
		if err != nil || got != want {
			t.Errorf("%q: %+v, %v, want %+v", text, got, err, want)
		}
	}
}

func TestZooKeeperConfig(t *testing.T) {
	peers := []string{"127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3", "127.0.0.1:4"}
	got, err := zooKeeperConfig{Dir: "/data", Peers: peers, Client: "127.0.0.1:9"}.text()
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"dataDir=/data", "clientPort=9", "forceSync=no", "server.1=127.0.0.1:1:2", "server.2=127.0.0.1:3:4"} {
		if !strings.Contains("\n"+got, "\n"+line+"\n") {
			t.Errorf("no line %q in\n%s", line, got)
		}
	}
	if got, err := (zooKeeperConfig{Dir: "/data", Peers: peers, Client: "127.0.0.1:9", Fsync: true}).text(); err != nil || strings.Contains(got, "forceSync") {
		t.Errorf("with fsync: %v\n%s", err, got)
	}
	if _, err := (zooKeeperConfig{Peers: peers[:3], Client: "127.0.0.1:9"}).text(); err == nil {
		t.Error("three addresses for two servers, and no error")
	}
}

func TestEtcdConfig(t *testing.T) {
	cfg, err := etcdConfig{Index: 1, Dir: "/data", Peers: []string{"127.0.0.1:1", "127.0.0.1:2"}, Client: "127.0.0.1:9"}.embed()
	if err != nil {
		t.Fatal(err)
	}
	got := []string{cfg.InitialCluster, cfg.Name, cfg.ListenPeerUrls[0].Host, cfg.AdvertiseClientUrls[0].Host}
	want := []string{"etcd-1=http://127.0.0.1:1,etcd-2=http://127.0.0.1:2", "etcd-2", "127.0.0.1:2", "127.0.0.1:9"}
	if diff := cmp.Diff(want, got); diff != "" || !cfg.UnsafeNoFsync {
		t.Errorf("no fsync: %v, (-want +got):\n%s", cfg.UnsafeNoFsync, diff)
	}
	if _, err := (etcdConfig{Index: 2, Peers: []string{"127.0.0.1:1"}}).embed(); err == nil {
		t.Error("a member that is not one, and no error")
	}
}
