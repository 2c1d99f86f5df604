// Package skewedclock builds the leasehold-lab command with settable clocks: a monotonic clock with a rate,
// and a wall clock that is set while the process runs.
//
// The released program has no such clocks. So the files of internal/runtime/clock that read the clocks are
// replaced during the build. All decisions about leases read the clocks there.
package skewedclock

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// The environment variables of the clocks.
const (
	rateVariable = "CHAOS_CLOCK_RATE"
	wallVariable = "CHAOS_WALL_CLOCK"
)

// Rate returns the environment variable of a clock with a rate: 1.1 is 10 % fast.
func Rate(rate float64) string { return fmt.Sprintf("%s=%g", rateVariable, rate) }

// Wall returns the environment variable of a wall clock that is set for a time after the start.
func Wall(by, after, until time.Duration) string {
	return fmt.Sprintf("%s=%d %d %d", wallVariable, by, after, until)
}

const command = "github.com/leasehold-dev/leasehold/cmd/leasehold-lab"

type change struct{ was, becomes string }

// changes are the replacements in the files of internal/runtime/clock. The settings of a clock are read once,
// when the clock is first read.
func changes() map[string][]change {
	return map[string][]change{
		"clock.go": {
			{
				"return mono.Instant(time.Since(c.base))",
				"return rated(time.Since(c.base))",
			},
			{
				"	return mono.Instant(now.Sub(c.base)), now\n}\n",
				"	return rated(now.Sub(c.base)), now.Add(set(now))\n}\n" + wrong,
			},
			{"import (\n\t\"time\"\n", "import (\n\t\"fmt\"\n\t\"os\"\n\t\"strconv\"\n\t\"sync\"\n\t\"time\"\n"},
		},
		"system.go": {
			{"return time.Duration(now.UnixNano()) - now.Sub(s.clock.base)", "return time.Duration(now.UnixNano()) + set(now) - now.Sub(s.clock.base)"},
		},
	}
}

const wrong = `
var began = time.Now()

func rated(d time.Duration) mono.Instant { return mono.Instant(float64(d) * rate()) }

var rate = sync.OnceValue(func() float64 {
	r, err := strconv.ParseFloat(os.Getenv("` + rateVariable + `"), 64)
	if err != nil || r <= 0 {
		return 1
	}
	return r
})

// set is by how much the wall clock is wrong.
func set(now time.Time) time.Duration {
	s := setting()
	if passed := now.Sub(began); passed < s[1] || passed >= s[2] {
		return 0
	}
	return s[0]
}

var setting = sync.OnceValue(func() (s [3]time.Duration) {
	_, _ = fmt.Sscan(os.Getenv("` + wallVariable + `"), &s[0], &s[1], &s[2])
	return s
})
`

// Build builds the program into a directory, with optional build tags, and returns its path. It requires that
// this process runs in a checkout, and the go command.
func Build(ctx context.Context, dir string, tags ...string) (program string, err error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-f", "{{.Dir}}", "github.com/leasehold-dev/leasehold/internal/runtime/clock").Output()
	if err != nil {
		return "", fmt.Errorf("finding the clock to replace, which requires a checkout of leasehold and the go command: %w", err)
	}
	files := make(map[string]string)
	for name := range changes() {
		original := filepath.Join(strings.TrimSpace(string(out)), name)
		text, err := os.ReadFile(original)
		if err != nil {
			return "", err
		}
		changed, err := replace(name, string(text))
		if err != nil {
			return "", fmt.Errorf("%s: %w", original, err)
		}
		files[original] = filepath.Join(dir, name)
		if err := os.WriteFile(files[original], []byte(changed), 0o600); err != nil { //nolint:gosec // in a directory of the caller
			return "", err
		}
	}
	plan, err := json.Marshal(map[string]any{"Replace": files})
	overlay := filepath.Join(dir, "overlay.json")
	if err := errors.Join(err, os.WriteFile(overlay, plan, 0o600)); err != nil {
		return "", err
	}
	program = filepath.Join(dir, "leasehold-drifting")
	if out, err := exec.CommandContext(ctx, "go", "build", "-overlay", overlay, "-tags", strings.Join(tags, ","), "-o", program, command).CombinedOutput(); err != nil {
		return "", fmt.Errorf("building a program with settable clocks: %w\n%s", err, out)
	}
	return program, nil
}

// replace replaces the clocks in the text of a file.
func replace(name, text string) (string, error) {
	for _, c := range changes()[name] {
		if strings.Count(text, c.was) != 1 {
			return "", fmt.Errorf("%q does not occur exactly once: update lab/chaos/skewedclock", c.was)
		}
		text = strings.Replace(text, c.was, c.becomes, 1)
	}
	return text, nil
}

// PointsTag is the build tag that enables failpoints.
const PointsTag = "failpoints"

// Points returns the failpoints of a program that was built with the tag. The program rejects an unknown
// failpoint with an error that lists all of them.
func Points(ctx context.Context, program string) ([]string, error) {
	cmd := exec.CommandContext(ctx, program, "demo-manager") // it reads its settings first
	cmd.Env = append(os.Environ(), "LEASEHOLD_FAILPOINTS=none/none=kill")
	out, err := cmd.CombinedOutput()
	found := pointsIn(string(out))
	if err == nil || len(found) == 0 {
		return nil, errors.New("the program does not list its failpoints: update lab/chaos/skewedclock; its output is " + string(out))
	}
	return found, nil
}

var point = regexp.MustCompile(`\b[a-z]+/[a-z]+(-[a-z]+)*`)

// pointsIn returns the names of failpoints in a text.
func pointsIn(text string) []string {
	found := slices.DeleteFunc(point.FindAllString(text, -1), func(name string) bool { return name == "none/none" })
	slices.Sort(found)
	return slices.Compact(found)
}
