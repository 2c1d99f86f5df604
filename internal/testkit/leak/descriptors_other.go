//go:build !linux

package leak

// descriptors is not available on this system.
func descriptors() map[string]string { return nil }

func added(map[string]string) []string { return nil }
