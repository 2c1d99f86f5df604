package owner

// promises count the views that have lost a lease on which others may still rely. Until they are over, no
// message gives the lease back.
type promises struct {
	made, over uint64 // over <= made
}

// open reports whether a message is held back: it would give back what others still
// rely on.
func (p *promises) open() bool { return p.over != p.made }
