package partition_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/partition"
	"pgregory.net/rapid"
)

// A fataler is a testing.T or a rapid.T.
type fataler interface {
	Helper()
	Fatal(...any)
}

// assign returns the assignment of p, and fails unless it is valid.
func assign(t fataler, p partition.Policy, in partition.Input) partition.Assignment {
	t.Helper()
	a, err := p.Assign(in)
	if err != nil {
		t.Fatal(err)
	}
	if err := partition.Validate(in, a); err != nil {
		t.Fatal(err)
	}
	return a
}

// drawMembers draws up to n members with hostile names and any weights.
func drawMembers(t *rapid.T, n int) []partition.Member {
	name := rapid.OneOf(
		rapid.StringMatching(`[a-c#][0-9#]{0,2}`),
		rapid.StringN(1, 30, leasehold.MaxOwnerIDLen),
	).Filter(func(s string) bool { return leasehold.OwnerID(s).Validate() == nil })
	weight := rapid.OneOf(rapid.Just(1.0), rapid.Float64Range(0.001, 5))
	names := rapid.SliceOfNDistinct(name, 0, n, rapid.ID).Draw(t, "names")
	slices.Sort(names)
	var out []partition.Member
	for _, s := range names {
		out = append(out, partition.Member{Owner: leasehold.OwnerID(s), Weight: weight.Draw(t, "weight")})
	}
	return out
}

func TestConsistentWithoutMembers(t *testing.T) {
	got := assign(t, partition.Consistent{}, partition.Input{})
	if diff := cmp.Diff(partition.Assignment{{0, ""}}, got); diff != "" {
		t.Errorf("without members (-want +got):\n%s", diff)
	}
}

// naiveOwner is the reference implementation of consistent hashing: the
// member with the first point at or after the key, wrapping at the end,
// and the first name if points coincide.
func naiveOwner(nodes int, ms []partition.Member, k leasehold.Key) leasehold.OwnerID {
	var best leasehold.OwnerID
	nearest := leasehold.Key(math.MaxUint64)
	for _, m := range ms {
		for i := range max(1, int(math.Round(float64(nodes)*m.Weight))) {
			distance := leasehold.KeyOf(fmt.Sprintf("%s#%d", m.Owner, i)) - k
			if best == "" || distance < nearest {
				best, nearest = m.Owner, distance
			}
		}
	}
	return best
}

func TestConsistentMatchesReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes := rapid.IntRange(1, 8).Draw(t, "nodes")
		ms := drawMembers(t, 6)
		a := assign(t, partition.Consistent{VirtualNodes: nodes}, partition.Input{Members: ms})
		keys := []leasehold.Key{0, lastKey, leasehold.Key(rapid.Uint64().Draw(t, "key"))}
		for _, slot := range a {
			keys = append(keys, slot.Start, slot.Start-1)
		}
		for _, k := range keys {
			if got, want := a.OwnerAt(k), naiveOwner(nodes, ms, k); got != want {
				t.Errorf("%v belongs to %q, want %q", k, got, want)
			}
		}
	})
}

// Minimal disruption: if one member joins or leaves, only
// its keys move.
func TestConsistentMovesMinimum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		with := drawMembers(t, 12)
		if len(with) == 0 {
			return
		}
		one := rapid.IntRange(0, len(with)-1).Draw(t, "one")
		without := slices.Delete(slices.Clone(with), one, one+1)
		policy := partition.Consistent{VirtualNodes: rapid.IntRange(0, 20).Draw(t, "nodes")}
		big := assign(t, policy, partition.Input{Members: with})
		small := assign(t, policy, partition.Input{Members: without, Current: big})
		for _, slot := range append(slices.Clone(big), small...) {
			before, after := small.OwnerAt(slot.Start), big.OwnerAt(slot.Start)
			if before != after && after != with[one].Owner {
				t.Errorf("when %q joins, %v moves from %q to %q", with[one].Owner, slot.Start, before, after)
			}
		}
	})
}

func TestConsistentIgnoresHistory(t *testing.T) {
	in := partition.Input{Members: pool(20)}
	fresh := assign(t, partition.Consistent{}, in)
	in.Current = partition.Assignment{{0, "another"}, {half, "server-00003"}}
	if diff := cmp.Diff(fresh, assign(t, partition.Consistent{}, in)); diff != "" {
		t.Errorf("the result depends on the current assignment (-without +with):\n%s", diff)
	}
}

func TestConsistentBalance(t *testing.T) {
	const owners = 100
	shares := assign(t, partition.Consistent{}, partition.Input{Members: pool(owners)}).Shares()
	if len(shares) != owners {
		t.Fatalf("%d of %d owners have keys", len(shares), owners)
	}
	sum := 0.0
	for owner, share := range shares {
		sum += share
		if ratio := share * owners; ratio < 0.6 || ratio > 1.5 {
			t.Errorf("%s has %.2f times the mean share", owner, ratio)
		}
	}
	if math.Abs(sum-1) > 1e-9 {
		t.Errorf("the sum of the shares is %v", sum)
	}
}

