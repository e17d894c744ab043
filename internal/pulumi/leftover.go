package pulumi

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// recordFile is what a run's folder says of the run, for whoever finds it.
const recordFile = "run.json"

type runRecord struct {
	Project  string          `json:"project"`
	Identity json.RawMessage `json:"identity,omitempty"`
}

// Leftover is a run whose folder a predecessor left behind when it died.
type Leftover struct {
	// ID is the run's.
	ID string
	// Identity is the run's Identity as JSON. It is nil where the predecessor died while it made the folder; nothing was run then.
	Identity json.RawMessage
	// Checkpoint is the last that Pulumi has written; it may be newer than the one that was saved. Nil where there is none.
	Checkpoint []byte
}

// Leftovers answers the runs that a predecessor left behind. Nothing of them is running any more. Call it before the first run.
func (e *Engine) Leftovers() ([]Leftover, error) {
	entries, err := os.ReadDir(e.runs())
	if err != nil {
		return nil, fmt.Errorf("listing left-over runs: %w", err)
	}
	found := make([]Leftover, 0, len(entries))
	for _, entry := range entries {
		one, err := readLeftover(filepath.Join(e.runs(), entry.Name()))
		if err != nil {
			return nil, fmt.Errorf("reading the left-over run %s: %w", entry.Name(), err)
		}
		found = append(found, one)
	}
	return found, nil
}

func readLeftover(dir string) (Leftover, error) {
	found := Leftover{ID: filepath.Base(dir)}
	// The configuration and the plan may hold secrets, and nobody needs them any more.
	for _, path := range []string{filepath.Join(dir, "program"), filepath.Join(dir, planFile)} {
		if err := os.RemoveAll(path); err != nil {
			return Leftover{}, err
		}
	}
	content, err := os.ReadFile(filepath.Join(dir, recordFile))
	if errors.Is(err, os.ErrNotExist) {
		return found, nil
	}
	if err != nil {
		return Leftover{}, err
	}
	var record runRecord
	if json.Unmarshal(content, &record) != nil {
		return found, nil // it died while it wrote this
	}
	found.Identity = record.Identity
	raw, err := os.ReadFile(stateFile(dir, record.Project))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return Leftover{}, err
	}
	if _, err := readCheckpoint(raw); err == nil {
		found.Checkpoint = raw
	}
	return found, nil
}

// Discard removes what is left of a run. Take its checkpoint first.
func (e *Engine) Discard(id string) error {
	if !runIDPattern.MatchString(id) {
		return fmt.Errorf("discarding the left-over run %q: that names no run", id)
	}
	if err := os.RemoveAll(filepath.Join(e.runs(), id)); err != nil {
		return fmt.Errorf("discarding the left-over run %s: %w", id, err)
	}
	return nil
}

func stateFile(dir, project string) string {
	return filepath.Join(dir, "backend", ".pulumi", "stacks", project, StackName+".json")
}

// record writes the run's record, before anything else.
func (f *Folder) record() error {
	identity, err := json.Marshal(f.run.Identity)
	if err != nil {
		return fmt.Errorf("writing the run's identity: %w", err)
	}
	content, err := json.Marshal(runRecord{Project: f.run.Project, Identity: identity})
	if err != nil {
		return fmt.Errorf("writing the run's record: %w", err)
	}
	return os.WriteFile(f.path(recordFile), content, 0o600)
}
