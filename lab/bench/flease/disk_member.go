package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/leasehold-dev/leasehold/lab/bench/proc"
)

// The writer must keep the disk busy all the time and use little CPU, because the disk
// is what is measured. So it bypasses the page cache, writes large blocks from large
// pages, and always has two writes in progress. (The paper's IOZone wrote 512 KiB at a
// time through the cache and paused for 7 ms after each write, to leave the machine to
// the other processes.)
const (
	block    = 16 << 20
	fileSize = 1 << 30 // then it starts from the beginning
	writers  = 2
)

// DiskWriter keeps a disk busy, from Write to Rest. It is exported for net/rpc.
type DiskWriter struct {
	file   *os.File
	data   []byte
	stop   chan struct{}
	result chan Written
}

// Written is the amount written in a period.
type Written struct {
	Bytes, Syncs int64
	Took, CPU    time.Duration
	Error        string
}

func (w Written) plus(o Written) Written {
	return Written{Bytes: w.Bytes + o.Bytes, Syncs: w.Syncs + o.Syncs, Took: w.Took + o.Took, CPU: w.CPU + o.CPU}
}

// startWriter prepares a file. Close removes it.
func startWriter(_ context.Context, path string) (*DiskWriter, error) {
	data, err := blockOfLargePages()
	if err != nil {
		return nil, err
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL|syscall.O_DIRECT, 0o600)
	if errors.Is(err, syscall.EINVAL) {
		return nil, fmt.Errorf("%s is on a file system without direct access to a disk: choose another with -dir", path)
	}
	if err != nil {
		return nil, err
	}
	// The first write of a block costs time in the file system, not on the disk.
	for at := int64(0); at < fileSize; at += block {
		if _, err := file.WriteAt(data, at); err != nil {
			return nil, errors.Join(fmt.Errorf("preparing the file: %w", err), file.Close(), os.Remove(path))
		}
	}
	return &DiskWriter{file: file, data: data}, nil
}

// blockOfLargePages returns the data to write. The kernel has to look up each page of
// it, so there should be few.
func blockOfLargePages() ([]byte, error) {
	data, err := syscall.Mmap(-1, 0, block, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		return nil, fmt.Errorf("memory for a block of %d bytes: %w", block, err)
	}
	_ = syscall.Madvise(data, syscall.MADV_HUGEPAGE) // small pages work as well
	for i := range data {
		data[i] = byte(i * 131 >> 3) // not zeros, which some disks do not write
	}
	return data, nil
}

// Write starts writing.
func (w *DiskWriter) Write(struct{}, *struct{}) error {
	if w.stop != nil {
		return errors.New("it writes already")
	}
	stop, result := make(chan struct{}), make(chan Written, 1)
	go func() { result <- w.write(stop) }()
	w.stop, w.result = stop, result
	return nil
}

// Rest stops writing, and returns the amount written.
func (w *DiskWriter) Rest(_ struct{}, written *Written) error {
	if w.stop == nil {
		return errors.New("it does not write")
	}
	close(w.stop)
	w.stop = nil
	if *written = <-w.result; written.Error != "" {
		return errors.New(written.Error)
	}
	return nil
}

// Close removes the file.
func (w *DiskWriter) Close() error {
	if w.stop != nil {
		_ = w.Rest(struct{}{}, &Written{}) // the file is removed in any case
	}
	return errors.Join(w.file.Close(), os.Remove(w.file.Name()))
}

func (w *DiskWriter) write(stop <-chan struct{}) Written {
	before, begin := proc.CPUTime(), time.Now()
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
		return Written{Error: fmt.Sprintf("keeping the disk busy: %v", err)}
	}
	return Written{Bytes: bytes.Load(), Syncs: syncs.Load(), Took: time.Since(begin), CPU: proc.CPUTime() - before}
}
