package partition

import (
	"bufio"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/leasehold-dev/leasehold"
	"pgregory.net/rapid"
)

// The vectors were computed by another implementation of XXH64.
func TestPointVectors(t *testing.T) {
	file, err := os.Open("testdata/points.tsv")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	vectors := 0
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "# ") {
			continue
		}
		vectors++
		fields := strings.Split(lines.Text(), "\t")
		index, err := strconv.Atoi(fields[1])
		if err != nil {
			t.Fatal(err)
		}
		points := appendPoints([]Member{{Owner: leasehold.OwnerID(fields[0])}}, []int{index + 1})
		if got := points[index].key.String(); got != fields[2] {
			t.Errorf("point %d of %q is %s, want %s", index, fields[0], got, fields[2])
		}
	}
	if vectors < 16 {
		t.Errorf("only %d vectors", vectors)
	}
}

// Keys with equal top bytes are sorted by comparison.
func TestSortPoints(t *testing.T) {
	key := rapid.OneOf(rapid.Uint64(), rapid.Uint64Range(0, 3), rapid.Uint64Range(math.MaxUint64-3, math.MaxUint64),
		rapid.Uint64Range(1<<radixShift-2, 1<<radixShift+2))
	rapid.Check(t, func(t *rapid.T) {
		var points []point
		for _, k := range rapid.SliceOfN(key, 0, 60).Draw(t, "keys") {
			points = append(points, point{leasehold.Key(k), rapid.Int32Range(0, 5).Draw(t, "member")})
		}
		want := slices.Clone(points)
		slices.SortFunc(want, comparePoints)
		got := sortPoints(points)
		if !slices.Equal(got, want) {
			t.Errorf("sorted:\n got %v\nwant %v", got, want)
		}
	})
}

func TestCircle(t *testing.T) {
	const last = math.MaxUint64
	members := []Member{{Owner: "a"}, {Owner: "b"}, {Owner: "c"}}
	for _, test := range []struct {
		name   string
		points []point // unsorted
		want   Assignment
	}{
		{"no point", nil, Assignment{{0, ""}}},
		{"one point", []point{{5, 1}}, Assignment{{0, "b"}}},
		{"a point has its own key", []point{{9, 1}, {5, 0}}, Assignment{{0, "a"}, {6, "b"}, {10, "a"}}},
		{"point on the first key", []point{{9, 1}, {0, 0}}, Assignment{{0, "a"}, {1, "b"}, {10, "a"}}},
		{"point on the last key", []point{{last, 1}, {5, 0}}, Assignment{{0, "a"}, {6, "b"}}},
		{"points on both ends", []point{{last, 1}, {0, 0}}, Assignment{{0, "a"}, {1, "b"}}},
		{"two on the last key", []point{{last, 2}, {last, 1}}, Assignment{{0, "b"}}},
		{"last and first are one member's", []point{{5, 0}, {7, 1}, {9, 0}}, Assignment{{0, "a"}, {6, "b"}, {8, "a"}}},
		{"neighbours merge", []point{{5, 0}, {7, 1}, {8, 1}, {9, 2}}, Assignment{{0, "a"}, {6, "b"}, {9, "c"}, {10, "a"}}},
		{"the first name wins a key", []point{{5, 2}, {5, 1}, {9, 0}}, Assignment{{0, "b"}, {6, "a"}, {10, "b"}}},
		{"also key 0", []point{{0, 2}, {0, 1}, {9, 0}}, Assignment{{0, "b"}, {1, "a"}, {10, "b"}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, circle(members, sortPoints(test.points))); diff != "" {
				t.Errorf("slots (-want +got):\n%s", diff)
			}
		})
	}
}
