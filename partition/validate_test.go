package partition_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/partition"
)

// members returns members of weight 1.
func members(names ...leasehold.OwnerID) []partition.Member {
	var out []partition.Member
	for _, name := range names {
		out = append(out, partition.Member{Owner: name, Weight: 1})
	}
	return out
}

// wantError checks an error's kind and whole text; no text means no error.
func wantError(t *testing.T, err error, kind leasehold.Kind, text string) {
	t.Helper()
	switch {
	case text == "" && err != nil:
		t.Errorf("unexpected error: %v", err)
	case text != "" && err == nil:
		t.Errorf("no error, want: %s", text)
	case text != "" && (err.Error() != text || !errors.Is(err, kind)):
		t.Errorf("wrong error\n got: %v (kind %v)\nwant: %s (kind %v)", err, leasehold.KindOf(err), text, kind)
	}
}

func TestValidate(t *testing.T) {
	in := partition.Input{Members: members("a", "b"), Limits: partition.Limits{MaxRanges: 4}}
	for _, test := range []struct {
		name string
		a    partition.Assignment
		kind leasehold.Kind
		want string
	}{
		{"one owner", partition.Assignment{{0, "a"}}, 0, ""},
		{"nobody", partition.Assignment{{0, ""}}, 0, ""},
		{"as many as allowed", quarters, 0, ""},
		{"narrowest slots", partition.Assignment{{0, "a"}, {1, "b"}, {lastKey, "a"}}, 0, ""},
		{
			"nil", nil, leasehold.ErrInvalid,
			`validate assignment: the assignment is empty: want at least one slot, from 0 on`,
		},
		{
			"empty",
			partition.Assignment{},
			leasehold.ErrInvalid,
			`validate assignment: the assignment is empty: want at least one slot, from 0 on`,
		},
		{
			"gap at the front",
			partition.Assignment{{1, "a"}},
			leasehold.ErrInvalid,
			`validate assignment "slot 0": the first slot starts at 0000000000000001, want 0`,
		},
		{
			"same start",
			partition.Assignment{{0, "a"}, {5, "b"}, {5, "a"}},
			leasehold.ErrInvalid,
			`validate assignment "slot 2": start 0000000000000005 is not after slot 1, which starts at 0000000000000005`,
		},
		{
			"falling start",
			partition.Assignment{{0, "a"}, {5, "b"}, {4, "a"}},
			leasehold.ErrInvalid,
			`validate assignment "slot 2": start 0000000000000004 is not after slot 1, which starts at 0000000000000005`,
		},
		{
			"equal neighbours",
			partition.Assignment{{0, "a"}, {5, "b"}, {9, "b"}},
			leasehold.ErrInvalid,
			`validate assignment "slot 2": owner "b" also has slot 1: adjacent slots of one owner must be merged`,
		},
		{
			"no owner twice",
			partition.Assignment{{0, ""}, {5, ""}},
			leasehold.ErrInvalid,
			`validate assignment "slot 1": owner "" also has slot 0: adjacent slots of one owner must be merged`,
		},
		{
			"stranger",
			partition.Assignment{{0, "a"}, {5, "c"}},
			leasehold.ErrInvalid,
			`validate assignment "slot 1": owner "c" is not a member`,
		},
		{
			"too many", append(quarters[:4:4], partition.Slot{Start: lastKey, Owner: "b"}), leasehold.ErrLimit,
			`validate assignment: 5 slots, and the limit is 4`,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			wantError(t, partition.Validate(in, test.a), test.kind, test.want)
		})
	}
}

func TestValidateInput(t *testing.T) {
	weighing := func(w float64) partition.Input {
		return partition.Input{Members: []partition.Member{{Owner: "a", Weight: w}}}
	}
	for _, test := range []struct {
		name string
		in   partition.Input
		want string
	}{
		{"zero", partition.Input{}, ""},
		{"usual", partition.Input{Members: members("a", "b"), Current: quarters}, ""},
		{"current with an owner that left", partition.Input{Members: members("z"), Current: quarters}, ""},
		{"lightest", weighing(math.SmallestNonzeroFloat64), ""},
		{"heaviest", weighing(1000), ""},
		{
			"weight 0", weighing(0),
			`validate partition input "a": weight is 0, want more than 0 and at most 1000`,
		},
		{
			"negative weight", weighing(-1),
			`validate partition input "a": weight is -1, want more than 0 and at most 1000`,
		},
		{
			"too heavy", weighing(1000.5),
			`validate partition input "a": weight is 1000.5, want more than 0 and at most 1000`,
		},
		{
			"infinite weight", weighing(math.Inf(1)),
			`validate partition input "a": weight is +Inf, want more than 0 and at most 1000`,
		},
		{
			"weight not a number", weighing(math.NaN()),
			`validate partition input "a": weight is NaN, want more than 0 and at most 1000`,
		},
		{
			"unsorted",
			partition.Input{Members: members("a", "c", "b")},
			`validate partition input "b": members are not sorted: the previous one is "c"`,
		},
		{
			"twice",
			partition.Input{Members: members("a", "b", "b")},
			`validate partition input "b": the member is listed twice`,
		},
		{
			"no name",
			partition.Input{Members: members("")},
			`validate partition input: ` + leasehold.OwnerID("").Validate().Error(),
		},
		{
			"control character",
			partition.Input{Members: members("a\n")},
			`validate partition input: ` + leasehold.OwnerID("a\n").Validate().Error(),
		},
		{
			"negative limit",
			partition.Input{Limits: partition.Limits{MaxRanges: -1}},
			`validate partition input "limits": max ranges is -1, max per owner 0: want 0 or more`,
		},
		{
			"empty current",
			partition.Input{Current: partition.Assignment{}},
			`validate partition input "current assignment": validate assignment: the assignment is empty: want at least one slot, from 0 on`,
		},
		{
			"current not canonical",
			partition.Input{Current: partition.Assignment{{0, "a"}, {1, "a"}}},
			`validate partition input "current assignment": validate assignment "slot 1": owner "a" also has slot 0: adjacent slots of one owner must be merged`,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			wantError(t, partition.ValidateInput(test.in), leasehold.ErrInvalid, test.want)
			for _, p := range allPolicies() {
				_, err := p.Assign(test.in)
				wantError(t, err, leasehold.ErrInvalid, test.want)
			}
		})
	}
}

// allPolicies returns one of each policy, valid for a small input.
func allPolicies() []partition.Policy {
	return []partition.Policy{
		partition.Adaptive{}, partition.Balanced{}, partition.Consistent{}, partition.Even{}, partition.Static{Slots: quarters},
	}
}

func TestPolicyNames(t *testing.T) {
	var names []string
	for _, p := range allPolicies() {
		names = append(names, p.Name())
	}
	if got := strings.Join(names, " "); got != "adaptive balanced consistent even static" {
		t.Errorf("names are %q; configurations refer to them", got)
	}
}
