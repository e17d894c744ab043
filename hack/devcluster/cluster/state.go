package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// state is what the data folder remembers between two programs: which ports, and which processes.
type state struct {
	Ports     map[portName]int      `json:"ports"`
	Processes map[Component]process `json:"processes"`
}

// process identifies one process for good: a pid alone is reused, a pid with its start time within one boot is not.
type process struct {
	PID int `json:"pid"`
	// StartTicks is the start time in clock ticks since boot (field 22 of /proc/PID/stat).
	StartTicks uint64 `json:"startTicks"`
	BootID     string `json:"bootID"`
}

func newState() *state {
	return &state{Ports: map[portName]int{}, Processes: map[Component]process{}}
}

// loadState reads the state file. Without one the cluster was never up, and the state is empty.
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
		return nil, fmt.Errorf("reading the state file %s: %w; end the processes that it names by hand, then remove it", path, err)
	}
	if loaded.Ports == nil {
		loaded.Ports = map[portName]int{}
	}
	if loaded.Processes == nil {
		loaded.Processes = map[Component]process{}
	}
	return loaded, nil
}

// save replaces the state file in one step.
func (s *state) save(path string) error {
	data, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the state: %w", err)
	}
	return writeFile(path, append(data, '\n'))
}

// writeFile replaces a file in one step, readable by its owner only: a reader sees the old content or the new one.
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
