// Package secret keeps passwords, keys and tokens out of logs, errors, documents and
// panics.
//
// A configuration is logged, printed with %+v in a test that fails, or written as JSON to
// a page for people who debug, and nobody thinks of the password in it. A [Text] says
// "(secret)" whatever it is asked by, and what it stands for only to [Text.Reveal]:
//
//	password := secret.New(os.Getenv("PASSWORD"))
//	slog.Info("logging in", "password", password) // password=(secret)
//	login(password.Reveal())
//
// It protects against accidents. Whoever runs code in the process can read its memory.
package secret
