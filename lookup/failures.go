package lookup

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/leasehold-dev/leasehold"
)

// failures has the last error of each manager, for the error of Open. It is safe for concurrent use.
type failures struct {
	managers func() []string // the listed ones

	mu   sync.Mutex
	last map[string]string // bounded: see record
}

func newFailures(managers func() []string) *failures {
	return &failures{managers: managers, last: make(map[string]string)}
}

// record stores the error of a manager, and reports whether it differs from the one before. Of managers that are not
// configured, it stores a bounded number.
func (f *failures) record(from, err string) (changed bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	last, known := f.last[from]
	if known || len(f.last) < 2*maxManagers || slices.Contains(f.managers(), from) {
		f.last[from] = err
		changed = last != err
	}
	return changed
}

// keep drops the errors of all managers but these.
func (f *failures) keep(managers []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	maps.DeleteFunc(f.last, func(from, _ string) bool { return !slices.Contains(managers, from) })
}

// String lists the managers in the order of the configuration, then the others.
func (f *failures) String() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var lines []string
	managers := f.managers()
	for _, addr := range managers {
		err, ok := f.last[addr]
		if !ok {
			err = "no answer"
		}
		lines = append(lines, fmt.Sprintf("%s: %s", addr, err))
	}
	for addr, err := range f.last {
		if !slices.Contains(managers, addr) {
			lines = append(lines, fmt.Sprintf("%s: %s", addr, err))
		}
	}
	slices.Sort(lines[len(managers):])
	return strings.Join(lines, "; ")
}

// noSuchNamespace is the error for a namespace that does not exist.
func noSuchNamespace(n leasehold.Namespace, manager string) error {
	return leasehold.Errorf(opOpen, leasehold.ErrNotFound, string(n),
		"manager %s has no such namespace: correct the name, or create it with 'leasehold namespace create %s'",
		manager, n)
}
