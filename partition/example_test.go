package partition_test

import (
	"fmt"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/partition"
)

// One key costs as much as all others together. Its owner keeps it,
// and the other members take the adjacent keys.
func ExampleBalanced() {
	in := partition.Input{
		Members: []partition.Member{
			{Owner: "alpha", Weight: 1},
			{Owner: "beta", Weight: 1},
			{Owner: "gamma", Weight: 1},
		},
		Current: partition.Assignment{
			{Start: 0x0000000000000000, Owner: "alpha"},
			{Start: 0x4000000000000000, Owner: "beta"},
			{Start: 0x8000000000000000, Owner: "gamma"},
		},
		Loads: partition.Loads{
			Cells: []partition.Cell{{Range: leasehold.All, Rate: 2000}},
			Hot:   []partition.HotKey{{Key: 0x6000000000000000, Rate: 1000}},
		},
		Budget: 1,
	}
	wanted, err := partition.Apply(partition.Balanced{Ranges: 1}, in)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, r := range partition.Diff(in.Current, wanted) {
		fmt.Printf("%v goes from %s to %s\n", r.Range, r.From, r.To)
	}
	for r := range wanted.Ranges("beta") {
		fmt.Println("beta keeps", r)
	}
	// Output:
	// 4000000000000000-6000000000000000 goes from beta to alpha
	// 6000000000000001-8000000000000000 goes from beta to alpha
	// beta keeps 6000000000000000-6000000000000001
}

func ExampleConsistent() {
	in := partition.Input{Members: []partition.Member{
		{Owner: "alpha", Weight: 1},
		{Owner: "beta", Weight: 1},
		{Owner: "gamma", Weight: 2},
	}}
	wanted, err := partition.Consistent{}.Assign(in)
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := partition.Validate(in, wanted); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("alice is served by", wanted.OwnerAt(leasehold.KeyOf("alice")))
	fmt.Printf("gamma has %.0f %% of the keys\n", 100*wanted.Share("gamma"))
	// Output:
	// alice is served by gamma
	// gamma has 47 % of the keys
}

func ExampleStatic() {
	policy, err := partition.NewStatic([]partition.Slot{
		{Start: 0x0000000000000000, Owner: "low"},
		{Start: 0x8000000000000000, Owner: "high"},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	wanted, err := policy.Assign(partition.Input{Members: []partition.Member{{Owner: "high", Weight: 1}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	for r, owner := range wanted.All() {
		fmt.Printf("%v %q\n", r, owner)
	}
	// Output:
	// 0000000000000000-8000000000000000 ""
	// 8000000000000000-end "high"
}
