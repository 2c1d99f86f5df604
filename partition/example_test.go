package partition_test

import (
	"fmt"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/partition"
)

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
