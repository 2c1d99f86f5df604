package fleasenet

// windowSize is the maximum distance of an accepted packet from the newest one of its sender. The ring has one more
// word, because whole words are cleared.
const (
	windowWords = 64
	windowSize  = (windowWords - 1) * 64
)

// A window is the replay window of a sender: a ring of bits by packet number, cleared by whole words (RFC 6479). The
// zero window is empty. Packet numbers begin with 1.
type window struct {
	newest uint64
	seen   [windowWords]uint64
}

// isNew reports whether a packet is within the window or newer, and no duplicate.
func (w *window) isNew(n uint64) bool {
	switch {
	case n == 0:
		return false
	case n > w.newest:
		return true
	case w.newest-n >= windowSize:
		return false
	}
	return w.seen[n/64%windowWords]&(1<<(n%64)) == 0
}

// mark records a new packet. It must be authentic, because its number moves the window.
func (w *window) mark(n uint64) {
	if n > w.newest {
		// The words after that of newest have bits of the previous round.
		skipped := min(n/64-w.newest/64, windowWords)
		for i := range skipped {
			w.seen[(n/64-i)%windowWords] = 0
		}
		w.newest = n
	}
	w.seen[n/64%windowWords] |= 1 << (n % 64)
}
