package manager

import "time"

// SetWallClock replaces the wall clock of a manager's leader record.
func SetWallClock(cfg *Config, wall func() time.Time) { cfg.wall = wall }

// BroadcastInWaves makes a manager broadcast in waves even to a few lookups.
func BroadcastInWaves(cfg *Config) { cfg.maxDirect = 1 }
