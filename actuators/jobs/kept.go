package jobs

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/machine-iac/machine-iac-operator/actuators/runner"
)

// kept stores states that Pods returned and that could not be saved, as files in one folder. They
// outlive the process.
type kept struct {
	dir string

	mu   sync.Mutex
	runs []keptRun
}

// keptRun implements runner.AbandonedRun.
type keptRun struct {
	Run   string          `json:"run"`
	Whose json.RawMessage `json:"identity"`
	State []byte          `json:"state"`
}

const keptSuffix = ".json"

// read loads the states kept by an earlier process.
func (k *kept) read() error {
	if err := os.MkdirAll(k.dir, 0o700); err != nil {
		return fmt.Errorf("creating the folder for unsaved states: %w", err)
	}
	entries, err := os.ReadDir(k.dir)
	if err != nil {
		return fmt.Errorf("reading the unsaved states: %w", err)
	}
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), keptSuffix) {
			continue
		}
		content, err := os.ReadFile(filepath.Join(k.dir, entry.Name()))
		if err != nil {
			return fmt.Errorf("reading an unsaved state: %w", err)
		}
		var one keptRun
		if err := json.Unmarshal(content, &one); err != nil {
			return fmt.Errorf("reading unsaved state %s: %w", entry.Name(), err)
		}
		k.runs = append(k.runs, one)
	}
	return nil
}

func (k *kept) keep(run runner.RunSpec, unsaved []byte) error {
	whose, err := json.Marshal(run.Identity)
	if err != nil {
		return err
	}
	one := keptRun{Run: nameOf(run), Whose: whose, State: unsaved}
	content, err := json.Marshal(one)
	if err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	part := k.file(one.Run) + ".part"
	if err := os.WriteFile(part, content, 0o600); err != nil {
		return fmt.Errorf("keeping an unsaved state: %w", err)
	}
	if err := os.Rename(part, k.file(one.Run)); err != nil {
		return fmt.Errorf("keeping an unsaved state: %w", err)
	}
	k.runs = append(k.runs, one)
	return nil
}

func (k *kept) file(run string) string { return filepath.Join(k.dir, filepath.Base(run)+keptSuffix) }

func (k *kept) list() []runner.AbandonedRun {
	k.mu.Lock()
	defer k.mu.Unlock()
	var found []runner.AbandonedRun
	for _, one := range k.runs {
		found = append(found, one)
	}
	return found
}

func (k *kept) discard(id string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := os.Remove(k.file(id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing a saved state: %w", err)
	}
	k.runs = slices.DeleteFunc(k.runs, func(one keptRun) bool { return one.Run == id })
	return nil
}

// ID implements runner.AbandonedRun.
func (r keptRun) ID() string { return r.Run }

// Identity implements runner.AbandonedRun.
func (r keptRun) Identity() json.RawMessage { return r.Whose }

// Unsaved implements runner.AbandonedRun. States have a serial, by which the store detects a stale
// one.
func (r keptRun) Unsaved([]byte, bool) ([]byte, error) { return r.State, nil }
