// Package callers finds out who makes an HTTP request, for the servers that go by an
// access policy: by the certificate of its connection, or by a bearer token.
//
// Tokens that are wrong are few: whoever shows one from an address pays for it with a
// wait, and the right one waits as well, so that nobody can tell. See [Throttle].
package httpauth
