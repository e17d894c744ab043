package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/vmware/govmomi"
	"github.com/vmware/govmomi/event"
	"github.com/vmware/govmomi/find"
	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/vapi/rest"
	"github.com/vmware/govmomi/vapi/tags"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"
)

// inventory is what tests look at, as an administrator sees it.
type inventory struct {
	client     *govmomi.Client
	finder     *find.Finder
	datacenter *object.Datacenter
	tags       *tags.Manager
	tag        string
	history    history
}

// virtualMachine is the JSON form of one, for tests.
type virtualMachine struct {
	UUID string `json:"uuid"`
	// Created and Changed are when it was made, and when its configuration was written last.
	Created    time.Time `json:"created"`
	Changed    time.Time `json:"changed"`
	Annotation string    `json:"annotation"`
	PowerState string    `json:"powerState"`
	// Address is the guest's, also before it reports it.
	Address      string            `json:"address"`
	CPUs         int32             `json:"cpus"`
	MemoryMiB    int32             `json:"memoryMiB"`
	ClonedFrom   string            `json:"clonedFrom"`
	Networks     []string          `json:"networks"`
	ResourcePool string            `json:"resourcePool"`
	ExtraConfig  map[string]string `json:"extraConfig"`
	Settings     settings          `json:"settings"`
	Disks        []disk            `json:"disks"`
	DisksGiB     []int64           `json:"disksGiB"`
	Tags         []string          `json:"tags"`
	// Snapshot is the name of the one that it is a linked clone of, and DiskMoveType how its disks were made.
	Snapshot     string `json:"snapshot"`
	DiskMoveType string `json:"diskMoveType"`
	// GroupsAtPowerOn are those of virtual machines that it was in when it was powered on last.
	GroupsAtPowerOn []string `json:"groupsAtPowerOn"`
}

// settings are those that no providerSpec has. A clone should keep its template's.
type settings struct {
	NestedVirtualization bool   `json:"nestedVirtualization"`
	CPUHotAdd            bool   `json:"cpuHotAdd"`
	CPUHotRemove         bool   `json:"cpuHotRemove"`
	MemoryHotAdd         bool   `json:"memoryHotAdd"`
	SecureBoot           bool   `json:"secureBoot"`
	BootDelay            int64  `json:"bootDelay"`
	Logging              bool   `json:"logging"`
	Virtualization       string `json:"virtualization"`
	TimeSync             bool   `json:"timeSync"`
	LatencySensitivity   string `json:"latencySensitivity"`
	CPUReservation       int64  `json:"cpuReservation"`
	CPULimit             int64  `json:"cpuLimit"`
	CPUShares            int32  `json:"cpuShares"`
	MemoryReservation    int64  `json:"memoryReservation"`
	MemoryLimit          int64  `json:"memoryLimit"`
	MemoryShareLevel     string `json:"memoryShareLevel"`
}

type disk struct {
	SizeGiB int64  `json:"sizeGiB"`
	File    string `json:"file"`
}

