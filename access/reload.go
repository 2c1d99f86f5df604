package access

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"log/slog"
	"os"
	"time"
)

// settleTime is how long a new file must be unchanged before it is applied: an editor
// that writes in place may not have finished.
const settleTime = 100 * time.Millisecond

// Reload reads the file and applies it if it is valid. Otherwise it returns the reason,
// and the previous file stays in force. The contexts of streams that the new file denies
// are cancelled before it returns.
func (p *Policy) Reload() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	text, err := read(p.cfg.File)
	if err == nil && sha256.Sum256(text) != p.ruleset.Load().digest {
		err = p.apply(text)
	}
	p.logProblem(err)
	return err
}

// poll reads the file and returns the delay until the next read. A change is applied
// when two consecutive reads agree.
func (p *Policy) poll() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	text, err := read(p.cfg.File)
	if err == nil {
		switch digest := sha256.Sum256(text); {
		case digest == p.ruleset.Load().digest:
			p.seen = digest // a change that was undone must settle again
		case digest != p.seen:
			p.seen = digest
			return min(p.cfg.Poll, settleTime)
		default:
			err = p.apply(text)
		}
	}
	p.logProblem(err)
	return p.cfg.Poll
}

// apply puts a file in force if it is valid.
func (p *Policy) apply(text []byte) error {
	b, err := parse(p.cfg.File, text)
	if err != nil {
		return err
	}
	b.digest = sha256.Sum256(text)
	p.ruleset.Store(b)
	p.audit.write(slog.LevelInfo, "access file loaded", slog.String("file", p.cfg.File),
		slog.Int("rules", b.rules()), slog.Int("tokens", len(b.tokens)), slog.String("sha256", hex.EncodeToString(b.digest[:8])))
	p.checkStreams(time.Now())
	return nil
}

// logProblem logs each new problem once. p.mu is held.
func (p *Policy) logProblem(err error) {
	problem := ""
	if err != nil {
		problem = err.Error()
	}
	if problem != "" && problem != p.problem {
		p.audit.write(slog.LevelError, "access file rejected: the previous version stays in force", slog.String("why", problem))
	}
	p.problem = problem
}

// read reads a file, and rejects one that is world-writable.
func read(name string) ([]byte, error) {
	bad := document{name}.bad
	f, err := os.Open(name) // #nosec G304 -- the operator names the file
	if err != nil {
		return nil, bad(0, "%w", err)
	}
	defer func() { _ = f.Close() }() // it was only read
	info, err := f.Stat()
	if err != nil {
		return nil, bad(0, "%w", err)
	}
	if mode := info.Mode(); mode.Perm()&0o002 != 0 {
		return nil, bad(0, "it is world-writable (%v): chmod o-w", mode)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	if err != nil {
		return nil, bad(0, "%w", err)
	}
	if len(text) > maxFileBytes {
		return nil, bad(0, "it has more than %d bytes", maxFileBytes)
	}
	return text, nil
}
