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

// trimDelays are the delays of trim after the start of the child: on a loaded machine other goroutines map pages
// again while the first one runs.
var trimDelays = []time.Duration{time.Second, 10 * time.Second, time.Minute}

// trim returns the memory that only the initialization of the program needed: the free heap, and the pages
// of the program file and of shared libraries, which stay in the page cache and are mapped again at the next access.
func trim() {
	debug.FreeOSMemory()
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
			m = parseMapping(line)
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
	file       bool // pages of a file, which cannot be written
}

func parseMapping(line string) (m mapping) {
	var access string
	if _, err := fmt.Sscanf(line, "%x-%x %s", &m.start, &m.end, &access); err == nil {
		m.file = strings.Contains(line, " /") && (access == "r-xp" || access == "r--p")
	}
	return m
}

// unmodified reports whether, by this line, no page of the mapping was modified before it became read-only:
// such a page is not in the file.
func (m *mapping) unmodified(line string) bool {
	key, value, _ := strings.Cut(line, ":")
	return key == "Anonymous" && strings.TrimSpace(value) == "0 kB" && m.file
}
