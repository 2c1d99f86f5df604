package skewedclock

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"regexp"
	"slices"
)

// PointsTag is the build tag that brings failpoints to life.
const PointsTag = "failpoints"

// Points asks a program that was built with the tag which failpoints it has: it refuses one that
// there is not, and says which there are.
func Points(ctx context.Context, program string) ([]string, error) {
	cmd := exec.CommandContext(ctx, program, "status") // which asks nobody before it has read its settings
	cmd.Env = append(os.Environ(), "LEASEHOLD_FAILPOINTS=none/none=kill")
	out, err := cmd.CombinedOutput()
	found := pointsIn(string(out))
	if err == nil || len(found) == 0 {
		return nil, errors.New("the program does not say which failpoints it has: lab/chaos/skewedclock must follow; it says " + string(out))
	}
	return found, nil
}

var point = regexp.MustCompile(`\b[a-z]+/[a-z]+(-[a-z]+)*`)

// pointsIn finds the names of points in a text.
func pointsIn(text string) []string {
	found := slices.DeleteFunc(point.FindAllString(text, -1), func(name string) bool { return name == "none/none" })
	slices.Sort(found)
	return slices.Compact(found)
}
