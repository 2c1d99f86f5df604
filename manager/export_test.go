package manager

import "time"

// SetWallClock replaces the wall clock with which a manager dates its leader record.
func SetWallClock(cfg *Config, wall func() time.Time) { cfg.wall = wall }

// BroadcastInWaves makes a manager broadcast to few lookups as to thousands.
func BroadcastInWaves(cfg *Config) { cfg.maxDirect = 1 }
