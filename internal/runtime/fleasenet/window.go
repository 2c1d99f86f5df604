package fleasenet

// windowSize is how far a packet may be behind the newest one of its sender. The
// ring has a word more, which is being filled while the oldest is being
// forgotten.
const (
	windowWords = 64
	windowSize  = (windowWords - 1) * 64
)

// A window remembers which of the newest packets of a sender were had: a ring of
// bits, by number, of which whole words are forgotten at a time (RFC 6479). The
// zero window has had none. Packets number from 1.
type window struct {
	newest uint64
	had    [windowWords]uint64
}

// fresh reports whether a packet is new, as far as the window can tell.
func (w *window) fresh(n uint64) bool {
	switch {
	case n == 0:
		return false
	case n > w.newest:
		return true
	case w.newest-n >= windowSize:
		return false
	}
	return w.had[n/64%windowWords]&(1<<(n%64)) == 0
}

// mark remembers a packet that is fresh. Only one that is authentic may be
// marked: its number moves the window.
func (w *window) mark(n uint64) {
	if n > w.newest {
		// The words after the newest one's are from a round of the ring before.
		skipped := min(n/64-w.newest/64, windowWords)
		for i := range skipped {
			w.had[(n/64-i)%windowWords] = 0
		}
		w.newest = n
	}
	w.had[n/64%windowWords] |= 1 << (n % 64)
}
