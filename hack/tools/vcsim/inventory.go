package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"

	"github.com/vmware/govmomi"
	"github.com/vmware/govmomi/find"
	"github.com/vmware/govmomi/vapi/rest"
	"github.com/vmware/govmomi/vapi/tags"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"
)

// inventory is what tests look at.
type inventory struct {
	finder *find.Finder
	tags   *tags.Manager
	tag    string
}

// virtualMachine is what tests are told of one.
type virtualMachine struct {
	UUID        string            `json:"uuid"`
	Annotation  string            `json:"annotation"`
	PowerState  string            `json:"powerState"`
	CPUs        int32             `json:"cpus"`
	ExtraConfig map[string]string `json:"extraConfig"`
	DisksGiB    []int64           `json:"disksGiB"`
	Tags        []string          `json:"tags"`
}

// open logs in, and makes a folder and a tag.
func (i *inventory) open(server *url.URL) error {
	ctx := context.Background()
	client, err := govmomi.NewClient(ctx, server, true)
	if err != nil {
		return err
	}
	i.finder = find.NewFinder(client.Client)
	datacenter, err := i.finder.DefaultDatacenter(ctx)
	if err != nil {
		return err
	}
	i.finder.SetDatacenter(datacenter)
	folders, err := datacenter.Folders(ctx)
	if err != nil {
		return err
	}
	if _, err := folders.VmFolder.CreateFolder(ctx, "workers"); err != nil {
		return err
	}
	session := rest.NewClient(client.Client)
	if err := session.Login(ctx, server.User); err != nil {
		return err
	}
	i.tags = tags.NewManager(session)
	category, err := i.tags.CreateCategory(ctx, &tags.Category{Name: "cluster", Cardinality: "SINGLE"})
	if err != nil {
		return err
	}
	i.tag, err = i.tags.CreateTag(ctx, &tags.Tag{Name: "demo", CategoryID: category})
	return err
}

func (i *inventory) serveTag(w http.ResponseWriter, _ *http.Request) { answer(w, i.tag, nil) }

func (i *inventory) serveVM(w http.ResponseWriter, r *http.Request) {
	path := r.URL.Query().Get("path")
	if r.Method == http.MethodDelete {
		answer(w, nil, i.remove(r.Context(), path))
		return
	}
	found, err := i.read(r.Context(), path)
	answer(w, found, err)
}

func (i *inventory) remove(ctx context.Context, path string) error {
	vm, err := i.finder.VirtualMachine(ctx, path)
	if err != nil {
		return err
	}
	off, err := vm.PowerOff(ctx)
	if err != nil {
		return err
	}
	if err := off.Wait(ctx); err != nil {
		return err
	}
	gone, err := vm.Destroy(ctx)
	if err != nil {
		return err
	}
	return gone.Wait(ctx)
}

func (i *inventory) read(ctx context.Context, path string) (*virtualMachine, error) {
	vm, err := i.finder.VirtualMachine(ctx, path)
	if err != nil {
		return nil, err
	}
	var read mo.VirtualMachine
	if err := vm.Properties(ctx, vm.Reference(), []string{"config", "runtime.powerState"}, &read); err != nil {
		return nil, err
	}
	found := &virtualMachine{
		UUID: read.Config.Uuid, Annotation: read.Config.Annotation, PowerState: string(read.Runtime.PowerState),
		CPUs: read.Config.Hardware.NumCPU, ExtraConfig: map[string]string{},
	}
	for _, option := range read.Config.ExtraConfig {
		if value, ok := option.GetOptionValue().Value.(string); ok {
			found.ExtraConfig[option.GetOptionValue().Key] = value
		}
	}
	for _, device := range read.Config.Hardware.Device {
		if disk, ok := device.(*types.VirtualDisk); ok {
			found.DisksGiB = append(found.DisksGiB, disk.CapacityInBytes>>30)
		}
	}
	found.Tags, err = i.tags.ListAttachedTags(ctx, vm.Reference())
	return found, err
}

func answer(w http.ResponseWriter, content any, err error) {
	var missing *find.NotFoundError
	switch {
	case errors.As(err, &missing):
		http.Error(w, err.Error(), http.StatusNotFound)
	case err != nil:
		http.Error(w, err.Error(), http.StatusInternalServerError)
	default:
		_ = json.NewEncoder(w).Encode(content)
	}
}
