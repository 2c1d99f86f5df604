package flease

// identity is what is known of another process with our id (see twin.go).
type identity struct {
	twin life // that process; none if it has no incarnation
	hail bool // our own address is to be greeted
	said Wall // the latest that we have put into an envelope
}
