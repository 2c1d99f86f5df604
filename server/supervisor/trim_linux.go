package supervisor

import (
	"bufio"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// trimDelay is the delay of trim after the start of the child.
const trimDelay = time.Second

// trim returns the memory that only the initialization of the program needed: the free heap, and the pages
// of the program file, which stay in the page cache and are mapped again at the next access.
func trim() {
	debug.FreeOSMemory()
	file, err := os.Executable()
	if err != nil {
		return
	}
	maps, err := os.Open("/proc/self/smaps")
	if err != nil {
		return
	}
	defer maps.Close() //nolint:errcheck // it was only read
	var clean []mapping
	var m mapping
	for lines := bufio.NewScanner(maps); lines.Scan(); {
		line := lines.Text()
		if key, _, _ := strings.Cut(line, " "); !strings.HasSuffix(key, ":") {
			m = parseMapping(line, file)
		} else if m.unmodified(line) {
			clean = append(clean, m)
		}
	}
	for _, m := range clean { // last, because all other code maps pages again
		_, _, _ = unix.Syscall(unix.SYS_MADVISE, m.start, m.end-m.start, unix.MADV_DONTNEED) // an error: they stay
	}
}

// A mapping is an entry of /proc/self/smaps.
type mapping struct {
	start, end uintptr
	ours       bool // pages of our program file, which cannot be written
}

func parseMapping(line, file string) (m mapping) {
	var access string
	if _, err := fmt.Sscanf(line, "%x-%x %s", &m.start, &m.end, &access); err == nil {
		m.ours = strings.HasSuffix(line, " "+file) && (access == "r-xp" || access == "r--p")
	}
	return m
}

// unmodified reports whether, by this line, no page of the mapping was modified before it became read-only:
// such a page is not in the file.
func (m *mapping) unmodified(line string) bool {
	key, value, _ := strings.Cut(line, ":")
	return key == "Anonymous" && strings.TrimSpace(value) == "0 kB" && m.ours
}
