package manager

import "time"

// SetWallClock replaces the wall clock with which a manager dates its leader record.
func SetWallClock(cfg *Config, wall func() time.Time) { cfg.wall = wall }

// TellFewAsMany makes news go to few lookups as it does to many: whoever spreads it sends it.
func TellFewAsMany(m *Manager) {
	m.lookups.mu.Lock()
	defer m.lookups.mu.Unlock()
	m.lookups.few = 0
}
