package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// state is what the data folder remembers between programs: ports and processes.
type state struct {
	Ports     map[portName]int      `json:"ports"`
	Processes map[Component]process `json:"processes"`
}

// process identifies a process uniquely: pids are reused, but not with the same start time and boot.
type process struct {
	PID int `json:"pid"`
	// StartTicks is the start time in clock ticks since boot (field 22 of /proc/PID/stat).
	StartTicks uint64 `json:"startTicks"`
	BootID     string `json:"bootID"`
}

func newState() *state {
	return &state{Ports: map[portName]int{}, Processes: map[Component]process{}}
}

// loadState reads the state file. A missing file is an empty state: the cluster was never up.
func loadState(path string) (*state, error) {
	loaded := newState()
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return loaded, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the state file: %w", err)
	}
	if err := json.Unmarshal(data, loaded); err != nil {
		return nil, fmt.Errorf("reading the state file %s: %w; end the processes that it names by hand, then remove it",
			path, err)
	}
	return loaded, nil
}

// save replaces the state file atomically.
func (s *state) save(path string) error {
	data, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the state: %w", err)
	}
	return writeFile(path, append(data, '\n'))
}

// writeFile replaces a file atomically. Only its owner can read it.
func writeFile(path string, data []byte) (err error) {
	temporary, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("writing %s: %w", path, errors.Join(err, os.Remove(temporary.Name())))
		}
	}()
	if _, err = temporary.Write(data); err != nil {
		return errors.Join(err, temporary.Close())
	}
	if err = temporary.Close(); err != nil {
		return err
	}
	return os.Rename(temporary.Name(), path)
}
