package pulumi

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/machine-iac/machine-iac-operator/internal/engine/workdir"
)

const (
	// pollInterval is how often the checkpoint is polled.
	pollInterval = 50 * time.Millisecond
	// retryInterval is when a failed save is retried, unless a newer checkpoint comes first.
	retryInterval = 5 * time.Second
	// saveTimeout limits the last save of an operation, which continues after its context has ended.
	saveTimeout = 30 * time.Second
)

// mirrored calls work and saves each checkpoint that is written in the meantime. It returns the
// error of the last save.
func (f *Workspace) mirrored(ctx context.Context, preview bool, work func()) error {
	if preview {
		work()
		return nil
	}
	m := &mirror{dir: f.dir, name: statePath(f.run.Project), save: f.save, failed: func(err error) {
		f.engine.options.Logger.Error(err, "Saving a checkpoint while pulumi is running; retrying", "folder", f.run.ID)
	}}
	if f.unsaved == nil {
		m.last, _ = m.read() // an unreadable file is saved once it is readable
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		m.follow(context.WithoutCancel(ctx), stop)
	}()
	work()
	close(stop)
	<-stopped
	return f.saveLast(ctx, m)
}

func (f *Workspace) saveLast(ctx context.Context, m *mirror) error {
	saving, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveTimeout)
	defer cancel()
	if err := m.sync(saving); err != nil {
		f.unsaved, _ = stored(m.seen) // a truncated checkpoint is dropped
		return err
	}
	f.unsaved = nil
	return nil
}

// save stores a checkpoint that the CLI has written.
func (f *Workspace) save(ctx context.Context, checkpoint []byte) error {
	checkpoint, err := stored(checkpoint)
	if err != nil {
		return err
	}
	return f.run.Save(ctx, checkpoint)
}

// mirror saves a file's content whenever it changes. Pulumi replaces the file atomically.
type mirror struct {
	// name is the checkpoint's path relative to the folder of the run.
	dir, name string

	save func(ctx context.Context, checkpoint []byte) error
	// failed is called for a save that will be retried.
	failed func(error)
	// last is the content that was saved, seen the content that was read last, and info the file's
	// metadata then.
	last, seen []byte
	info       fs.FileInfo
}

// follow saves new content of the file until stop is closed.
func (m *mirror) follow(ctx context.Context, stop <-chan struct{}) {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	var again <-chan time.Time
	for {
		select {
		case <-stop:
			return
		case <-ticker.C:
			if !m.changed() {
				continue
			}
		case <-again:
		}
		again = nil
		if err := m.sync(ctx); err != nil {
			m.failed(err)
			again = time.After(retryInterval)
		}
	}
}

// changed reports whether the file has changed since the last poll.
func (m *mirror) changed() bool {
	info, err := os.Stat(m.file())
	if err != nil {
		return false
	}
	if m.info != nil && os.SameFile(m.info, info) && info.ModTime().Equal(m.info.ModTime()) &&
		info.Size() == m.info.Size() {
		return false
	}
	m.info = info
	return true
}

func (m *mirror) file() string { return filepath.Join(m.dir, m.name) }

func (m *mirror) read() ([]byte, error) { return workdir.ReadFile(m.dir, m.name, maxCheckpoint) }

// sync saves the file's content unless it is saved already.
func (m *mirror) sync(ctx context.Context) error {
	raw, err := m.read()
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if bytes.Equal(raw, m.last) {
		return nil
	}
	m.seen = raw
	if err := m.save(ctx, raw); err != nil {
		return err
	}
	m.last = raw
	return nil
}
