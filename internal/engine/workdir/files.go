package workdir

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
)

// FilesDir is the folder of secret files in the folder of a run or a provider.
const FilesDir = "secret-files"

// WriteFiles writes the files of a run or a provider into its folder, readable by this user only, and returns their
// paths by the same names.
func WriteFiles(dir string, files map[string]string) (map[string]string, error) {
	paths := map[string]string{}
	if len(files) == 0 {
		return paths, nil
	}
	dir = filepath.Join(dir, FilesDir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("writing the credential files: %w", err)
	}
	for name, content := range files {
		paths[name] = filepath.Join(dir, name)
		if err := os.WriteFile(paths[name], []byte(content), 0o600); err != nil {
			return nil, fmt.Errorf("writing the credential files: %w", err)
		}
	}
	return paths, nil
}

// ReadFile reads a regular file of at most limit bytes below a folder that an engine has written
// to. Engines and providers can write anything there, so it does not follow links out of the folder
// or block on a pipe.
func ReadFile(dir, name string, limit int64) ([]byte, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close() //nolint:errcheck // it was only read
	file, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // it was only read
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, name)
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	content, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err == nil && int64(len(content)) > limit {
		return nil, fmt.Errorf("%s has more than %d bytes", path, limit)
	}
	return content, err
}
