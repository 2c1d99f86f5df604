package access

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"log/slog"
	"os"
	"time"
)

// settle is for how long a new file must stand still: whoever writes it in place
// may not be done.
const settle = 100 * time.Millisecond

// Reload reads the file now, and takes it if it is in order. If not, the error says
// why, and everything stays as it was. Streams that the new one does not permit have
// been told to end when it returns.
func (p *Policy) Reload() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	text, err := read(p.cfg.File)
	if err == nil && sha256.Sum256(text) != p.book.Load().digest {
		err = p.take(text)
	}
	p.tell(err)
	return err
}

// poll reads the file and returns when to do so again. A change is taken when the
// same is read twice.
func (p *Policy) poll() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	text, err := read(p.cfg.File)
	if err == nil {
		switch digest := sha256.Sum256(text); {
		case digest == p.book.Load().digest:
			p.seen = digest // what was there in between has not stood still
		case digest != p.seen:
			p.seen = digest
			return min(p.cfg.Poll, settle)
		default:
			err = p.take(text)
		}
	}
	p.tell(err)
	return p.cfg.Poll
}

// take makes a file the one in force, if it is in order.
func (p *Policy) take(text []byte) error {
	b, err := parse(p.cfg.File, text)
	if err != nil {
		return err
	}
	b.digest = sha256.Sum256(text)
	p.book.Store(b)
	p.audit.write(slog.LevelInfo, "access file taken", slog.String("file", p.cfg.File),
		slog.Int("rules", b.rules()), slog.Int("tokens", len(b.tokens)), slog.String("sha256", hex.EncodeToString(b.digest[:8])))
	p.look(time.Now())
	return nil
}

// tell says once what is wrong with the newest file. The lock is held.
func (p *Policy) tell(err error) {
	trouble := ""
	if err != nil {
		trouble = err.Error()
	}
	if trouble != "" && trouble != p.trouble {
		p.audit.write(slog.LevelError, "the access file cannot be taken: what was in it before stays in force", slog.String("why", trouble))
	}
	p.trouble = trouble
}

// read reads a file that not everybody can write to.
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
		return nil, bad(0, "everybody can write to it (%v): chmod o-w", mode)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, bad(0, "%w", err)
	}
	if len(text) > maxFile {
		return nil, bad(0, "it has more than %d bytes", maxFile)
	}
	return text, nil
}