// open logs in, and makes a folder and a tag.
func (i *inventory) open(ctx context.Context, server *url.URL) error {
	var err error
	if i.client, err = govmomi.NewClient(ctx, server, true); err != nil {
		return err
	}
	i.client.UserAgent = ownAgent
	i.finder = find.NewFinder(i.client.Client)
	if i.datacenter, err = i.finder.DefaultDatacenter(ctx); err != nil {
		return err
	}
	i.finder.SetDatacenter(i.datacenter)
	folders, err := i.datacenter.Folders(ctx)
	if err != nil {
		return err
	}
	if _, err := folders.VmFolder.CreateFolder(ctx, "workers"); err != nil {
		return err
	}
	session := rest.NewClient(i.client.Client)
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

// read returns what a virtual machine is.
func (i *inventory) read(ctx context.Context, path string) (*virtualMachine, error) {
	vm, err := i.finder.VirtualMachine(ctx, path)
	if err != nil {
		return nil, err
	}
	var read mo.VirtualMachine
	if err := vm.Properties(ctx, vm.Reference(), []string{"config", "runtime.powerState", "network", "resourcePool"}, &read); err != nil {
		return nil, err
	}
	found := &virtualMachine{
		UUID: read.Config.Uuid, Annotation: read.Config.Annotation, PowerState: string(read.Runtime.PowerState),
		Address: addressOf(vm.Reference()),
		CPUs:    read.Config.Hardware.NumCPU, MemoryMiB: read.Config.Hardware.MemoryMB, ExtraConfig: map[string]string{}, Changed: read.Config.Modified,
	}
	if read.Config.CreateDate != nil {
		found.Created = *read.Config.CreateDate
	}
	for _, option := range read.Config.ExtraConfig {
		if value, ok := option.GetOptionValue().Value.(string); ok {
			found.ExtraConfig[option.GetOptionValue().Key] = value
		}
	}
	found.Settings = settingsOf(read.Config)
	for _, device := range read.Config.Hardware.Device {
		if attached, ok := device.(*types.VirtualDisk); ok {
			found.Disks = append(found.Disks, disk{SizeGiB: attached.CapacityInBytes >> 30, File: fileOf(attached)})
			found.DisksGiB = append(found.DisksGiB, attached.CapacityInBytes>>30)
		}
	}
	for _, network := range read.Network {
		name, err := i.pathOf(ctx, network)
		if err != nil {
			return nil, err
		}
		found.Networks = append(found.Networks, name)
	}
	if read.ResourcePool != nil {
		if found.ResourcePool, err = i.pathOf(ctx, *read.ResourcePool); err != nil {
			return nil, err
		}
	}
	if found.ClonedFrom, err = i.originOf(ctx, vm.Reference()); err != nil {
		return nil, err
	}
	i.history.describe(vm.Reference(), vm.Name(), found)
	found.Tags, err = i.tags.ListAttachedTags(ctx, vm.Reference())
	return found, err
}

// pathOf returns where something is in the inventory.
func (i *inventory) pathOf(ctx context.Context, ref types.ManagedObjectReference) (string, error) {
	return find.InventoryPath(ctx, i.client.Client, ref)
}

// originOf returns the name of what a virtual machine was cloned from, "" when it was not.
func (i *inventory) originOf(ctx context.Context, vm types.ManagedObjectReference) (string, error) {
	events, err := event.NewManager(i.client.Client).QueryEvents(ctx, types.EventFilterSpec{
		Entity:      &types.EventFilterSpecByEntity{Entity: vm, Recursion: types.EventFilterSpecRecursionOptionSelf},
		EventTypeId: []string{"VmClonedEvent"},
	})
	if err != nil {
		return "", err
	}
	for _, told := range events {
		if cloned, ok := told.(*types.VmClonedEvent); ok {
			return cloned.SourceVm.Name, nil
		}
	}
	return "", nil
}

func fileOf(attached *types.VirtualDisk) string {
	if backing, ok := attached.Backing.(types.BaseVirtualDeviceFileBackingInfo); ok {
		return backing.GetVirtualDeviceFileBackingInfo().FileName
	}
	return ""
}

// clone makes a virtual machine at an inventory path, as another actuator does, and powers it on.
func (i *inventory) clone(ctx context.Context, place, template string, cpus int32, memoryMiB int64) error {
	from, err := i.finder.VirtualMachine(ctx, template)
	if err != nil {
		return err
	}
	folder, err := i.finder.Folder(ctx, path.Dir(place))
	if err != nil {
		return err
	}
	cloned, err := from.Clone(ctx, folder, path.Base(place), types.VirtualMachineCloneSpec{})
	if err != nil {
		return err
	}
	result, err := cloned.WaitForResult(ctx)
	if err != nil {
		return err
	}
	made := object.NewVirtualMachine(i.client.Client, result.Result.(types.ManagedObjectReference))
	devices, err := made.Device(ctx)
	if err != nil {
		return err
	}
	// The simulator's template has its CD-ROM where its disk is, which a vCenter refuses.
	without, err := devices.SelectByType((*types.VirtualCdrom)(nil)).ConfigSpec(types.VirtualDeviceConfigSpecOperationRemove)
	if err != nil {
		return err
	}
	yes := types.NewBool(true)
	configured, err := made.Reconfigure(ctx, types.VirtualMachineConfigSpec{
		NumCPUs: cpus, MemoryMB: memoryMiB, DeviceChange: without,
		// What a vCenter has by default, and the simulator has not.
		Flags: &types.VirtualMachineFlagInfo{
			DiskUuidEnabled: yes, VirtualExecUsage: string(types.VirtualMachineFlagInfoVirtualExecUsageHvAuto),
			VirtualMmuUsage: string(types.VirtualMachineFlagInfoVirtualMmuUsageAutomatic),
		},
		Tools:       &types.ToolsConfigInfo{AfterPowerOn: yes, AfterResume: yes, BeforeGuestStandby: yes, BeforeGuestShutdown: yes},
		BootOptions: &types.VirtualMachineBootOptions{BootRetryDelay: 10000},
	})
	if err != nil {
		return err
	}
	if err := configured.Wait(ctx); err != nil {
		return err
	}
	on, err := made.PowerOn(ctx)
	if err != nil {
		return err
	}
	return on.Wait(ctx)
}

// remove deletes a virtual machine behind everybody's back.
func (i *inventory) remove(ctx context.Context, path string) error {
	vm, err := i.finder.VirtualMachine(ctx, path)
	if err != nil {
		return err
	}
	if err := i.powerOff(ctx, path); err != nil {
		return err
	}
	gone, err := vm.Destroy(ctx)
	if err != nil {
		return err
	}
	return gone.Wait(ctx)
}

// powerOff does that, as somebody who pulls the plug.
func (i *inventory) powerOff(ctx context.Context, path string) error {
	vm, err := i.finder.VirtualMachine(ctx, path)
	if err != nil {
		return err
	}
	state, err := vm.PowerState(ctx)
	if err != nil || state == types.VirtualMachinePowerStatePoweredOff {
		return err
	}
	off, err := vm.PowerOff(ctx)
	if err != nil {
		return err
	}
	return off.Wait(ctx)
}

// attach gives a virtual machine a disk with a file of its own, as the storage driver does with a volume: on the controller of its first disk, or on one
// that it adds.
func (i *inventory) attach(ctx context.Context, path, file string, own bool) error {
	vm, err := i.finder.VirtualMachine(ctx, path)
	if err != nil {
		return err
	}
	devices, err := vm.Device(ctx)
	if err != nil {
		return err
	}
	name := ""
	if own {
		if name, err = addController(ctx, vm, devices); err != nil {
			return err
		}
		if devices, err = vm.Device(ctx); err != nil {
			return err
		}
	}
	controller, err := devices.FindDiskController(name)
	if err != nil {
		return err
	}
	volume := devices.CreateDisk(controller, types.ManagedObjectReference{}, file)
	volume.CapacityInKB = 1 << 20
	return vm.AddDevice(ctx, volume)
}

// addController gives a virtual machine another SCSI controller, and returns its name.
func addController(ctx context.Context, vm *object.VirtualMachine, devices object.VirtualDeviceList) (string, error) {
	bus := int32(0)
	for _, device := range devices {
		if there, ok := device.(types.BaseVirtualSCSIController); ok {
			bus = max(bus, there.GetVirtualSCSIController().BusNumber+1)
		}
	}
	made, err := devices.CreateSCSIController("pvscsi")
	if err != nil {
		return "", err
	}
	made.(types.BaseVirtualSCSIController).GetVirtualSCSIController().BusNumber = bus
	if err := vm.AddDevice(ctx, made); err != nil {
		return "", err
	}
	if devices, err = vm.Device(ctx); err != nil {
		return "", err
	}
	for _, device := range devices {
		if there, ok := device.(types.BaseVirtualSCSIController); ok && there.GetVirtualSCSIController().BusNumber == bus {
			return devices.Name(device), nil
		}
	}
	return "", fmt.Errorf("there is no SCSI controller on bus %d after it was added", bus)
}

// exists reports whether a datastore has a file, named as [datastore] path.
func (i *inventory) exists(ctx context.Context, file string) (bool, error) {
	var place object.DatastorePath
	if !place.FromString(file) {
		return false, fmt.Errorf("%q is no path on a datastore; write [datastore] path", file)
	}
	datastore, err := i.finder.Datastore(ctx, place.Datastore)
	if err != nil {
		return false, err
	}
	_, err = datastore.Stat(ctx, place.Path)
	var missing object.DatastoreNoSuchFileError
	var astray object.DatastoreNoSuchDirectoryError
	if errors.As(err, &missing) || errors.As(err, &astray) {
		return false, nil
	}
	return err == nil, err
}

// makeFolder makes the folder of a file on a datastore.
func (i *inventory) makeFolder(ctx context.Context, file string) error {
	folder := file[:strings.LastIndex(file, "/")]
	return object.NewFileManager(i.client.Client).MakeDirectory(ctx, folder, i.datacenter, true)
}

// tagCluster gives a virtual machine the tag of a cluster, which is made where it is missing.
func (i *inventory) tagCluster(ctx context.Context, path, cluster string) error {
	vm, err := i.finder.VirtualMachine(ctx, path)
	if err != nil {
		return err
	}
	name := "openshift-" + cluster
	if _, err := i.tags.GetCategory(ctx, name); err == nil {
		return i.tags.AttachTag(ctx, cluster, vm.Reference())
	}
	id, err := i.tags.CreateCategory(ctx, &tags.Category{Name: name, Cardinality: "SINGLE"})
	if err != nil {
		return err
	}
	tag, err := i.tags.CreateTag(ctx, &tags.Tag{Name: cluster, CategoryID: id})
	if err != nil {
		return err
	}
	return i.tags.AttachTag(ctx, tag, vm.Reference())
}
