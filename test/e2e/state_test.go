//go:build e2e

package e2e_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"

	"github.com/machine-iac/machine-iac-operator/test/observe"
)

// knownState is the part of a Machine's state that tests read, for either engine.
type knownState struct {
	// Format is "pulumi", or empty for Terraform.
	Format string
	// Resources are Terraform's.
	Resources []struct {
		Mode, Type, Name string
		Instances        []struct {
			Status     string
			Attributes struct{ UID string }
		}
	}
	// Checkpoint is Pulumi's file.
	Checkpoint struct{ Checkpoint struct{ Latest checkpoint } }
}

type checkpoint struct {
	Resources         []checkpointResource
	PendingOperations []struct {
		Resource checkpointResource
		Type     string
	} `json:"pending_operations"`
}

type checkpointResource struct {
	URN, Type     string
	Taint, Delete bool
	Outputs       map[string]any
}

func (r checkpointResource) isInstance() bool {
	return r.Type+"."+r.URN[strings.LastIndex(r.URN, ":")+1:] == machineries[1].instance
}

// engine returns the engine that wrote the state.
func (s *knownState) engine() string {
	if s.Format == "" {
		return onTerraform
	}
	return s.Format
}

// nodeUID returns the UID of the complete instance, or "".
func (s *knownState) nodeUID() string {
	for _, resource := range s.Resources {
		if resource.Type+"."+resource.Name != machineries[0].instance {
			continue
		}
		for _, instance := range resource.Instances {
			if instance.Status != "tainted" {
				return instance.Attributes.UID
			}
		}
	}
	for _, resource := range s.Checkpoint.Checkpoint.Latest.Resources {
		if resource.isInstance() && !resource.Taint && !resource.Delete {
			uid, _ := resource.Outputs["uid"].(string)
			return uid
		}
	}
	return ""
}

// making reports whether Pulumi has recorded that it started to create the instance.
func (s *knownState) making() bool {
	for _, pending := range s.Checkpoint.Checkpoint.Latest.PendingOperations {
		if pending.Type == "creating" && pending.Resource.isInstance() {
			return true
		}
	}
	return false
}

// hasOutputs reports whether Pulumi's checkpoint contains the outputs.
func (s *knownState) hasOutputs() bool {
	return slices.ContainsFunc(s.Checkpoint.Checkpoint.Latest.Resources, func(r checkpointResource) bool {
		return r.Type == "pulumi:pulumi:Stack" && r.Outputs["instance_id"] != nil
	})
}

// stateOf reads a Machine's state as in docs/contracts/state.md, or returns an empty one if there is none.
func (c *census) stateOf(machine *machinev1beta1.Machine) (*knownState, error) {
	known := &knownState{}
	mine := slices.DeleteFunc(slices.Clone(c.states),
		func(secret corev1.Secret) bool { return secret.Labels[observe.UIDLabel] != string(machine.UID) })
	if len(mine) != 1 || mine[0].Labels[observe.RoleLabel] != "head" {
		return nil, fmt.Errorf("%d state Secrets belong to Machine %s, expected the head alone", len(mine),
			machine.Name)
	}
	packed, ok := mine[0].Data["tfstate"]
	if !ok {
		return known, nil
	}
	unpacking, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("reading state %s: %w", mine[0].Name, err)
	}
	raw, err := io.ReadAll(unpacking)
	if err != nil {
		return nil, fmt.Errorf("reading state %s: %w", mine[0].Name, err)
	}
	return known, json.Unmarshal(raw, known)
}
