package manager

// TellFewAsMany makes news go to few lookups as it does to many: whoever spreads it sends it.
func TellFewAsMany(m *Manager) {
	m.lookups.mu.Lock()
	defer m.lookups.mu.Unlock()
	m.lookups.few = 0
}
