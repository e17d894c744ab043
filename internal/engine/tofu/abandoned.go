package tofu

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/go-logr/logr"

	"github.com/machine-iac/machine-iac-operator/internal/engine/batch"
	"github.com/machine-iac/machine-iac-operator/internal/engine/workdir"
)

// The files of a run's folder that matter after its engine has died.
const (
	runFile       = "run.json"
	erroredFile   = "errored.tfstate"
	variablesFile = "machine.tfvars.json" // secret
	planFile      = "plan.bin"            // secret
)

// secrets are removed from a folder that is kept for its state.
var secrets = []string{variablesFile, planFile, workdir.FilesDir}

// maxState limits the size of a state that is read from a run's folder.
const maxState = 256 << 20

// runMetadata describes a run in its folder, for a later process that finds it.
type runMetadata struct {
	ID       string          `json:"id"`
	Module   string          `json:"module"`
	Started  time.Time       `json:"started"`
	Identity json.RawMessage `json:"identity,omitempty"`
	// Batch is set if the run serves several Machines.
	Batch *batch.Parts `json:"batch,omitempty"`
}

// AbandonedRun is a run whose folder was left behind because its process died, or kept because its
// state was not saved. A batch counts as one run for each Machine; they share its folder.
type AbandonedRun struct {
	ID string
	// Module is the digest of the run's module.
	Module  string
	Started time.Time
	// Identity is the run's Identity as JSON. It is nil if the previous process died while it created
	// the folder, before it ran anything.
	Identity json.RawMessage

	dir string
	// batch splits the state in the folder, and part is this run's index. It is nil for a run with its
	// own folder.
	batch *batch.Parts
	part  int
}

// ErroredState returns the state that the engine could not save anywhere else, or nil. It may be
// truncated.
func (l AbandonedRun) ErroredState() ([]byte, error) {
	state, err := readErroredState(l.dir)
	if l.batch == nil || state == nil || err != nil {
		return state, err
	}
	split, err := l.batch.Split(state)
	if err != nil {
		return nil, err
	}
	return split[l.part], nil
}

// remove removes the run's folder. In a batch, it removes the run's mark, and the folder with the
// last mark. Neither needs disk space.
func (l AbandonedRun) remove() error {
	if l.batch != nil {
		if err := os.Remove(filepath.Join(l.dir, partsDir, l.ID)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		if others, err := os.ReadDir(filepath.Join(l.dir, partsDir)); err != nil || len(others) > 0 {
			return err
		}
	}
	return os.RemoveAll(l.dir)
}

// AbandonedRuns returns the runs that a previous process left behind and those that were kept,
// ordered by ID. None of them is still running.
func (e *Engine) AbandonedRuns() []AbandonedRun {
	e.abandonedMu.Lock()
	defer e.abandonedMu.Unlock()
	found := make([]AbandonedRun, 0, len(e.abandoned))
	for _, id := range slices.Sorted(maps.Keys(e.abandoned)) {
		found = append(found, e.abandoned[id])
	}
	return found
}

// Discard removes the folder of an abandoned run. Read its ErroredState first.
func (e *Engine) Discard(id string) error {
	e.abandonedMu.Lock()
	defer e.abandonedMu.Unlock()
	leftover, found := e.abandoned[id]
	if !found {
		return nil
	}
	if err := leftover.remove(); err != nil {
		return fmt.Errorf("discarding the abandoned run %s: %w", id, err)
	}
	delete(e.abandoned, id)
	return nil
}

// readAbandonedRuns lists the folders in runs and removes their secrets immediately.
func readAbandonedRuns(runs string, logger logr.Logger) (map[string]AbandonedRun, error) {
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
		left, err := readOrRemove(dir)
		if err != nil {
			logger.Error(err, "Dropping the unusable state of a batch; the next runs look up its Machines",
				"folder", entry.Name())
		}
		for _, one := range left {
			found[one.ID] = one
		}
	}
	return found, nil
}

func readAbandonedRun(dir string) AbandonedRun {
	record := readRecord(dir)
	return AbandonedRun{ID: filepath.Base(dir), dir: dir, Module: record.Module, Started: record.Started,
		Identity: record.Identity}
}

// readRecord returns a run's record, or an empty one if there is none.
func readRecord(dir string) runMetadata {
	var record runMetadata
	if content, err := workdir.ReadFile(dir, runFile, maxState); err != nil || json.Unmarshal(content, &record) != nil {
		return runMetadata{}
	}
	return record
}

// leave adds a run to the abandoned runs.
func (e *Engine) leave(l AbandonedRun) {
	e.abandonedMu.Lock()
	defer e.abandonedMu.Unlock()
	e.abandoned[l.ID] = l
}

// readErroredState returns the content of the file, or nil if it is missing or empty.
func readErroredState(dir string) ([]byte, error) {
	state, err := workdir.ReadFile(dir, erroredFile, maxState)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the unsaved state: %w", err)
	}
	if len(bytes.TrimSpace(state)) == 0 {
		return nil, nil // the engine died before it wrote the file
	}
	return withLineage(state, filepath.Base(dir)), nil
}

// withLineage sets the lineage of a state that has none. An engine chooses a lineage when it first
// saves a state, so there is none if it could not even read the state.
func withLineage(state []byte, lineage string) []byte {
	var file map[string]json.RawMessage
	if json.Unmarshal(state, &file) != nil || string(file["lineage"]) != `""` {
		return state
	}
	file["lineage"] = fmt.Appendf(nil, "%q", lineage)
	named, err := json.Marshal(file)
	if err != nil {
		return state
	}
	return named
}
