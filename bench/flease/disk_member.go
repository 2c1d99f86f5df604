package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/leasehold-dev/leasehold/bench/cast"
)

// The writer is to leave the disk no idle moment, and the processors alone: what is
// measured is the disk. So it bypasses the page cache, writes a lot at a time from
// large pages, and there are always two writes under way. (The paper's IOZone wrote
// 512 KiB at a time through the cache and paused for 7 ms after each, so as not to
// take the machine from the others.)
const (
	block    = 16 << 20
	fileSize = 1 << 30 // then it begins anew
	writers  = 2
)

// A diskWriter keeps a disk busy, from one order to the next.
type diskWriter struct {
	file *os.File
	data []byte
	stop chan struct{}
	told chan answer // what was written, when stopped
}

func startWriter(_ context.Context, args []string) (cast.Member, string, error) {
	flags := flag.NewFlagSet("disk-writer", flag.ContinueOnError)
	path := flags.String("file", "", "what to write; it is removed in the end")
	if err := flags.Parse(args); err != nil {
		return nil, "", err
	}
	data, err := blockOfLargePages()
	if err != nil {
		return nil, "", err
	}
	file, err := os.OpenFile(*path, os.O_RDWR|os.O_CREATE|os.O_EXCL|syscall.O_DIRECT, 0o600)
	if errors.Is(err, syscall.EINVAL) {
		return nil, "", fmt.Errorf("%s is on a file system without direct access to a disk: choose another with -dir", *path)
	}
	if err != nil {
		return nil, "", err
	}
	// Blocks that were never written cost the file system, not the disk.
	for at := int64(0); at < fileSize; at += block {
		if _, err := file.WriteAt(data, at); err != nil {
			return nil, "", errors.Join(fmt.Errorf("preparing the file: %w", err), file.Close(), os.Remove(*path))
		}
	}
	return &diskWriter{file: file, data: data}, "", nil
}

// blockOfLargePages returns what is written. Each page costs the kernel a look.
func blockOfLargePages() ([]byte, error) {
	data, err := syscall.Mmap(-1, 0, block, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		return nil, fmt.Errorf("memory for a block of %d bytes: %w", block, err)
	}
	_ = syscall.Madvise(data, syscall.MADV_HUGEPAGE) // it works with small ones, too
	for i := range data {
		data[i] = byte(i * 131 >> 3) // not zeros, which some disks do not write
	}
	return data, nil
}

func (w *diskWriter) Obey(_ context.Context, o order) (answer, error) {
	switch {
	case o.Do == orderWrite && w.stop == nil:
		stop, told := make(chan struct{}), make(chan answer, 1)
		go func() { told <- w.write(stop) }()
		w.stop, w.told = stop, told
		return answer{}, nil
	case o.Do == orderRest && w.stop != nil:
		return w.rest(), nil
	}
	return answer{}, cast.UnknownOrder(o)
}

func (w *diskWriter) rest() answer {
	close(w.stop)
	w.stop = nil
	return <-w.told
}

func (w *diskWriter) Close() error {
	if w.stop != nil {
		w.rest()
	}
	return errors.Join(w.file.Close(), os.Remove(w.file.Name()))
}

// write writes and syncs until it is stopped.
func (w *diskWriter) write(stop <-chan struct{}) answer {
	before, begin := cast.CPUTime(), time.Now()
	var bytes, syncs atomic.Int64
	var group errgroup.Group
	for n := range int64(writers) {
		group.Go(func() error {
			const share = fileSize / writers
			for at := int64(0); ; at = (at + block) % share {
				select {
				case <-stop:
					return nil
				default:
				}
				if _, err := w.file.WriteAt(w.data, n*share+at); err != nil {
					return err
				}
				if err := w.file.Sync(); err != nil {
					return err
				}
				bytes.Add(block)
				syncs.Add(1)
			}
		})
	}
	if err := group.Wait(); err != nil {
		return answer{Error: fmt.Sprintf("keeping the disk busy: %v", err)}
	}
	return answer{
		Begin: begin.UnixNano(), End: time.Now().UnixNano(), CPU: int64(cast.CPUTime() - before),
		Bytes: bytes.Load(), Syncs: syncs.Load(),
	}
}
