package pulumi

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"time"
)

const (
	// mirrorInterval is how often the checkpoint is looked at while the CLI works.
	mirrorInterval = 50 * time.Millisecond
	// saveTimeout bounds the last save of an operation, which the end of its context must not stop.
	saveTimeout = 30 * time.Second
)

// mirrored calls work and saves each checkpoint that is written meanwhile. It answers what became of the last one.
func (f *Folder) mirrored(ctx context.Context, preview bool, work func()) error {
	if preview {
		work()
		return nil
	}
	m := &mirror{file: f.stateFile(), save: f.run.Save}
	m.last, _ = os.ReadFile(m.file) // what cannot be read is saved once it can be
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		m.follow(context.WithoutCancel(ctx), stop, func(err error) {
			f.engine.options.Logger.Error(err, "Saving a checkpoint while pulumi works; the next one is tried", "folder", f.run.ID)
		})
	}()
	work()
	close(stop)
	<-stopped
	saving, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveTimeout)
	defer cancel()
	err := m.look(saving)
	if err != nil {
		f.unsaved = m.seen
	}
	return err
}

// mirror saves a file's content as often as it changes.
type mirror struct {
	file string
	save func(ctx context.Context, checkpoint []byte) error
	// last is the content that was saved, seen the one that was read last, info what was known of the file then.
	last, seen []byte
	info       fs.FileInfo
}

func (m *mirror) follow(ctx context.Context, stop <-chan struct{}, failed func(error)) {
	ticker := time.NewTicker(mirrorInterval)
	defer ticker.Stop()
	for {
		select {
		case <-stop:
			return
		case <-ticker.C:
			if m.changed() {
				if err := m.look(ctx); err != nil {
					failed(err)
				}
			}
		}
	}
}

// changed reports whether the file is another than when it was last looked at. Pulumi replaces it whole.
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

// look saves the file's content where it is not saved yet.
func (m *mirror) look(ctx context.Context) error {
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
