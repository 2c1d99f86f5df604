package flease

// identity is the state of the detection of another process with the same id (see twin.go).
type identity struct {
	twin      life // that process; no incarnation if there is none
	greetSelf bool // send a greeting to our own address
	lastSent  Wall // latest time in an envelope that we sent
}
