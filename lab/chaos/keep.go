package chaos

import (
	"errors"
	"os"
)

// maxHistory is how large the history of a process may become before an older half of it is
// given up: what it says has been judged long before. In half an hour an owner does not
// say as much.
const maxHistory = 16 << 20

// A kept is a file that does not grow beyond a size: when it is full it becomes the older
// one, and another begins.
type kept struct {
	path string
	most int64
	file *os.File
	size int64
}

// older is what is added to the name of a file that was full.
const older = ".older"

// keepIn opens a file, to add to it.
func keepIn(path string, most int64) (*kept, error) {
	k := &kept{path: path, most: most}
	err := k.open()
	return k, err
}

func (k *kept) open() (err error) {
	if k.file, err = os.OpenFile(k.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err != nil {
		return err
	}
	info, err := k.file.Stat()
	if err != nil {
		return errors.Join(err, k.file.Close())
	}
	k.size = info.Size()
	return nil
}

func (k *kept) Write(piece []byte) (int, error) {
	if k.size >= k.most {
		if err := errors.Join(k.file.Close(), os.Rename(k.path, k.path+older), k.open()); err != nil {
			return 0, err
		}
	}
	n, err := k.file.Write(piece)
	k.size += int64(n)
	return n, err
}

func (k *kept) Close() error { return k.file.Close() }
