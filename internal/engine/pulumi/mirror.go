package pulumi

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

const (
	// pollInterval is how often the checkpoint is looked at where the kernel does not report changes.
	pollInterval = 50 * time.Millisecond
	// retryInterval is when a checkpoint is saved again that could not be, where no newer one comes.
	retryInterval = 5 * time.Second
	// saveTimeout bounds the last save of an operation, which the end of its context must not stop.
	saveTimeout = 30 * time.Second
)

// mirrored calls work and saves each checkpoint that is written meanwhile. It returns the error of the last one.
func (f *Workspace) mirrored(ctx context.Context, preview bool, work func()) error {
	if preview {
		work()
		return nil
	}
	m := &mirror{file: f.stateFile(), save: f.save, failed: func(err error) {
		f.engine.options.Logger.Error(err, "Saving a checkpoint while pulumi works; it is tried again", "folder", f.run.ID)
	}}
	// It is watched first, so that no change is missed before the work.
	watch, err := watchDir(filepath.Dir(m.file))
	if err != nil {
		f.engine.options.Logger.Info("The kernel does not report new checkpoints; polling for them", "folder", f.run.ID, "cause", err.Error())
	}
	if f.unsaved == nil {
		m.last, _ = os.ReadFile(m.file) // what cannot be read is saved once it can be
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		m.follow(context.WithoutCancel(ctx), watch, stop)
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
		if f.unsaved, _ = stored(m.seen); f.unsaved == nil {
			f.unsaved = m.seen // better than nothing
		}
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

// mirror saves a file's content as often as it changes. Pulumi replaces it whole.
type mirror struct {
	file string
	save func(ctx context.Context, checkpoint []byte) error
	// failed is called for a save that is tried again.
	failed func(error)
	// last is the content that was saved, seen the one that was read last, info what was known of the file then.
	last, seen []byte
	info       fs.FileInfo
}

// watchDir returns a watcher that reports new files in a folder.
func watchDir(dir string) (*fsnotify.Watcher, error) {
	watch, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, err
	}
	if err := watch.Add(dir); err != nil {
		return nil, errors.Join(err, watch.Close())
	}
	return watch, nil
}

// follow saves new content of the file at each event of watch, or polls where watch is nil. It closes watch.
func (m *mirror) follow(ctx context.Context, watch *fsnotify.Watcher, stop <-chan struct{}) {
	if watch == nil {
		m.poll(ctx, stop)
		return
	}
	defer watch.Close() //nolint:errcheck // nothing depends on it
	var again <-chan time.Time
	for {
		select {
		case <-stop:
			return
		case event := <-watch.Events:
			if event.Name != m.file || event.Has(fsnotify.Remove) {
				continue
			}
		case err := <-watch.Errors: // such as that there were too many events: the file is read
			m.failed(err)
		case <-again:
		}
		again = nil
		if err := m.sync(ctx); err != nil {
			m.failed(err)
			again = time.After(retryInterval)
		}
	}
}

func (m *mirror) poll(ctx context.Context, stop <-chan struct{}) {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		select {
		case <-stop:
			return
		case <-ticker.C:
			if !m.changed() {
				continue
			}
			if err := m.sync(ctx); err != nil {
				m.failed(err)
				m.info = nil // the same content is tried again
			}
		}
	}
}

// changed reports whether the file is another than at the last poll.
func (m *mirror) changed() bool {
	info, err := os.Stat(m.file)
	if err != nil {
		return false
	}
	if m.info != nil && os.SameFile(m.info, info) && info.ModTime().Equal(m.info.ModTime()) && info.Size() == m.info.Size() {
		return false
	}
	m.info = info
	return true
}

// sync saves the file's content where it is not saved yet.
func (m *mirror) sync(ctx context.Context) error {
	raw, err := os.ReadFile(m.file)
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
