package main

import (
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
)

// cluster plays the infrastructure: it remembers what it is asked for.
type cluster struct {
	mu   sync.Mutex
	made map[string]pulumi.MockResourceArgs
	// full has it refuse everything.
	full bool
}

func (c *cluster) NewResource(args pulumi.MockResourceArgs) (string, resource.PropertyMap, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.full {
		return "", nil, errors.New("the cluster is full")
	}
	c.made[args.Name] = args
	outputs := args.Inputs.Copy()
	outputs["uid"] = resource.NewStringProperty("uid-of-" + args.Name)
	return args.Name, outputs, nil
}

func (c *cluster) Call(args pulumi.MockCallArgs) (resource.PropertyMap, error) {
	return nil, errors.New("nothing is to be called, not " + args.Token)
}

// manifest returns what an object was asked for as.
func (c *cluster) manifest(t *testing.T, name string) map[string]any {
	t.Helper()
	var object map[string]any
	if err := json.Unmarshal([]byte(c.made[name].Inputs["yamlBody"].StringValue()), &object); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return object
}

// deploy runs the program in process, and returns its outputs.
func (c *cluster) deploy(args Args) (map[string]any, error) {
	c.made = map[string]pulumi.MockResourceArgs{}
	got := map[string]any{}
	err := pulumi.RunErr(func(ctx *pulumi.Context) error {
		outputs, err := NewNode(ctx, "", args)
		if err != nil {
			return err
		}
		outputs.export(ctx)
		pulumi.All(outputs.ProviderID, outputs.InstanceID, outputs.Addresses).ApplyT(func(values []any) error {
			c.mu.Lock()
			defer c.mu.Unlock()
			got["provider_id"], got["instance_id"], got["addresses"] = values[0], values[1], values[2]
			return nil
		})
		return nil
	}, pulumi.WithMocks("hollow-volumes", "machine", c))
	return got, err
}

func worker(volumes ...Volume) Args {
	return Args{
		Machine: Machine{Name: "worker-1", UID: "5e0ad6a1"},
		Spec:    ProviderSpec{CPU: 2.5, Memory: "16Gi", Pods: 110, StorageClass: "fast", Volumes: volumes},
	}
}

func TestANodeAndItsVolumesAreMade(t *testing.T) {
	c := &cluster{}
	outputs, err := c.deploy(worker(Volume{Name: "data", Size: "100Gi"}, Volume{Name: "journal", Size: "10Gi"}))
	if err != nil {
		t.Fatal(err)
	}
	if len(c.made) != 3 {
		t.Fatalf("made are %d objects, want a Node and two volumes", len(c.made))
	}
	capacity := map[string]any{"cpu": "2.5", "memory": "16Gi", "pods": "110"}
	if diff := cmp.Diff(capacity, c.manifest(t, "this")["status"].(map[string]any)["capacity"]); diff != "" {
		t.Errorf("capacity (-want +got):\n%s", diff)
	}
	journal := c.manifest(t, "volume-journal")
	spec := journal["spec"].(map[string]any)
	if name := journal["metadata"].(map[string]any)["name"]; name != "worker-1-journal" {
		t.Errorf("the volume's name is %v, want the Machine's before its own", name)
	}
	if diff := cmp.Diff(map[string]any{"storage": "10Gi"}, spec["capacity"]); diff != "" || spec["storageClassName"] != "fast" {
		t.Errorf("the class is %v, the capacity (-want +got):\n%s", spec["storageClassName"], diff)
	}
	if raw, _ := json.Marshal(spec["nodeAffinity"]); !strings.Contains(string(raw), `"values":["worker-1"]`) {
		t.Errorf("the volume is at %s, want it at its Node", raw)
	}
	dependencies := c.made["volume-journal"].RegisterRPC.GetDependencies()
	if len(dependencies) != 1 || !strings.HasSuffix(dependencies[0], "::this") {
		t.Errorf("the volume waits for %v, want the Node, so that it goes before it", dependencies)
	}
	addresses := []map[string]any{{"type": "InternalIP", "address": Machine{UID: "5e0ad6a1"}.address()}, {"type": "Hostname", "address": "worker-1"}}
	want := map[string]any{"provider_id": "kubemark://5e0ad6a1", "instance_id": "uid-of-this", "addresses": addresses}
	if diff := cmp.Diff(want, outputs); diff != "" {
		t.Errorf("outputs (-want +got):\n%s", diff)
	}
}

func TestAddressesAreOnePerMachine(t *testing.T) {
	const of5e0a = "fd6b:7562:656d:" // a /48
	one, other := Machine{UID: "5e0ad6a1"}.address(), Machine{UID: "5e0ad6a2"}.address()
	if !strings.HasPrefix(one, of5e0a) || !strings.HasPrefix(other, of5e0a) || one == other {
		t.Errorf("addresses are %s and %s, want two in %s:/48", one, other, of5e0a)
	}
	if again := (Machine{UID: "5e0ad6a1"}).address(); again != one {
		t.Errorf("the address is %s and later %s, want one for ever", one, again)
	}
}

func TestACreateThatFailsPublishesNothing(t *testing.T) {
	c := &cluster{full: true}
	outputs, err := c.deploy(worker())
	if err == nil || !strings.Contains(err.Error(), "the cluster is full") {
		t.Errorf("the program returns %v, want why the Node was not made", err)
	}
	if len(outputs) > 0 {
		t.Errorf("outputs are %v, want none", outputs)
	}
}

func TestThePinIsRead(t *testing.T) {
	const good = `{"name":"terraform-provider","version":"1.2.3","parameterization":{"name":"kubectl","version":"1.19.0","value":"e30="}}`
	for name, tc := range map[string]struct {
		stack     fstest.MapFS
		wantError string
	}{
		"as it is written":    {stack: fstest.MapFS{pin: {Data: []byte(good)}}},
		"missing":             {stack: fstest.MapFS{}, wantError: "reading which provider to use"},
		"no YAML":             {stack: fstest.MapFS{pin: {Data: []byte("{")}}, wantError: "reading " + pin},
		"value not in base64": {stack: fstest.MapFS{pin: {Data: []byte(strings.Replace(good, "e30=", "{}", 1))}}, wantError: "write base64"},
	} {
		t.Run(name, func(t *testing.T) {
			var failed error
			err := pulumi.RunErr(func(ctx *pulumi.Context) error {
				_, failed = registerKubectl(ctx, tc.stack)
				return nil
			}, pulumi.WithMocks("hollow-volumes", "machine", &cluster{made: map[string]pulumi.MockResourceArgs{}}))
			if err != nil {
				t.Fatal(err)
			}
			if (failed != nil) != (tc.wantError != "") || failed != nil && !strings.Contains(failed.Error(), tc.wantError) {
				t.Errorf("registerKubectl() = %v, want %q", failed, tc.wantError)
			}
		})
	}
}
