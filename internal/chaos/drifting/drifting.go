// Package drifting builds the leasehold command with a clock whose rate can be chosen.
//
// The program that people run has no such thing, and should not. So the file of
// internal/clock that reads the clock is replaced by another one while it is built.
package drifting

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Variable is where a process finds the rate of its clock: 1.1 is one that gains a tenth.
const Variable = "CHAOS_CLOCK_RATE"

// command is what is built.
const command = "github.com/leasehold-dev/leasehold/cmd/leasehold"

// The text that is replaced, and what it becomes. The rate is read once, when the first clock
// is made.
const (
	reading  = "func (c *Clock) Now() mono.Instant { return mono.Instant(time.Since(c.base)) }"
	drifting = `func (c *Clock) Now() mono.Instant {
	return mono.Instant(float64(time.Since(c.base)) * rate())
}

var rate = sync.OnceValue(func() float64 {
	r, err := strconv.ParseFloat(os.Getenv("` + Variable + `"), 64)
	if err != nil || r <= 0 {
		return 1
	}
	return r
})`
	imports = "import (\n\t\"time\"\n"
	more    = "import (\n\t\"os\"\n\t\"strconv\"\n\t\"sync\"\n\t\"time\"\n"
)

// Build builds the program into a directory, and returns where it is. It takes a checkout
// that this process runs in, and the go command.
func Build(ctx context.Context, dir string) (program string, err error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-f", "{{.Dir}}", "github.com/leasehold-dev/leasehold/internal/clock").Output()
	if err != nil {
		return "", fmt.Errorf("finding the clock to replace, which takes a checkout of leasehold and the go command: %w", err)
	}
	original := filepath.Join(strings.TrimSpace(string(out)), "clock.go")
	text, err := os.ReadFile(original)
	if err != nil {
		return "", err
	}
	changed, err := replace(string(text))
	if err != nil {
		return "", fmt.Errorf("%s: %w", original, err)
	}
	clock, overlay := filepath.Join(dir, "clock.go"), filepath.Join(dir, "overlay.json")
	plan, err := json.Marshal(map[string]any{"Replace": map[string]string{original: clock}})
	if err != nil {
		return "", err
	}
	//nolint:gosec // both are in a directory of the caller's
	if err := errors.Join(os.WriteFile(clock, []byte(changed), 0o600), os.WriteFile(overlay, plan, 0o600)); err != nil {
		return "", err
	}
	program = filepath.Join(dir, "leasehold-drifting")
	if out, err := exec.CommandContext(ctx, "go", "build", "-overlay", overlay, "-o", program, command).CombinedOutput(); err != nil {
		return "", fmt.Errorf("building a program whose clock has a rate: %w\n%s", err, out)
	}
	return program, nil
}

// replace plants the other clock.
func replace(text string) (string, error) {
	for _, r := range [][2]string{{reading, drifting}, {imports, more}} {
		if strings.Count(text, r[0]) != 1 {
			return "", fmt.Errorf("there is no %q in it, or more than one: internal/chaos/drifting must follow", r[0])
		}
		text = strings.Replace(text, r[0], r[1], 1)
	}
	return text, nil
}
