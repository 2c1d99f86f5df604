package chaos

import (
	"context"
	"os/exec"
	"strings"
)

// builds says which builds of the command a run is about.
func builds(ctx context.Context, cfg *Config) []string {
	if cfg.Builds != nil {
		return cfg.Builds
	}
	said := []string{say(ctx, cfg.Program)}
	if cfg.Other != "" {
		said = append(said, say(ctx, cfg.Other))
	}
	return said
}

// say has a program say what it is.
func say(ctx context.Context, program string) string {
	out, err := exec.CommandContext(ctx, program, "version").Output()
	if err != nil {
		return program + ", which does not say what it is"
	}
	return strings.TrimSpace(string(out))
}
