package workdir

import (
	"fmt"
	"os"
	"path/filepath"
)

// FilesDir is the folder, in that of a run, with the run's files. They are secret.
const FilesDir = "secret-files"

// WriteFiles writes a run's files into the run's folder, for this user alone, and returns their paths by the same names.
func WriteFiles(dir string, files map[string]string) (map[string]string, error) {
	paths := map[string]string{}
	if len(files) == 0 {
		return paths, nil
	}
	dir = filepath.Join(dir, FilesDir)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, fmt.Errorf("writing the files of the run: %w", err)
	}
	for name, content := range files {
		paths[name] = filepath.Join(dir, name)
		if err := os.WriteFile(paths[name], []byte(content), 0o600); err != nil {
			return nil, fmt.Errorf("writing the files of the run: %w", err)
		}
	}
	return paths, nil
}
