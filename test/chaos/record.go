package chaos

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
)

// Record keeps the results of rounds in a file of JSON lines, so that a long run can be interrupted and continued.
type Record struct {
	path string
	// results are the last results by seed.
	results map[uint64]result
}

// result is a round's record.
type result struct {
	Seed             uint64        `json:"seed"`
	Version          string        `json:"version"`
	Took             time.Duration `json:"took"`
	Injected, Missed []Kind        `json:",omitempty"`
	Violations       []Violation   `json:"violations,omitempty"`
	Remade           int           `json:"remade,omitempty"`
}

// OpenRecord reads a record. A missing file has no results; an empty path disables the record.
func OpenRecord(path string) (*Record, error) {
	r := &Record{path: path, results: map[uint64]result{}}
	if path == "" {
		return r, nil
	}
	content, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading the record of rounds: %w", err)
	}
	lines := bufio.NewScanner(bytes.NewReader(content))
	lines.Buffer(nil, 16<<20)
	for n := 1; lines.Scan(); n++ {
		var one result
		if err := json.Unmarshal(lines.Bytes(), &one); err != nil {
			return nil, fmt.Errorf("%s:%d is no result of a round: %w", path, n, err)
		}
		r.results[one.Seed] = one
	}
	return r, lines.Err()
}

// Passed reports whether a seed has passed and can be skipped. Failed seeds run again, as the defect may be fixed.
func (r *Record) Passed(seed uint64) bool {
	kept, known := r.results[seed]
	return known && len(kept.Violations) == 0
}

// Add records a round's result and the manager's version.
func (r *Record) Add(o Outcome, version string) error {
	one := result{
		Seed: o.Plan.Seed, Version: version, Took: o.Took, Injected: o.Injected, Missed: o.Missed,
		Violations: o.Violations, Remade: o.Remade,
	}
	r.results[one.Seed] = one
	if r.path == "" {
		return nil
	}
	line, err := json.Marshal(one)
	if err != nil {
		return fmt.Errorf("keeping the result of seed %d: %w", one.Seed, err)
	}
	file, err := os.OpenFile(r.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("keeping the result of seed %d: %w", one.Seed, err)
	}
	_, err = file.Write(append(line, '\n'))
	return errors.Join(err, file.Close())
}

// Tally adds up the last results.
func (r *Record) Tally() *Tally {
	t := &Tally{}
	for _, one := range r.results {
		t.Add(Outcome{Took: one.Took, Injected: one.Injected, Missed: one.Missed,
			Violations: one.Violations, Remade: one.Remade})
		t.played(one.Version)
	}
	return t
}
