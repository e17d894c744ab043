package backup

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/module/store"
	"github.com/machine-iac/machine-iac-operator/internal/state"
	"github.com/machine-iac/machine-iac-operator/internal/state/pulumikeys"
)

// metaMachine is the key of the Machine's name in the record.
const metaMachine = "machine"

// Backup is the content of a backup, read from a cluster or a folder.
type Backup struct {
	Made   time.Time
	States []State
	// Modules are archives of modules by their digests, and Names their references.
	Modules map[string][]byte
	Names   map[string]string
	// Keys are those of Pulumi's checkpoints; nil for none.
	Keys map[string][]byte
	// Notes are warnings for people.
	Notes []string
}

// Source is the cluster that a backup is made of. Its clients must read the API server directly.
type Source struct {
	States  *state.Store
	Modules *store.Store
	Keys    *pulumikeys.Keys
}

// Collect reads states and everything that they need.
func (s *Source) Collect(ctx context.Context, keys []state.Key, now time.Time) (*Backup, error) {
	b := &Backup{Made: now.UTC(), Modules: map[string][]byte{}, Names: map[string]string{}}
	for _, key := range keys {
		if err := s.collect(ctx, b, key); err != nil {
			return nil, err
		}
	}
	for i := range b.States {
		if err := s.collectModule(ctx, b, &b.States[i]); err != nil {
			return nil, err
		}
	}
	return b, s.collectKeys(ctx, b)
}

func (s *Source) collect(ctx context.Context, b *Backup, key state.Key) error {
	stored, err := s.States.Get(ctx, key)
	if errors.Is(err, state.ErrNotFound) {
		b.Notes = append(b.Notes, fmt.Sprintf("the state %s is gone meanwhile", key))
		return nil
	}
	if err != nil {
		return err
	}
	name, uid := stored.Meta[metaMachine], types.UID(stored.Labels[state.LabelMachineUID])
	if stored.Raw == nil {
		b.Notes = append(b.Notes,
			fmt.Sprintf("Machine %s/%s has no state yet: a run has begun, and the engine has written nothing",
				key.Namespace, name))
		return nil
	}
	if stored.Lock != nil {
		b.Notes = append(b.Notes, fmt.Sprintf("Machine %s/%s: a run is in progress (%s); its state is from the middle of it",
			key.Namespace, name, stored.Lock.Operation))
	}
	b.States = append(b.States, State{
		Format: stateFormat, Version: version, Namespace: key.Namespace, Machine: name, UID: uid, Serial: stored.Serial,
		Lineage: stored.Lineage,
		SHA256:  Checksum(stored.Raw), Module: record.ModuleIn(stored.Meta), Record: stored.Meta,
		Attachments: stored.Attachments, State: stored.Raw,
	})
	return nil
}

func (s *Source) collectModule(ctx context.Context, b *Backup, one *State) error {
	digest := store.DigestOf(one.Module)
	if digest == "" || b.Modules[digest] != nil || b.Names[digest] != "" {
		return nil
	}
	b.Names[digest] = one.Module
	loaded, err := s.Modules.Load(ctx, one.Namespace, digest)
	if store.IsMissing(err) {
		b.Notes = append(b.Notes, fmt.Sprintf("the module %s of Machine %s/%s is not in the backup: %s", one.Module,
			one.Namespace, one.Machine, err))
		return nil
	}
	if err != nil {
		return err
	}
	var packed bytes.Buffer
	if err := module.WriteArchive(&packed, loaded.Files()); err != nil {
		return fmt.Errorf("packing module %s: %w", one.Module, err)
	}
	b.Modules[digest] = packed.Bytes()
	return nil
}

// collectKeys reads the keys if a state is encrypted with one.
func (s *Source) collectKeys(ctx context.Context, b *Backup) error {
	needed := map[string]string{}
	for i := range b.States {
		salt, err := pulumikeys.SaltOf(b.States[i].State)
		if err != nil {
			return fmt.Errorf("finding out which key the state of Machine %s/%s is encrypted with: %w", b.States[i].Namespace,
				b.States[i].Machine, err)
		}
		if salt != "" {
			needed[salt] = b.States[i].Namespace + "/" + b.States[i].Machine
		}
	}
	if len(needed) == 0 {
		return nil
	}
	var err error
	if b.Keys, err = s.Keys.Backup(ctx); err != nil {
		return err
	}
	for _, salt := range slices.Sorted(maps.Keys(needed)) {
		if !hasKey(b.Keys, salt) {
			return fmt.Errorf("the key %s, which the checkpoint of Machine %s is encrypted with, is not in the Secret %s: name the manager's namespace with --manager-namespace",
				pulumikeys.IDOf(salt), needed[salt], pulumikeys.SecretName)
		}
	}
	return nil
}

