package backup

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/module/load"
	"github.com/machine-iac/machine-iac-operator/internal/module/store"
)

// Load reads a backup: a folder with an index, or one state's file in it. It verifies every file's
// checksum.
func Load(name string, with Identities) (*Backup, error) {
	folder, only, err := find(name)
	if err != nil {
		return nil, err
	}
	defer folder.Close() //nolint:errcheck // it is only read
	index, err := folder.index()
	if err != nil {
		return nil, err
	}
	if index == nil {
		return nil,
			fmt.Errorf("%s is no backup: it has no %s; name the folder that 'kubectl machine state export' wrote, or the file of a state in it", name, indexName)
	}
	b := &Backup{Made: index.Made, Modules: map[string][]byte{}, Names: map[string]string{}}
	for _, file := range index.Files {
		if file.Kind == KindState && only != "" && file.Path != only {
			continue
		}
		if err := folder.load(b, file, with); err != nil {
			return nil, err
		}
	}
	if only != "" && len(b.States) == 0 {
		return nil, fmt.Errorf("%s is not in the index of the backup", name)
	}
	return b, nil
}

// find opens the folder of a backup, and returns the file that is named in it, or "" for the folder
// itself.
func find(name string) (folder *Folder, only string, err error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, "", fmt.Errorf("reading the backup: %w", err)
	}
	if info.IsDir() {
		folder, err := OpenFolder(name)
		return folder, "", err
	}
	absolute, err := filepath.Abs(name)
	if err != nil {
		return nil, "", fmt.Errorf("reading the backup %s: %w", name, err)
	}
	parts := strings.Split(filepath.ToSlash(absolute), "/")
	const depth = 3 // states/NAMESPACE/FILE
	if len(parts) <= depth {
		return nil, "", fmt.Errorf("%s is no state in the folder of a backup", name)
	}
	at := len(parts) - depth
	folder, err = OpenFolder(filepath.FromSlash(strings.Join(parts[:at], "/")))
	return folder, path.Join(parts[at:]...), err
}

// index reads the folder's index; nil where there is none.
func (f *Folder) index() (*Index, error) {
	raw, err := f.read(indexName)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	index := &Index{}
	if err = decode(raw, index); err == nil {
		err = checkFormat(index.Format, indexFormat, index.Version)
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path.Join(f.name, indexName), err)
	}
	return index, nil
}

// load reads one file of a backup.
func (f *Folder) load(b *Backup, file File, with Identities) error {
	where := path.Join(f.name, file.Path)
	if !filepath.IsLocal(filepath.FromSlash(file.Path)) {
		return fmt.Errorf("reading %s: the index names a file outside of the folder, %q",
			path.Join(f.name, indexName), file.Path)
	}
	raw, err := f.read(file.Path)
	if err != nil {
		return err
	}
	if sum := Checksum(raw); sum != file.SHA256 {
		return fmt.Errorf("reading %s: its checksum is %s and should be %s: the file is damaged, or of another backup", where,
			sum, file.SHA256)
	}
	if strings.HasSuffix(file.Path, encrypted) {
		if raw, err = with.open(raw, where); err != nil {
			return err
		}
	}
	if err := b.add(file, raw); err != nil {
		return fmt.Errorf("reading %s: %w", where, err)
	}
	return nil
}

// add takes over what a file holds.
func (b *Backup) add(file File, raw []byte) error {
	switch file.Kind {
	case KindState:
		var one State
		if err := decode(raw, &one); err != nil {
			return err
		}
		if err := one.check(); err != nil {
			return err
		}
		if one.Namespace != file.Namespace || one.UID != file.UID {
			return fmt.Errorf("it is of Machine %s/%s with UID %s, and the index says another", one.Namespace,
				one.Machine, one.UID)
		}
		b.States = append(b.States, one)
	case KindModule:
		digest := store.DigestOf(file.Module)
		if digest == "" {
			return fmt.Errorf("the index says that it is module %q, which is no reference", file.Module)
		}
		b.Modules[digest], b.Names[digest] = raw, file.Module
	case KindKeys:
		var keys keysFile
		if err := decode(raw, &keys); err != nil {
			return err
		}
		if err := checkFormat(keys.Format, keysFormat, keys.Version); err != nil {
			return err
		}
		b.Keys = keys.Data
	default:
		return fmt.Errorf("the index says that it is a %q; this program knows no such file", file.Kind)
	}
	return nil
}

// module returns a module of the backup by digest, or nil.
func (b *Backup) module(digest string) (*module.Module, error) {
	archive := b.Modules[digest]
	if archive == nil {
		return nil, nil
	}
	files, err := module.ReadArchive(bytes.NewReader(archive))
	if err != nil {
		return nil, fmt.Errorf("reading module %s in the backup: %w", b.Names[digest], err)
	}
	restored, err := load.RestoreProven(files) // the manager decides what it runs of it
	if err != nil {
		return nil, fmt.Errorf("reading module %s in the backup: %w", b.Names[digest], err)
	}
	if restored.Digest() != digest {
		return nil, fmt.Errorf("reading module %s in the backup: its content has the digest %s", b.Names[digest],
			restored.Digest())
	}
	return restored, nil
}

// Only keeps the states of named Machines, and returns the names without a state.
func (b *Backup) Only(names []string) (missing []string) {
	if len(names) == 0 {
		return nil
	}
	named := func(one State, name string) bool { return one.Machine == name || string(one.UID) == name }
	for _, name := range names {
		if !slices.ContainsFunc(b.States, func(one State) bool { return named(one, name) }) {
			missing = append(missing, name)
		}
	}
	b.States = slices.DeleteFunc(b.States, func(one State) bool {
		return !slices.ContainsFunc(names, func(name string) bool { return named(one, name) })
	})
	return missing
}
