package pki

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
)

// tokenPrefix lets people and scanners for secrets see what it is.
const tokenPrefix = "leasehold_"

// NewToken draws a bearer token of 256 bits, and its SHA-256 in hexadecimal,
// which is all that a policy needs to know of it.
func NewToken() (token, hash string) {
	var random [32]byte
	_, _ = rand.Read(random[:]) // it never fails
	token = tokenPrefix + base64.RawURLEncoding.EncodeToString(random[:])
	sum := sha256.Sum256([]byte(token))
	return token, hex.EncodeToString(sum[:])
}
