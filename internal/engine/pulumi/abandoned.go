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
)

const (
	// metadataFile has the identity of a run in its folder, for a later process that finds it.
	metadataFile = "run.json"
	backendDir   = "backend"
)

type runMetadata struct {
	Project string `json:"project"`
	// Lookup says that the checkpoint is a lookup's, which is none of a stack.
	Lookup  bool      `json:"lookup,omitempty"`
	Started time.Time `json:"started"`
	// Opened is the checksum of the checkpoint that the run began with.
	Opened   string          `json:"opened"`
	Identity json.RawMessage `json:"identity,omitempty"`
}

// AbandonedRun is a run whose folder a predecessor left behind: it died, or kept the folder because a checkpoint was not saved.
type AbandonedRun struct {
	// ID is the run's.
	ID string
	// Started is when the run was opened.
	Started time.Time
	// Identity is the run's Identity as JSON. It is nil where the predecessor died while it made the folder; nothing was run then.
	Identity json.RawMessage
	// Checkpoint is the last that Pulumi has written; it may be newer than the one that was saved. Nil where it has written none.
	Checkpoint []byte
}

// AbandonedRuns returns the runs that a predecessor left behind, or that were kept, and that nobody has discarded, in the order of their ids. Nothing of them is
// running any more.
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

// Discard removes what is left of a run. Take its checkpoint first. What is not abandoned stays.
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

// leave lists a run among the abandoned runs.
func (e *Engine) leave(id string) {
	e.abandonedMu.Lock()
	defer e.abandonedMu.Unlock()
	e.abandoned[id] = struct{}{}
}

// stripRuns returns the ids of the runs whose folders are there, and leaves nothing secret in them.
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

// strip leaves the record and the checkpoint in a run's folder, and neither configuration nor plan, files or home.
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
	content, err := os.ReadFile(filepath.Join(dir, metadataFile))
	if errors.Is(err, os.ErrNotExist) {
		return found, nil
	}
	if err != nil {
		return AbandonedRun{}, err
	}
	var record runMetadata
	if json.Unmarshal(content, &record) != nil {
		return found, nil // it died while it wrote this
	}
	found.Started, found.Identity = record.Started, record.Identity
	if record.Lookup {
		return found, nil
	}
	raw, err := os.ReadFile(stateFile(dir, record.Project))
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

func stateFile(dir, project string) string {
	return filepath.Join(dir, backendDir, ".pulumi", "stacks", project, StackName+".json")
}

// writeMetadata writes the run's record, before anything else.
func (f *Workspace) writeMetadata() error {
	identity, err := json.Marshal(f.run.Identity)
	if err != nil {
		return fmt.Errorf("writing the run's identity: %w", err)
	}
	content, err := json.Marshal(runMetadata{
		Project: f.run.Project, Lookup: f.run.Search != "", Started: f.engine.options.Clock.Now(), Opened: checksum(f.begun), Identity: identity,
	})
	if err != nil {
		return fmt.Errorf("writing the run's record: %w", err)
	}
	return os.WriteFile(f.path(metadataFile), content, 0o600)
}
