package owner

// promises counts the views that have lost a lease on which other processes may still rely. Until these
// promises have ended, no request is sent, because it would release the lease.
type promises struct {
	made, over uint64 // over <= made
}

// open reports whether some promises have not ended, so that requests are held back.
func (p *promises) open() bool { return p.over != p.made }
