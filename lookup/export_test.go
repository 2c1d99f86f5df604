package lookup

// WakeUp is what happens after the computer was suspended.
func (l *Lookup) WakeUp() { l.follower.slept() }
