package etcd

import (
	"maps"
	"testing"

	"github.com/leasehold-dev/leasehold"
)

// TestKilledJoinerResumesJoin: a joiner that is killed before etcd starts resumes the join on
// restart, whatever its new configuration. The directory stores the join configuration first.
func TestKilledJoinerResumesJoin(t *testing.T) {
	const a, b = "http://127.0.0.1:1", "http://127.0.0.1:2"
	members := map[string]string{"a": a, "b": b}
	start := func(cfg EmbedConfig) (EmbedConfig, error) {
		cfg.Dir, cfg.Name, cfg.PeerURL = t.TempDir(), "a", a
		err := cfg.validate() // fills in defaults
		return cfg, err
	}
	joining, err := start(EmbedConfig{Members: members, Existing: true, MustJoin: true})
	if err != nil {
		t.Fatal(err)
	}
	open := func(cfg EmbedConfig) (EmbedConfig, error) {
		cfg.Dir = joining.Dir
		d, err := openDir(&cfg)
		if err == nil {
			err = d.close() // before etcd starts
		}
		return cfg, err
	}
	if _, err := open(joining); err != nil {
		t.Fatal(err)
	}
	if fresh, err := Fresh(joining.Dir); fresh || err != nil {
		t.Errorf("the directory of an interrupted join is fresh: %v, %v", fresh, err)
	}
	for _, must := range []bool{false, true} {
		restarted, err := start(EmbedConfig{MustJoin: must})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := open(restarted); err != nil || !got.Existing || !maps.Equal(got.Members, members) {
			t.Errorf("restart without members (must join: %v): members %v, existing %v: %v", must, got.Members, got.Existing, err)
		}
	}
	founding, err := start(EmbedConfig{Members: members})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := open(founding); leasehold.KindOf(err) != leasehold.ErrInvalid {
		t.Errorf("restart that founds a group: %v", err)
	}
}
