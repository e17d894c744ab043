package tofu

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/machine-iac/machine-iac-operator/internal/engine/batch"
	"github.com/machine-iac/machine-iac-operator/internal/engine/workdir"
)

// The files of a run's folder that matter after its engine died.
const (
	runFile       = "run.json"
	erroredFile   = "errored.tfstate"
	variablesFile = "machine.tfvars.json" // secret
	planFile      = "plan.bin"            // secret
)

// secrets are what does not stay in a folder that is kept for its state.
var secrets = []string{variablesFile, planFile, workdir.FilesDir}

// maxState bounds a state that is read from a run's folder.
const maxState = 256 << 20

// runMetadata is what a run's folder has about the run, for a later process that finds it.
type runMetadata struct {
	ID       string          `json:"id"`
	Module   string          `json:"module"`
	Started  time.Time       `json:"started"`
	Identity json.RawMessage `json:"identity,omitempty"`
	// Batch is set for a run for several Machines.
	Batch *batch.Parts `json:"batch,omitempty"`
}

// AbandonedRun is a run whose folder was left behind: its process died, or it was kept because its state was not saved.
type AbandonedRun struct {
	ID string
	// Module is the digest of the run's module.
	Module  string
	Started time.Time
	// Identity is the run's Identity as JSON. It is nil where the predecessor died while it made the folder; nothing was run then.
	Identity json.RawMessage

	dir string
}

// ErroredState returns the state that the run's engine could save nowhere else, nil where there is none.
func (l AbandonedRun) ErroredState() ([]byte, error) { return readErroredState(l.dir) }

// AbandonedRuns returns the runs that a predecessor left behind, and those that were kept, in the order of their ids. Nothing of them is
// running any more.
func (e *Engine) AbandonedRuns() []AbandonedRun {
	e.abandonedMu.Lock()
	defer e.abandonedMu.Unlock()
	found := make([]AbandonedRun, 0, len(e.abandoned))
	for _, id := range slices.Sorted(maps.Keys(e.abandoned)) {
		found = append(found, e.abandoned[id])
	}
	return found
}

// Discard removes what is left of a run. Take its errored state first.
func (e *Engine) Discard(id string) error {
	e.abandonedMu.Lock()
	defer e.abandonedMu.Unlock()
	leftover, found := e.abandoned[id]
	if !found {
		return nil
	}
	if err := os.RemoveAll(leftover.dir); err != nil {
		return fmt.Errorf("discarding the abandoned run %s: %w", id, err)
	}
	delete(e.abandoned, id)
	return nil
}

// readAbandonedRuns lists the folders in runs. It removes at once what they hold of secrets.
func readAbandonedRuns(runs string) (map[string]AbandonedRun, error) {
	entries, err := os.ReadDir(runs)
	if err != nil {
		return nil, fmt.Errorf("listing abandoned runs: %w", err)
	}
	found := map[string]AbandonedRun{}
	for _, entry := range entries {
		dir := filepath.Join(runs, entry.Name())
		for _, secret := range secrets {
			if err := os.RemoveAll(filepath.Join(dir, secret)); err != nil {
				return nil, fmt.Errorf("removing the secrets of the abandoned run %s: %w", entry.Name(), err)
			}
		}
		if record := readRecord(dir); record.Batch != nil {
			left, err := disperse(dir, record)
			if err == nil {
				for _, one := range left {
					found[one.ID] = one
				}
				continue
			}
			// Whoever recovers the first Machine's part is given it whole.
		}
		found[entry.Name()] = readAbandonedRun(dir)
	}
	return found, nil
}

func readAbandonedRun(dir string) AbandonedRun {
	record := readRecord(dir)
	return AbandonedRun{ID: filepath.Base(dir), dir: dir, Module: record.Module, Started: record.Started, Identity: record.Identity}
}

// readRecord returns a run's record; an empty one where there is none.
func readRecord(dir string) runMetadata {
	var record runMetadata
	if content, err := os.ReadFile(filepath.Join(dir, runFile)); err != nil || json.Unmarshal(content, &record) != nil {
		return runMetadata{}
	}
	return record
}

// leave lists a run among the abandoned runs.
func (e *Engine) leave(l AbandonedRun) {
	e.abandonedMu.Lock()
	defer e.abandonedMu.Unlock()
	e.abandoned[l.ID] = l
}

func readErroredState(dir string) ([]byte, error) {
	file, err := os.Open(filepath.Join(dir, erroredFile))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the state that was not saved: %w", err)
	}
	defer file.Close() //nolint:errcheck // it was only read
	state, err := io.ReadAll(io.LimitReader(file, maxState+1))
	if err != nil {
		return nil, fmt.Errorf("reading the state that was not saved: %w", err)
	}
	if len(state) > maxState {
		return nil, fmt.Errorf("reading the state that was not saved: it has more than %d MiB", maxState>>20)
	}
	if len(bytes.TrimSpace(state)) == 0 {
		return nil, nil // the engine died before it wrote into the file
	}
	return state, nil
}
