package pulumi

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/machine-iac/machine-iac-operator/internal/engine/workdir"
)

const (
	// metadataFile contains the identity of a run, for a later process that finds its folder.
	metadataFile = "run.json"
	backendDir   = "backend"

	// maxCheckpoint limits the size of a checkpoint that is read from a run's folder.
	maxCheckpoint = 256 << 20
)

type runMetadata struct {
	Project string `json:"project"`
	// Lookup means that the checkpoint belongs to a lookup, not to a stack.
	Lookup  bool      `json:"lookup,omitempty"`
	Started time.Time `json:"started"`
	// Opened is the checksum of the run's initial checkpoint.
	Opened   string          `json:"opened"`
	Identity json.RawMessage `json:"identity,omitempty"`
}

// AbandonedRun is a run whose folder a previous process left behind: it died, or kept the folder
// because a checkpoint was not saved.
type AbandonedRun struct {
	// ID of the run.
	ID string
	// Started is when the run was opened.
	Started time.Time
	// Identity is the run's Identity as JSON. It is nil if the previous process died while it created
	// the folder, before it ran anything.
	Identity json.RawMessage
	// Checkpoint is the last one that Pulumi wrote, or nil. It may be newer than the saved one.
	Checkpoint []byte
}

// AbandonedRuns returns the runs that a previous process left behind and those that were kept,
// ordered by ID, except discarded ones. None of them is still running.
func (e *Engine) AbandonedRuns() ([]AbandonedRun, error) {
	e.abandonedMu.Lock()
	defer e.abandonedMu.Unlock()
	found := make([]AbandonedRun, 0, len(e.abandoned))
	for _, id := range slices.Sorted(maps.Keys(e.abandoned)) {
		one, err := readAbandonedRun(filepath.Join(e.runs(), id))
		if err != nil {
			return nil, fmt.Errorf("reading the abandoned run %s: %w", id, err)
		}
		found = append(found, one)
	}
	return found, nil
}

// Discard removes the folder of an abandoned run. Read its Checkpoint first. Other runs stay.
func (e *Engine) Discard(id string) error {
	e.abandonedMu.Lock()
	defer e.abandonedMu.Unlock()
	if _, found := e.abandoned[id]; !found {
		return nil
	}
	if err := os.RemoveAll(filepath.Join(e.runs(), id)); err != nil {
		return fmt.Errorf("discarding the abandoned run %s: %w", id, err)
	}
	delete(e.abandoned, id)
	return nil
}

// leave adds a run to the abandoned runs.
func (e *Engine) leave(id string) {
	e.abandonedMu.Lock()
	defer e.abandonedMu.Unlock()
	e.abandoned[id] = struct{}{}
}

// stripRuns removes secrets from the folders of runs and returns the runs' IDs.
func stripRuns(runs string) (map[string]struct{}, error) {
	entries, err := os.ReadDir(runs)
	if err != nil {
		return nil, fmt.Errorf("listing abandoned runs: %w", err)
	}
	found := map[string]struct{}{}
	for _, entry := range entries {
		if err := strip(filepath.Join(runs, entry.Name())); err != nil {
			return nil, fmt.Errorf("removing the secrets of the abandoned run %s: %w", entry.Name(), err)
		}
		found[entry.Name()] = struct{}{}
	}
	return found, nil
}

// strip removes everything but the record and the checkpoint from a run's folder: configuration,
// plan, files and home.
func strip(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var errs []error
	for _, entry := range entries {
		if entry.Name() != metadataFile && entry.Name() != backendDir {
			errs = append(errs, os.RemoveAll(filepath.Join(dir, entry.Name())))
		}
	}
	return errors.Join(errs...)
}

func readAbandonedRun(dir string) (AbandonedRun, error) {
	found := AbandonedRun{ID: filepath.Base(dir)}
	content, err := workdir.ReadFile(dir, metadataFile, maxCheckpoint)
	if errors.Is(err, os.ErrNotExist) {
		return found, nil
	}
	if err != nil {
		return AbandonedRun{}, err
	}
	var record runMetadata
	if json.Unmarshal(content, &record) != nil {
		return found, nil // the process died while it wrote the record
	}
	found.Started, found.Identity = record.Started, record.Identity
	if record.Lookup {
		return found, nil
	}
	raw, err := readState(dir, record.Project)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return AbandonedRun{}, err
	}
	if checkpoint, err := stored(raw); err == nil && checksum(raw) != record.Opened {
		found.Checkpoint = checkpoint
	}
	return found, nil
}

func checksum(raw []byte) string {
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

// statePath returns the path of a stack's checkpoint in the folder of a run.
func statePath(project string) string {
	return filepath.Join(backendDir, ".pulumi", "stacks", project, StackName+".json")
}

func readState(dir, project string) ([]byte, error) {
	return workdir.ReadFile(dir, statePath(project), maxCheckpoint)
}

// writeMetadata writes the run's record before anything else.
func (f *Workspace) writeMetadata() error {
	identity, err := json.Marshal(f.run.Identity)
	if err != nil {
		return fmt.Errorf("writing the run's identity: %w", err)
	}
	content, err := json.Marshal(runMetadata{
		Project: f.run.Project, Lookup: f.run.Search != "", Started: f.engine.options.Clock.Now(), Opened: checksum(f.begun),
		Identity: identity,
	})
	if err != nil {
		return fmt.Errorf("writing the run's record: %w", err)
	}
	return os.WriteFile(f.path(metadataFile), content, 0o600)
}
