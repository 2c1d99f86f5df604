// Package secret keeps passwords, keys and tokens out of logs, errors, documents and
// panics.
//
// A configuration with a password may be logged, printed with %+v in a failed test, or
// written as JSON to a debug page. A [Text] is formatted and encoded as "(secret)"; only
// [Text.Reveal] returns its value:
//
//	password := secret.New(os.Getenv("PASSWORD"))
//	slog.Info("logging in", "password", password) // password=(secret)
//	login(password.Reveal())
//
// It protects against accidents. Code in the same process can read its memory.
package secret
