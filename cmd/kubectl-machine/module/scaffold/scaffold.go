// Package scaffold creates a new provider module: a folder that complies with the contract and
// passes its own tests before its author has changed a line. Its files are in the folder module;
// those that end in .tmpl are templates over [Options].
package scaffold

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"text/template"

	"github.com/machine-iac/machine-iac-operator/internal/module/load"
)

//go:embed all:module
var embedded embed.FS

// templateSuffix ends the name of a template.
const templateSuffix = ".tmpl"

// lockFile is stored without its dot, so that no tool mistakes the template for a lock file.
const (
	lockFile     = "terraform.lock.hcl"
	lockFileName = ".terraform.lock.hcl"
)

// Write creates the module in a new folder of its name in dir, and returns the folder's path. It
// returns an error if the folder exists, and creates the folder completely or not at all.
func Write(dir string, o Options) (string, error) {
	o, err := o.complete()
	if err != nil {
		return "", err
	}
	folder := filepath.Join(dir, o.Name)
	if _, err := os.Lstat(folder); err == nil {
		return "", fmt.Errorf("writing the module %q: %s already exists; use another name or another folder", o.Name, folder)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("writing the module %q: %w", o.Name, err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("writing the module %q: %w", o.Name, err)
	}
	staging, err := os.MkdirTemp(dir, ".new-module-")
	if err != nil {
		return "", fmt.Errorf("writing the module %q: %w", o.Name, err)
	}
	if err := fill(staging, folder, o); err != nil {
		return "", errors.Join(fmt.Errorf("writing the module %q: %w", o.Name, err), os.RemoveAll(staging))
	}
	return folder, nil
}

// fill renders every file into staging, checks the result, and renames staging to folder. That
// fails if folder has been created meanwhile.
func fill(staging, folder string, o Options) error {
	source, err := fs.Sub(embedded, "module")
	if err != nil {
		return err
	}
	err = fs.WalkDir(source, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		place := filepath.Join(staging, filepath.FromSlash(target(name)))
		if entry.IsDir() {
			return os.MkdirAll(place, 0o755)
		}
		content, err := render(source, name, o)
		if err != nil {
			return err
		}
		return os.WriteFile(place, content, 0o644)
	})
	if err != nil {
		return err
	}
	if _, err := load.Module(os.DirFS(staging)); err != nil {
		return err
	}
	if err := os.Chmod(staging, 0o755); err != nil { // temporary folders are private
		return err
	}
	return os.Rename(staging, folder)
}

func render(source fs.FS, name string, o Options) ([]byte, error) {
	content, err := fs.ReadFile(source, name)
	if err != nil || !strings.HasSuffix(name, templateSuffix) {
		return content, err
	}
	parsed, err := template.New(name).Option("missingkey=error").Parse(string(content))
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := parsed.Execute(&out, o); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// target returns the file name that a file of the scaffold gets.
func target(name string) string {
	name = strings.TrimSuffix(name, templateSuffix)
	if name == lockFile {
		return lockFileName
	}
	return name
}
