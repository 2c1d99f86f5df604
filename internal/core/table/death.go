package table

import (
	"crypto/sha256"
	"crypto/subtle"
)

// A DeathToken proves that the process of a session has ended. Only a supervisor of the process has it, and
// reveals it when no code of the process can run any more.
type DeathToken [32]byte

// Hash returns the hash by which a token is verified.
func (t DeathToken) Hash() DeathHash { return sha256.Sum256(t[:]) }

// String hides the token.
func (t DeathToken) String() string { return "(secret)" }

// A DeathHash is the SHA-256 of a session's [DeathToken]. The zero value means that there is none.
type DeathHash [sha256.Size]byte

// IsZero reports whether there is no token.
func (h DeathHash) IsZero() bool { return h == DeathHash{} }

// Verifies reports, in constant time, whether h is the hash of the token.
func (h DeathHash) Verifies(t DeathToken) bool {
	given := t.Hash()
	return subtle.ConstantTimeCompare(h[:], given[:]) == 1
}

// WithoutDeathHash returns the holder as other processes may see it.
func (h *Holder) WithoutDeathHash() *Holder {
	if h == nil || h.DeathHash.IsZero() {
		return h
	}
	public := *h
	public.DeathHash = DeathHash{}
	return &public
}