// hasKey reports whether keys contain the one with a salt.
func hasKey(keys map[string][]byte, salt string) bool {
	entries, err := pulumikeys.InBackup(keys)
	return err == nil && slices.ContainsFunc(entries, func(e pulumikeys.Entry) bool { return e.Salt == salt })
}

// content is a file to be written.
type content struct {
	File
	raw []byte
}

// Write writes a backup into a folder. Without force, it writes nothing if an existing file
// differs. The index keeps its other entries, unless a complete backup replaces another.
func (b *Backup) Write(folder *Folder, to Recipients, whole, force bool) error {
	files, err := b.files(to)
	if err != nil {
		return err
	}
	index := Index{Format: indexFormat, Version: version, Made: b.Made}
	if !whole || !force {
		if index.Files, err = folder.listed(files); err != nil {
			return err
		}
	}
	var changed []content
	for _, file := range files {
		index.Files = append(index.Files, file.File)
		same, err := folder.compare(file, force)
		if err != nil {
			return err
		}
		if !same {
			changed = append(changed, file)
		}
	}
	slices.SortFunc(index.Files, func(a, b File) int { return cmp.Compare(a.Path, b.Path) })
	listing, err := encode(index)
	if err != nil {
		return err
	}
	for _, file := range changed {
		if err := errors.Join(folder.write(file.Path, file.raw), folder.remove(otherForm(file.Path))); err != nil {
			return err
		}
	}
	return folder.write(indexName, listing)
}

// compare reports whether a file exists with the same content. An existing file that differs, or
// whose encryption does, is an error unless it may be replaced.
func (f *Folder) compare(file content, force bool) (same bool, err error) {
	if same, err = f.same(file.Path, file.raw); err == nil {
		_, err = f.same(otherForm(file.Path), nil)
	}
	if _, differs := errors.AsType[*differsError](err); differs && force {
		return false, nil
	}
	return same, err
}

// otherForm returns the path of the same file encrypted, or unencrypted.
func otherForm(name string) string {
	if clear, ok := strings.CutSuffix(name, encrypted); ok {
		return clear
	}
	return name + encrypted
}

// files returns the files of a backup, encrypted if there are recipients.
func (b *Backup) files(to Recipients) ([]content, error) {
	var files []content
	add := func(file File, raw []byte) error {
		if len(to) > 0 {
			sealed, err := to.seal(raw)
			if err != nil {
				return err
			}
			file.Path, raw = file.Path+encrypted, sealed
		}
		file.SHA256 = Checksum(raw)
		files = append(files, content{file, raw})
		return nil
	}
	for i := range b.States {
		one := &b.States[i]
		name, err := one.path()
		if err != nil {
			return nil, err
		}
		raw, err := encode(one)
		if err != nil {
			return nil, err
		}
		err = add(File{Path: name, Kind: KindState, Namespace: one.Namespace, Machine: one.Machine, UID: one.UID,
			Serial: one.Serial, Module: one.Module}, raw)
		if err != nil {
			return nil, err
		}
	}
	for _, digest := range slices.Sorted(maps.Keys(b.Modules)) {
		if err := add(File{Path: modulePath(digest), Kind: KindModule, Module: b.Names[digest]},
			b.Modules[digest]); err != nil {
			return nil, err
		}
	}
	if b.Keys == nil {
		return files, nil
	}
	raw, err := encode(keysFile{Format: keysFormat, Version: version, Data: b.Keys})
	if err != nil {
		return nil, err
	}
	return files, add(File{Path: keysName, Kind: KindKeys}, raw)
}

// listed returns what the folder's index lists besides files that are about to be written.
func (f *Folder) listed(files []content) ([]File, error) {
	index, err := f.index()
	if index == nil || err != nil {
		return nil, err
	}
	return slices.DeleteFunc(index.Files, func(have File) bool {
		return slices.ContainsFunc(files, func(next content) bool {
			return strings.TrimSuffix(have.Path, encrypted) == strings.TrimSuffix(next.Path, encrypted)
		})
	}), nil
}

// Path returns where in the folder a state was written.
func (f *Folder) Path(of *State, to Recipients) string {
	name, err := of.path()
	if err != nil {
		return f.name
	}
	if len(to) > 0 {
		name += encrypted
	}
	return path.Join(f.name, name)
}
