package etcd

import (
	"maps"
	"testing"

	"github.com/leasehold-dev/leasehold"
)

// TestKilledWhileItJoins: a joiner that is killed before etcd has started goes
// on joining, whatever it is told then: the first thing that the directory says
// is what it was meant for.
func TestKilledWhileItJoins(t *testing.T) {
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
			err = d.close() // as far as it came
		}
		return cfg, err
	}
	if _, err := open(joining); err != nil {
		t.Fatal(err)
	}
	if fresh, err := Fresh(joining.Dir); fresh || err != nil {
		t.Errorf("the directory does not know that it was begun with: %v, %v", fresh, err)
	}
	for _, must := range []bool{false, true} {
		told, err := start(EmbedConfig{MustJoin: must})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := open(told); err != nil || !got.Existing || !maps.Equal(got.Members, members) {
			t.Errorf("told nothing (must join: %v) it goes on with %v, existing %v: %v", must, got.Members, got.Existing, err)
		}
	}
	founding, err := start(EmbedConfig{Members: members})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := open(founding); leasehold.KindOf(err) != leasehold.ErrInvalid {
		t.Errorf("told to found a group: %v", err)
	}
}
