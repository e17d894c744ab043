package pulumikeys

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Data keys of the Secret: dataCurrent holds the current key's ID. Each key's parts are under its ID and a suffix. The
// passphrase is separate, so that a person can pass it to pulumi.
const (
	dataCurrent      = "current"
	suffixPassphrase = ".passphrase"
	suffixSalt       = ".salt"
	suffixTimes      = ".times"
	idLength         = 12
)

// Entry is the public part of a key.
type Entry struct {
	// ID names the key in the Secret.
	ID string
	// Salt identifies the key in checkpoints.
	Salt string
	// Current means that runs encrypt with this key.
	Current bool
	// Created is when it was made, Replaced when another took its place; zero for the current one.
	Created, Replaced time.Time
}

type stored struct {
	Entry
	passphrase string
}

type times struct {
	Made     time.Time `json:"made"`
	Replaced time.Time `json:"replaced,omitzero"`
}

// keyring is the content of the Secret.
type keyring []stored

// IDOf returns a short name for the key with a salt. It reveals nothing about the passphrase.
func IDOf(salt string) string {
	sum := sha256.Sum256([]byte(salt))
	return hex.EncodeToString(sum[:])[:idLength]
}

// readKeyring reads the Secret, the current key first, then the newest. It rejects a Secret without a current key: a
// replacement key could not decrypt the existing checkpoints.
func readKeyring(data map[string][]byte) (keyring, error) {
	current := string(data[dataCurrent])
	var ring keyring
	for name, passphrase := range data {
		id, is := strings.CutSuffix(name, suffixPassphrase)
		if !is {
			continue
		}
		one := stored{Entry: Entry{ID: id, Salt: string(data[id+suffixSalt]), Current: id == current},
			passphrase: string(passphrase)}
		if one.Salt == "" || one.passphrase == "" {
			return nil, fmt.Errorf("the key %s lacks its passphrase or its salt", id)
		}
		var when times
		if json.Unmarshal(data[id+suffixTimes], &when) == nil { // an old key has no times
			one.Created, one.Replaced = when.Made, when.Replaced
		}
		ring = append(ring, one)
	}
	if !slices.ContainsFunc(ring, func(s stored) bool { return s.Current }) {
		return nil, fmt.Errorf("it lacks its current key %q", current)
	}
	slices.SortFunc(ring, func(a, b stored) int {
		if a.Current != b.Current {
			if a.Current {
				return -1
			}
			return 1
		}
		return cmp.Or(b.Created.Compare(a.Created), cmp.Compare(a.ID, b.ID))
	})
	return ring, nil
}

// write replaces the keys in a Secret and keeps its other data.
func (r keyring) write(secret *corev1.Secret) error {
	data := map[string][]byte{}
	for name, value := range secret.Data {
		if name != dataCurrent && !slices.ContainsFunc([]string{suffixPassphrase, suffixSalt, suffixTimes},
			func(s string) bool { return strings.HasSuffix(name, s) }) {
			data[name] = value
		}
	}
	for _, one := range r {
		raw, err := json.Marshal(times{Made: one.Created, Replaced: one.Replaced})
		if err != nil {
			return fmt.Errorf("writing the times of the key %s: %w", one.ID, err)
		}
		data[one.ID+suffixPassphrase], data[one.ID+suffixSalt], data[one.ID+
			suffixTimes] = []byte(one.passphrase), []byte(one.Salt), raw
		if one.Current {
			data[dataCurrent] = []byte(one.ID)
		}
	}
	if data[dataCurrent] == nil {
		return errors.New("no key is the current one")
	}
	secret.Data = data
	return nil
}

func (r keyring) current() stored { return r[0] }

func (r keyring) find(salt string) (stored, bool) {
	at := slices.IndexFunc(r, func(s stored) bool { return s.Salt == salt })
	if at < 0 {
		return stored{}, false
	}
	return r[at], true
}

// with returns the keyring with a new current key.
func (r keyring) with(fresh stored, now time.Time) keyring {
	fresh.Current, fresh.Created = true, now
	next := keyring{fresh}
	for _, one := range r {
		if one.Current {
			one.Current, one.Replaced = false, now
		}
		next = append(next, one)
	}
	return next
}

// spare splits off keys that are not current, not in use, and replaced so long ago that no run that started with them
// can still be active.
func (r keyring) spare(inUse []string, before time.Time) (kept, spare keyring) {
	for _, one := range r {
		if one.Current || slices.Contains(inUse, one.Salt) || one.Replaced.After(before) {
			kept = append(kept, one)
		} else {
			spare = append(spare, one)
		}
	}
	return kept, spare
}

func (r keyring) entries() []Entry {
	entries := make([]Entry, 0, len(r))
	for _, one := range r {
		entries = append(entries, one.Entry)
	}
	return entries
}
