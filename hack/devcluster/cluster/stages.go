package cluster

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/machine-iac/machine-iac-operator/modules"
)

// Stages that writeStages changes.
const (
	podDeleteStage      = "pod-delete"
	nodeInitializeStage = "node-initialize"
)

// unhealthyStages is the file of stages that make Nodes unhealthy as their annotations say.
const unhealthyStages = "unhealthy-stages.yaml"

// writeStages copies KWOK's stages into the data folder, beside those of unhealthy Nodes. It delays the removal of deleted Pods, and lets Nodes keep
// their addresses.
func writeStages(source, target string, podDelete time.Duration) error {
	files, err := stageFiles(source)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.RemoveAll(target); err != nil {
		return fmt.Errorf("removing old stages: %w", err)
	}
	if err := os.MkdirAll(target, 0o700); err != nil {
		return fmt.Errorf("making the folder of the stages: %w", err)
	}
	missing := map[string]bool{podDeleteStage: true, nodeInitializeStage: true}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("reading a stage: %w", err)
		}
		name, patched, err := patchStage(data, podDelete)
		if err != nil {
			return fmt.Errorf("reading the stage %s: %w", file, err)
		}
		delete(missing, name)
		if err := writeFile(filepath.Join(target, filepath.Base(file)), patched); err != nil {
			return err
		}
	}
	unhealthy, err := modules.FS.ReadFile("kubemark/examples/" + unhealthyStages)
	if err != nil {
		return fmt.Errorf("reading the stages of unhealthy Nodes: %w", err)
	}
	if err := writeFile(filepath.Join(target, unhealthyStages), unhealthy); err != nil {
		return err
	}
	if len(missing) > 0 {
		return fmt.Errorf("finding KWOK's stages in %s: none is called %s; put them there with 'make tools'",
			source, strings.Join(slices.Sorted(maps.Keys(missing)), " or "))
	}
	return nil
}

// patchStage returns a stage's name and its patched content.
func patchStage(data []byte, podDelete time.Duration) (name string, patched []byte, err error) {
	stage := unstructured.Unstructured{}
	if err := yaml.Unmarshal(data, &stage.Object); err != nil {
		return "", nil, err
	}
	name = stage.GetName()
	switch name {
	case podDeleteStage:
		err = delay(stage.Object, podDelete)
	case nodeInitializeStage:
		err = keepAddresses(stage.Object)
	default:
		return name, data, nil
	}
	if err != nil {
		return "", nil, err
	}
	patched, err = yaml.Marshal(stage.Object)
	return name, patched, err
}

// delay keeps a deleted Pod for a while. Otherwise it vanishes at once, and nothing that waits for Pods (a drain, a
// hook) can be observed.
func delay(stage map[string]any, duration time.Duration) error {
	return unstructured.SetNestedField(stage, duration.Milliseconds(), "spec", "delay", "durationMilliseconds")
}

// keepAddresses removes the key that opens the list of addresses. KWOK runs without addresses of its own, and an empty
// list would remove those that the Node was created with.
func keepAddresses(stage map[string]any) error {
	path := []string{"spec", "next", "statusTemplate"}
	template, _, err := unstructured.NestedString(stage, path...)
	if err != nil {
		return err
	}
	lines := slices.DeleteFunc(strings.Split(template, "\n"),
		func(line string) bool { return strings.TrimSpace(line) == "addresses:" })
	return unstructured.SetNestedField(stage, strings.Join(lines, "\n"), path...)
}
