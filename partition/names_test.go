package partition_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/partition"
)

func TestByName(t *testing.T) {
	opts := partition.Options{VirtualNodes: 3, Ranges: 4, Tolerance: 0.5, Slots: quarters}
	want := map[string]partition.Policy{
		"":           partition.Balanced{Ranges: 4, Tolerance: 0.5},
		"adaptive":   partition.Adaptive{VirtualNodes: 3},
		"balanced":   partition.Balanced{Ranges: 4, Tolerance: 0.5},
		"consistent": partition.Consistent{VirtualNodes: 3},
		"even":       partition.Even{},
		"static":     partition.Static{Slots: quarters},
	}
	for name, policy := range want {
		got, err := partition.ByName(name, opts)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(policy, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", name, diff)
		}
		if name != "" && got.Name() != name {
			t.Errorf("the policy %q has the name %q", name, got.Name())
		}
	}
	names := partition.Names()
	if !slices.IsSorted(names) || len(names) != len(want)-1 {
		t.Errorf("the names are %q", names)
	}
	for _, name := range names {
		if want[name] == nil {
			t.Errorf("unexpected name %q", name)
		}
	}
}

func TestByNameErrors(t *testing.T) {
	for _, test := range []struct {
		name string
		opts partition.Options
		want string
	}{
		{"blanced", partition.Options{}, `find policy "blanced": the policy does not exist: want one of adaptive, balanced, consistent, even, static`},
		{"", partition.Options{Ranges: -1}, `assign "balanced": -1 ranges per owner, want 1 to 4096, or 0 for 16`},
		{"adaptive", partition.Options{VirtualNodes: -1}, `assign "adaptive": -1 virtual nodes, want 1 to 4096, or 0 for 64`},
		{"consistent", partition.Options{VirtualNodes: -1}, `assign "consistent": -1 virtual nodes, want 1 to 4096, or 0 for 64`},
		{"static", partition.Options{}, `new static policy: validate assignment: the assignment is empty: want at least one slot, from 0 on`},
	} {
		p, err := partition.ByName(test.name, test.opts)
		wantError(t, err, leasehold.ErrInvalid, test.want)
		if p != nil {
			t.Errorf("ByName(%q) returns a policy and an error", test.name)
		}
	}
}
