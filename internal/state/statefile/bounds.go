package statefile

import (
	"bytes"
	"fmt"
)

// Bounds of a state. It describes one instance: its largest values are user data and a providerSpec of at most a
// mebibyte each, which a module repeats a few times. Anyone who can write a Secret can store any state, and decoding
// takes up to a hundred bytes for each value, however short.
const (
	// MaxBytes bounds a state as JSON.
	MaxBytes = 16 << 20
	// MaxValues bounds the values in it.
	MaxValues = 1 << 20
	// MaxSerial is the largest integer that every JSON reader represents exactly. Serials grow by one.
	MaxSerial = 1 << 53
)

// CheckSize rejects texts that are too large for a state.
func CheckSize(raw []byte) error {
	if len(raw) > MaxBytes {
		return fmt.Errorf("it has %d bytes and may have %d", len(raw), MaxBytes)
	}
	return CheckValues(raw, MaxValues)
}

// CheckValues rejects JSON with more values than limit. It counts separators, including those in strings.
func CheckValues(raw []byte, limit int) error {
	values := 1
	for _, sign := range []string{",", "[", "{"} {
		values += bytes.Count(raw, []byte(sign))
	}
	if values > limit {
		return fmt.Errorf("it has %d values and may have %d", values, limit)
	}
	return nil
}

// checkSerial rejects numbers that are too large for a serial.
func checkSerial(serial uint64) error {
	if serial > MaxSerial {
		return fmt.Errorf("its serial %d is above %d, and serials grow by one", serial, uint64(MaxSerial))
	}
	return nil
}