// With n points the standard deviation of a share is about 1/sqrt(n) of it,
// so that 4 sigma of a member with 2,048 points are 9 %.
func TestConsistentWeights(t *testing.T) {
	weights := []float64{0.5, 1, 1, 2, 4, 8}
	total := 0.0
	in := partition.Input{Members: pool(len(weights))}
	for i, w := range weights {
		in.Members[i].Weight = w
		total += w
	}
	shares := assign(t, partition.Consistent{VirtualNodes: 4096}, in).Shares()
	for i, w := range weights {
		owner := in.Members[i].Owner
		if ratio := shares[owner] / (w / total); ratio < 0.91 || ratio > 1.09 {
			t.Errorf("weight %v has %.3f times its share", w, ratio)
		}
	}
}

func TestConsistentLightestMemberHasKeys(t *testing.T) {
	in := partition.Input{Members: []partition.Member{{Owner: "big", Weight: 1}, {Owner: "tiny", Weight: 1e-9}}}
	if share := assign(t, partition.Consistent{}, in).Share("tiny"); share == 0 {
		t.Error("a member with minimal weight has no key")
	}
}

func TestConsistentDefault(t *testing.T) {
	in := partition.Input{Members: pool(7)}
	want := assign(t, partition.Consistent{VirtualNodes: 64}, in)
	if diff := cmp.Diff(want, assign(t, partition.Consistent{}, in)); diff != "" {
		t.Errorf("the default is not 64 virtual nodes (-want +got):\n%s", diff)
	}
}

func TestConsistentErrors(t *testing.T) {
	for _, test := range []struct {
		nodes, owners, limit int
		kind                 leasehold.Kind
		want                 string
	}{
		{-1, 1, 0, leasehold.ErrInvalid, `assign "consistent": -1 virtual nodes, want 1 to 4096, or 0 for 64`},
		{4097, 1, 0, leasehold.ErrInvalid, `assign "consistent": 4097 virtual nodes, want 1 to 4096, or 0 for 64`},
		{4096, 1, 0, 0, ""},
		{0, 3, 3, leasehold.ErrLimit, `assign "consistent": 3 members need 4 ranges, and the limit is 3`},
		{0, 3, 4, 0, ""},
		{0, 1, 1, 0, ""},
		{0, 0, 1, 0, ""},
	} {
		t.Run(fmt.Sprintf("%d owners of %d, %d ranges", test.owners, test.nodes, test.limit), func(t *testing.T) {
			in := partition.Input{Members: pool(test.owners), Limits: partition.Limits{MaxRanges: test.limit}}
			_, err := partition.Consistent{VirtualNodes: test.nodes}.Assign(in)
			wantError(t, err, test.kind, test.want)
		})
	}
}

// Members of a pool beyond the limit get fewer points, and no member is
// without keys.
func TestConsistentKeepsLimit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ms := drawMembers(t, 12)
		limit := rapid.IntRange(len(ms)+1, 40).Draw(t, "limit")
		in := partition.Input{Members: ms, Limits: partition.Limits{MaxRanges: limit}}
		policy := partition.Consistent{VirtualNodes: rapid.IntRange(1, 20).Draw(t, "nodes")}
		shares := assign(t, policy, in).Shares()
		for _, m := range ms {
			if shares[m.Owner] == 0 {
				t.Errorf("%q has no keys", m.Owner)
			}
		}
		if len(ms) > 0 && shares[""] > 0 {
			t.Errorf("%v of the keys have no owner", shares[""])
		}
	})
}

// Beyond the limit, a new member takes its share and reduces the points of the others
// by a few. Here 100 owners fit with 64 points, and 101 with 63.
func TestConsistentJoinBeyondLimit(t *testing.T) {
	limits := partition.Limits{MaxRanges: 6401}
	before := assign(t, partition.Consistent{}, partition.Input{Members: pool(100), Limits: limits})
	after := assign(t, partition.Consistent{}, partition.Input{Members: pool(101), Limits: limits})
	if share := moved(before, after); share > 0.04 {
		t.Errorf("the 101st owner moves %.1f %% of the keys", 100*share)
	}
}

// moved returns the fraction of keys with different owners.
func moved(a, b partition.Assignment) float64 {
	keys := 0.0
	for ra, owner := range a.All() {
		for rb, other := range b.All() {
			if both, ok := ra.Intersect(rb); ok && owner != other {
				keys += float64(both.Size())
			}
		}
	}
	return math.Ldexp(keys, -64)
}

func TestConsistentLongestNames(t *testing.T) {
	long := leasehold.OwnerID(strings.Repeat("x", leasehold.MaxOwnerIDLen))
	ms := []partition.Member{{Owner: "a", Weight: 1}, {Owner: long, Weight: partition.MaxWeight}}
	in := partition.Input{Members: ms}
	if share := assign(t, partition.Consistent{}, in).Share(long); share < 0.99 {
		t.Errorf("the heaviest member has %v of the keys", share)
	}
}
