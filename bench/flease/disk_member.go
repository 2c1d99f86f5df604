package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"
)

// The writer's habits are those of IOZone in the paper, blocks of 512 KiB, but it
// waits for the disk after each and never pauses: the disk has no idle moment.
const (
	block    = 512 << 10
	fileSize = 1 << 30 // then it begins anew
)

// A diskWriter keeps a disk busy, from one order to the next.
type diskWriter struct {
	file *os.File
	stop chan struct{}
	told chan answer // what was written, when stopped
}

func startWriter(_ context.Context, args []string) (member, string, error) {
	flags := flag.NewFlagSet("disk-writer", flag.ContinueOnError)
	path := flags.String("file", "", "what to write; it is removed in the end")
	if err := flags.Parse(args); err != nil {
		return nil, "", err
	}
	file, err := os.OpenFile(*path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, "", err
	}
	return &diskWriter{file: file}, "", nil
}

func (w *diskWriter) obey(_ context.Context, o order) (answer, error) {
	switch {
	case o.Do == orderWrite && w.stop == nil:
		stop, told := make(chan struct{}), make(chan answer, 1)
		go func() { told <- w.write(stop) }()
		w.stop, w.told = stop, told
		return answer{}, nil
	case o.Do == orderRest && w.stop != nil:
		return w.rest(), nil
	}
	return answer{}, unknownOrder(o)
}

func (w *diskWriter) rest() answer {
	close(w.stop)
	w.stop = nil
	return <-w.told
}

func (w *diskWriter) close() error {
	if w.stop != nil {
		w.rest()
	}
	return errors.Join(w.file.Close(), os.Remove(w.file.Name()))
}

// write writes and syncs until it is stopped.
func (w *diskWriter) write(stop <-chan struct{}) answer {
	data := make([]byte, block)
	for i := range data {
		data[i] = byte(i * 131 >> 3) // not zeros, which some disks do not write
	}
	a := answer{Begin: time.Now().UnixNano()}
	before := cpuTime()
	for {
		select {
		case <-stop:
			a.End, a.CPU = time.Now().UnixNano(), int64(cpuTime()-before)
			return a
		default:
		}
		if _, err := w.file.WriteAt(data, a.Bytes%fileSize); err != nil {
			return answer{Error: fmt.Sprintf("keeping the disk busy: %v", err)}
		}
		if err := w.file.Sync(); err != nil {
			return answer{Error: fmt.Sprintf("keeping the disk busy: %v", err)}
		}
		a.Bytes += block
		a.Syncs++
	}
}
